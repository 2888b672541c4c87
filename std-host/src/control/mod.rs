//! Drives one session of `linerate_core::session` on a control connection: carries bytes, does what
//! the session says, tells the observer. Client and server differ only in their [`Backend`]; nothing
//! of the protocol is decided here.

mod connection;
mod records;
mod trace;

use std::collections::VecDeque;

use linerate_core::protocol::frame::SERVER_OUTPUT_LIMIT;
use linerate_core::report::Span;
use linerate_core::session::{
    Action, Command, Denial, Ending, Event, Exchange, Phase, Session, SessionError, StreamEvent,
};
use linerate_core::stats::{BUCKETS, CpuTimes, FlowDetail, Sample};
use linerate_core::test::{End, MAX_PARALLEL, StreamId};
use linerate_core::time::Instant;
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use crate::auth::Guest;
use crate::clock::Clock;
use crate::errno;
use crate::error::{Error, words};
use crate::observe::{Cancel, DebugLog, Detail, Observer};
use crate::report::json::server_output_member;
use crate::report::{
    Connection as ConnectionRecord, Engine, Progress, ServerOutput, SocketBuffers, Warning,
};
use crate::stream::{DataFile, DataSocket, Handling, News, Streams};
use crate::sys;
use connection::Connection;
pub(crate) use connection::prepare;
pub(crate) use records::Records;

/// Streams of one test, both directions together.
pub(crate) const MAX_STREAMS: usize = 2 * MAX_PARALLEL as usize;

/// What one end does in its own way. Actions of the other end never come; their methods do nothing.
pub(crate) trait Backend {
    /// Which side of the exchange this is.
    type Exchange: Exchange<MAX_STREAMS>;
    /// What comes from elsewhere than the control connection and the streams.
    type Input;

    /// Client: begins to open a stream.
    fn open_stream(&mut self, _id: StreamId, _session: &TestSession<Self>) {}

    /// Client: sends the greeting of a UDP stream once more.
    fn greet(&mut self, _id: StreamId, _session: &TestSession<Self>) {}

    /// Client: the sockets of a UDP test, in the order that the session gives its streams.
    fn take_sockets(&mut self, _session: &TestSession<Self>) -> Vec<DataSocket> {
        Vec::new()
    }

    /// Server: begins to get ready for the client's streams.
    fn prepare(&mut self, _session: &TestSession<Self>) {}

    /// Takes an input of its own. A new stream's socket goes to `sockets` before the session hears
    /// of it, because the session may start the streams at once.
    ///
    /// # Errors
    /// A fault of this end's own, which the session knows in its own words only.
    fn on_input(
        &mut self,
        session: &mut TestSession<Self>,
        sockets: &mut Vec<DataSocket>,
        now: Instant,
        input: Self::Input,
    ) -> Result<(), Error>;

    /// Server: its output goes with the results, as so many bytes, or does not.
    fn on_server_output(
        &mut self,
        _session: &mut TestSession<Self>,
        _now: Instant,
        _: Option<u32>,
    ) {
    }

    /// The settings are agreed: fills in what the connection's record did not know.
    fn on_agreed(&mut self, _session: &TestSession<Self>, _connection: &mut ConnectionRecord) {}

    /// Server: who has just logged in.
    fn take_guest(&mut self) -> Option<Guest> {
        None
    }

    /// An error of the session in the words of this end.
    fn explain(&self, error: SessionError, _session: &TestSession<Self>) -> Error {
        Error::Session(error)
    }

    /// The test's clock runs.
    fn on_started(&mut self) {}

    /// The session is over; its connections are still to be closed.
    fn on_over(&mut self) {}

    /// The file behind this end's data.
    fn file(&self) -> Option<&DataFile> {
        None
    }

    /// The CPU that the streams are to run on.
    fn cpu(&self) -> Option<u16> {
        None
    }

    /// Server: other tests that ran on this end since this was asked last.
    fn concurrent_tests(&self) -> u32 {
        0
    }

    /// Server: the same, of the whole test so far.
    fn concurrent_tests_in_all(&self) -> u32 {
        0
    }

    /// Server: what the test moves is noted; it may be too much together with others.
    fn weigh(&self, _bits_per_second: u64) -> Option<Denial> {
        None
    }
}

/// The session that a backend's side of the exchange makes.
pub(crate) type TestSession<B> = Session<<B as Backend>::Exchange, MAX_STREAMS>;

