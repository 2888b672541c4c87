//! One end of this engine in the place of a recorded one: it is fed what the other end said, at the
//! recorded times, and everything that it says is kept.

use linerate_core::session::{Action, Admission, Ending, Event, StreamEvent, Timer, Transmit};
use linerate_core::stats::{CpuTimes, Sample, Tally};
use linerate_core::test::StreamId;
use linerate_core::time::Instant;
use linerate_tests::virtual_time::endpoint::Endpoint;

/// What a replay needs of a session beyond what both kinds have.
pub(crate) trait Player: Endpoint {
    /// A data stream came to this end, if it is a server.
    fn accept(&mut self, now: Instant);
    /// The answer to a client's wish for a test.
    fn prepare(&mut self, now: Instant, admission: Admission);
    /// The length of this end's output.
    fn announce_output(&mut self, now: Instant, bytes: Option<u32>);
}

/// A running replay.
pub(crate) struct Replay<P> {
    /// The session.
    pub(crate) session: P,
    /// Everything that it has said.
    pub(crate) said: Vec<u8>,
    /// How it ended.
    pub(crate) ending: Option<Ending>,
    /// Most bytes that are fed at once.
    pub(crate) chunk: usize,
    /// What a server answers to the test.
    pub(crate) admission: Admission,
    /// The member that carries a server's output.
    pub(crate) output: Option<String>,
    now: Instant,
    streams_closed: bool,
}

impl<P: Player> Replay<P> {
    /// A session that nothing has happened to.
    pub(crate) fn new(session: P, chunk: usize) -> Self {
        let (said, now) = (Vec::new(), Instant::ZERO);
        let admission = Admission::Accept;
        let (ending, output, streams_closed) = (None, None, false);
        Self { session, said, ending, chunk, admission, output, now, streams_closed }
    }

    /// Lets time pass until `at`, timers included.
    pub(crate) fn advance(&mut self, at: Instant) {
        self.settle();
        while let Some((timer, due)) = self.session.poll_timeout().filter(|&(_, due)| due <= at) {
            assert!(!matches!(timer, Timer::Step | Timer::Streams), "{timer:?} at {due:?}");
            self.now = due;
            self.session.handle_timeout(due);
            self.settle();
        }
        self.now = self.now.max(at);
    }

    /// Lets all timers fire that are left.
    pub(crate) fn finish(&mut self) {
        self.settle();
        while let Some((_, due)) = self.session.poll_timeout() {
            self.now = due;
            self.session.handle_timeout(due);
            self.settle();
        }
    }

    /// Gives the session something to do.
    pub(crate) fn input(&mut self, handle: impl FnOnce(&mut P, Instant)) {
        handle(&mut self.session, self.now);
        self.settle();
    }

    /// Feeds control bytes.
    pub(crate) fn hear(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(self.chunk) {
            self.input(|session, now| session.handle_control(now, chunk));
        }
    }

    /// The other end closed a data stream.
    pub(crate) fn close_stream(&mut self, place: usize) {
        if !self.streams_closed {
            let id = StreamId::from_index(place);
            self.input(|session, now| session.handle_stream(now, id, StreamEvent::Closed));
        }
    }

    fn settle(&mut self) {
        let mut todo = std::collections::VecDeque::new();
        loop {
            self.take_control();
            todo.extend(std::iter::from_fn(|| self.session.poll_action()));
            while let Some(event) = self.session.poll_event() {
                assert_eq!(self.ending, None, "nothing comes after the end, got {event:?}");
                if let Event::Finished(ending) = event {
                    self.ending = Some(ending);
                }
            }
            let Some(action) = todo.pop_front() else { return };
            self.perform(action);
        }
    }

    fn take_control(&mut self) {
        while let Some(transmit) = self.session.poll_control() {
            let bytes = match transmit {
                Transmit::Bytes(bytes) => bytes,
                Transmit::ServerOutput => self.output.as_ref().expect("announced").as_bytes(),
            };
            let count = bytes.len();
            self.said.extend_from_slice(bytes);
            self.session.consume_control(count);
        }
    }

    fn perform(&mut self, action: Action) {
        let now = self.now;
        match action {
            Action::OpenStream(id, _) => {
                self.session.handle_stream(now, id, StreamEvent::Connected);
            }
            Action::Prepare => self.session.prepare(now, self.admission),
            Action::Sample => {
                let tally = Tally { bytes: 30_000, packets: 6, ..Tally::default() };
                let samples = vec![
                    Sample { tally, ..Sample::default() };
                    self.session.settings().stream_count()
                ];
                self.session.handle_samples(now, &samples, CpuTimes::default());
            }
            Action::Weigh { .. } => {}
            Action::CollectOutput => {
                let bytes = self.output.as_ref().map(|output| output.len() as u32);
                self.session.announce_output(now, bytes);
            }
            Action::CloseStreams => self.streams_closed = true,
            Action::Greet(_)
            | Action::StartStreams
            | Action::StopStreams
            | Action::CloseControl => {}
        }
    }
}

/// Most bytes that are fed at once: each message whole, and byte by byte.
pub(crate) const CHUNKS: [usize; 2] = [usize::MAX, 1];