/// One test on its control connection.
pub(crate) struct Driver<'a, B: Backend> {
    session: Box<TestSession<B>>,
    backend: B,
    connection: Connection,
    clock: Clock,
    /// Without a bound of its own, yet short: a server's has each agreed stream once and one answer to
    /// each of its questions, a client's one outcome a stream.
    inputs: mpsc::UnboundedReceiver<B::Input>,
    /// Likewise: each kind of news comes once a stream.
    stream_news: mpsc::UnboundedReceiver<News>,
    stream_news_sender: mpsc::UnboundedSender<News>,
    sockets: Vec<DataSocket>,
    streams: Option<Streams>,
    /// Once the streams are stopped.
    last_details: Option<Vec<Option<Box<FlowDetail<BUCKETS>>>>>,
    samples: VecDeque<(Instant, Vec<Sample>, CpuTimes)>,
    records: Records,
    observer: &'a mut dyn Observer,
    debug: Option<DebugLog>,
    collects_output: bool,
    /// What this end does not allow any more.
    denied: Option<Denial>,
    /// This end's fault, which the session knows only as a failed stream.
    local_error: Option<Error>,
    /// What broke the last stream that broke.
    lost_by: Option<String>,
    /// What broke the control connection.
    control_lost_by: Option<String>,
    ended: bool,
}

impl<'a, B: Backend> Driver<'a, B> {
    pub(crate) fn new(
        session: Box<TestSession<B>>,
        backend: B,
        control: TcpStream,
        clock: Clock,
        inputs: mpsc::UnboundedReceiver<B::Input>,
        records: Records,
        observer: &'a mut dyn Observer,
    ) -> Self {
        let (stream_news_sender, stream_news) = mpsc::unbounded_channel();
        let debug = observer.debug_log();
        Self {
            session,
            backend,
            connection: Connection::new(control, debug.clone()),
            clock,
            inputs,
            stream_news,
            stream_news_sender,
            sockets: Vec::new(),
            streams: None,
            last_details: None,
            samples: VecDeque::new(),
            records,
            observer,
            debug,
            collects_output: false,
            denied: None,
            local_error: None,
            lost_by: None,
            control_lost_by: None,
            ended: false,
        }
    }

    /// Runs the test to its end, whatever that is.
    pub(crate) async fn run(mut self, cancel: &Cancel) {
        let mut interrupted = false;
        loop {
            self.settle(cancel).await;
            if self.ended {
                break;
            }
            let deadline = self.session.poll_timeout().map(|(_, at)| self.clock.to_std(at));
            tokio::select! {
                readable = self.connection.next(self.session.as_mut()) => self.on_control(readable),
                Some(input) = self.inputs.recv() => {
                    let Self { backend, session, sockets, clock, .. } = &mut self;
                    if let Err(error) = backend.on_input(session, sockets, clock.now(), input) {
                        self.local_error = Some(error);
                    }
                    if let Some(guest) = self.backend.take_guest() {
                        self.observer.logged_in(&guest);
                    }
                }
                Some(news) = self.stream_news.recv() => self.on_stream(&news),
                () = sleep_until(deadline) => self.session.handle_timeout(self.clock.now()),
                () = cancel.cancelled(), if !interrupted => {
                    interrupted = true;
                    self.session.handle_command(Command::Interrupt);
                }
            }
        }
        self.backend.on_over();
        let streams = self.streams.take();
        self.connection.close(self.session.as_mut()).await;
        close(streams).await;
    }

    /// Drains the session: does what it says and tells what happened, until it wants nothing more.
    async fn settle(&mut self, cancel: &Cancel) {
        loop {
            while let Some(action) = self.session.poll_action() {
                self.perform(action).await;
            }
            while let Some(event) = self.session.poll_event() {
                self.on_event(event, cancel);
            }
            if let Some((now, samples, cpu)) = self.samples.pop_front() {
                self.session.handle_samples(now, &samples, cpu);
            } else if let Some(denial) = self.denied.take() {
                self.session.handle_denied(denial);
            } else if std::mem::take(&mut self.collects_output) {
                self.collect_output();
            } else {
                return;
            }
        }
    }

    async fn perform(&mut self, action: Action) {
        self.log(Detail::Steps, || format!("{action:?}"));
        match action {
            Action::OpenStream(id, _) => self.backend.open_stream(id, &self.session),
            Action::Greet(id) => self.backend.greet(id, &self.session),
            Action::Prepare => self.backend.prepare(&self.session),
            Action::StartStreams => self.start_streams(),
            Action::Weigh { bits_per_second } => {
                self.denied = self.backend.weigh(bits_per_second);
            }
            Action::Sample => {
                let samples = self.streams.as_ref().map(Streams::sample).unwrap_or_default();
                self.samples.push_back((self.clock.now(), samples, sys::cpu_times()));
            }
            Action::StopStreams => {
                if let Some(streams) = &mut self.streams {
                    streams.stop().await;
                    self.records.engines = streams.engines();
                    self.last_details = Some(streams.take_details());
                }
            }
            Action::CloseStreams => {
                self.sockets.clear();
                if !self.has_last_word() {
                    close(self.streams.take()).await;
                }
            }
            Action::CollectOutput => self.collects_output = true,
            Action::CloseControl => self.ended = true,
        }
    }

    /// A server ends a running test. Stock clients up to 3.15 that meet a broken stream first never
    /// read why: their data goes on being discarded until they have heard.
    fn has_last_word(&self) -> bool {
        self.records.connection.end == End::Server && self.session.phase() == Phase::Over
    }

    fn start_streams(&mut self) {
        let mut sockets = std::mem::take(&mut self.sockets);
        sockets.extend(self.backend.take_sockets(&self.session));
        self.records.set_streams(&sockets, &self.session);
        if let Some(name) = sockets.last().and_then(DataSocket::congestion) {
            self.session.handle_congestion(&name);
            self.records.local_congestion = Some(name);
        }
        for socket in &sockets {
            self.log(Detail::Sockets, || socket_line(socket));
        }
        for warning in self.records.socket_warnings(&sockets, &self.session) {
            self.tell(Progress::Warning(warning));
        }
        let settings = self.session.settings();
        let file = self.backend.file();
        self.records.file = file.cloned();
        let peer_is_stock = self.session.extension().is_none();
        let handling = Handling::new(settings, file.cloned(), self.backend.cpu(), peer_is_stock);
        let plan = |index| self.session.plan(StreamId::from_index(index));
        let plans = (0..sockets.len()).filter_map(plan).collect();
        let news = self.stream_news_sender.clone();
        match Streams::start(sockets, plans, self.clock, handling, news) {
            Ok(mut streams) => {
                for warning in streams.take_warnings() {
                    self.tell(Progress::Warning(warning));
                }
                self.streams = Some(streams);
            }
            Err(error) => {
                self.local_error = Some(Error::system("cannot start the data streams", &error));
                let event = StreamEvent::Failed { code: errno::number(&error) };
                let lost = (0..self.session.settings().stream_count()).map(StreamId::from_index);
                for id in lost {
                    let _own_receiver_lives =
                        self.stream_news_sender.send(News { id, event, error: None });
                }
            }
        }
        self.backend.on_started();
    }

    fn on_event(&mut self, event: Event, cancel: &Cancel) {
        match event {
            Event::Agreed => self.backend.on_agreed(&self.session, &mut self.records.connection),
            Event::Started => {
                let start = self.records.start(&self.session);
                self.tell(Progress::Started(start));
            }
            Event::Interval { span, omitted } => self.on_interval(span, omitted),
            Event::OmitEnded => self.tell(Progress::OmitEnded),
            Event::Measured => {
                self.session.handle_concurrent_tests(self.backend.concurrent_tests_in_all());
                for (index, detail) in self.details().into_iter().enumerate() {
                    if let Some(detail) = detail {
                        self.session.handle_detail(index, detail.measured());
                    }
                }
                if self.records.engines.iter().any(Engine::has_batch_jitter) {
                    self.session.handle_batch_jitter();
                }
                let end = self.records.end(&self.session, None, None);
                self.tell(Progress::Measured(end));
            }
            Event::StillUnanswered => self.tell(Progress::Warning(Warning::Unanswered)),
            Event::Finished(ending) => self.on_finished(ending, cancel),
        }
    }

    /// What the streams know, or knew when they were closed.
    fn details(&self) -> Vec<Option<Box<FlowDetail<BUCKETS>>>> {
        match (&self.last_details, &self.streams) {
            (Some(last), _) => last.clone(),
            (None, Some(streams)) => streams.details(),
            (None, None) => Vec::new(),
        }
    }

    fn on_interval(&mut self, span: Span, omitted: bool) {
        let concurrent = self.backend.concurrent_tests();
        let details = self.details();
        let interval = self.records.interval(details, &self.session, span, omitted, concurrent);
        self.tell(Progress::Interval(interval));
    }

    fn on_finished(&mut self, ending: Ending, cancel: &Cancel) {
        let error = match ending {
            Ending::Complete => None,
            Ending::Failed(SessionError::Interrupted) => Some(cancel.error()),
            Ending::Failed(error) => Some(match (self.local_error.take(), self.lost_by.take()) {
                (Some(local), _) => local,
                (None, Some(reason)) if error == SessionError::StreamsLost => {
                    Error::StreamsLost { reason }
                }
                (None, _) => self.explain(error),
            }),
        };
        // Stock servers send it unasked once any client has asked.
        let output = self.connection.take_server_output();
        let output = output.filter(|_| self.session.settings().server_output);
        let end = self.records.end(&self.session, output, error);
        // A server's lines are numbered where tests ran beside each other.
        if let (Some(count @ 1..), End::Client) =
            (end.concurrent_tests, self.records.connection.end)
        {
            self.tell(Progress::Warning(Warning::ConcurrentTests { count }));
        }
        self.tell(Progress::Ended(end));
    }

    fn explain(&mut self, error: SessionError) -> Error {
        match (self.backend.explain(error, &self.session), self.control_lost_by.take()) {
            (Error::Session(SessionError::ControlClosed(phase)), Some(reason)) => {
                Error::ControlLost { phase, reason }
            }
            (error, _) => error,
        }
    }

    /// A stream broke, failed or has nothing more to do.
    fn on_stream(&mut self, news: &News) {
        let &News { id, event, .. } = news;
        match (event, &news.error) {
            (StreamEvent::Closed, error) => {
                let reason = error.as_ref().map(|error| self.records.reason(error));
                self.lost_by.clone_from(&reason);
                self.tell(Progress::Warning(Warning::StreamLost { id, reason }));
            }
            (StreamEvent::FileFailed { .. }, Some(error)) => {
                self.local_error = Some(self.records.file_error(error));
            }
            _ => {}
        }
        self.session.handle_stream(self.clock.now(), id, event);
    }

    fn on_control(&mut self, arrived: connection::Arrived) {
        let now = self.clock.now();
        match arrived {
            connection::Arrived::Bytes(len) => {
                self.connection.hand_over(len, |bytes, output| {
                    self.session.handle_control_with_output(now, bytes, output);
                });
            }
            connection::Arrived::End(error) => {
                self.control_lost_by = error.as_ref().map(words);
                self.session.handle_control_closed(now);
            }
            connection::Arrived::Nothing => {}
        }
    }

    fn collect_output(&mut self) {
        let member = self.observer.server_output().map(|output| member_text(&output));
        let member = member.map(|member| match member.len() {
            fitting if fitting <= SERVER_OUTPUT_LIMIT as usize => member,
            bytes => member_text(&ServerOutput::Text(format!(
                "the server's output is left out: {bytes} bytes, at most {SERVER_OUTPUT_LIMIT} \
                 can be sent\n"
            ))),
        });
        let bytes = member.as_ref().and_then(|member| u32::try_from(member.len()).ok());
        self.connection.set_server_output(member.unwrap_or_default());
        self.backend.on_server_output(&mut self.session, self.clock.now(), bytes);
    }

    fn tell(&mut self, progress: Progress) {
        self.observer.handle(progress);
    }

    fn log(&self, detail: Detail, text: impl FnOnce() -> String) {
        if let Some(debug) = &self.debug {
            debug.line(detail, text);
        }
    }
}

/// What the system gave a data stream.
fn socket_line(socket: &DataSocket) -> String {
    let SocketBuffers { requested, send, receive } = socket.buffers();
    let mut line = format!(
        "socket {} {} - {}: send buffer {send}, receive buffer {receive}, asked for {requested}",
        socket.number(),
        socket.local(),
        socket.peer(),
    );
    if let Some(mtu) = socket.path_mtu() {
        line += &format!(", path MTU {mtu}");
    }
    if let Some(congestion) = socket.congestion() {
        line += &format!(", congestion control {congestion}");
    }
    line
}

async fn close(streams: Option<Streams>) {
    if let Some(streams) = streams {
        streams.close().await;
    }
}

async fn sleep_until(deadline: Option<std::time::Instant>) {
    match deadline {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}

/// The server's output as a member of the results document.
fn member_text(output: &ServerOutput) -> Vec<u8> {
    let (key, value) = server_output_member(output);
    format!("{}:{value}", serde_json::Value::from(key)).into_bytes()
}
