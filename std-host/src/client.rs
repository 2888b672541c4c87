//! A client: connects, then runs one test.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use linerate_core::protocol::code::error_number;
use linerate_core::protocol::cookie::Cookie;
use linerate_core::protocol::error_text;
use linerate_core::protocol::extension::Offer;
use linerate_core::protocol::parameters::ClientText;
use linerate_core::session::{ClientConfig as SessionConfig, ClientSession, Deadlines, Transmit};
use linerate_core::test::{End, Protocol};
use linerate_core::time::{Instant, nanos};
use socket2::SockRef;
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use crate::auth::Login;
use crate::clock::Clock;
use crate::config::ClientConfig;
use crate::control::{self, Driver, MAX_STREAMS, Records};
use crate::dial::{Dialler, streams_limit};
use crate::error::Error;
use crate::observe::{Cancel, DebugLog, Observer};
use crate::reach::{Reached, reach};
use crate::report::{Connection, Interval, Progress, TestEnd, TestStart, Warning};
use crate::stream::{DataFile, SocketOptions, require_cpu, unusable_file};
use crate::sys;

/// Everything that one test told.
#[derive(Debug, Clone)]
pub struct TestReport {
    /// The settings and streams; none if the test did not get to its start.
    pub start: Option<Arc<TestStart>>,
    /// The intervals in order, those of the omitted start included.
    pub intervals: Vec<Arc<Interval>>,
    /// The totals, as far as the test came.
    pub end: Arc<TestEnd>,
}

/// A test that did not run to its end, with what it measured until then.
#[derive(Debug, Clone)]
pub struct TestFailure {
    /// Why.
    pub error: Error,
    /// What there is.
    pub report: TestReport,
}

impl fmt::Display for TestFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for TestFailure {}

/// Runs one test against a server and tells `observer` what happens meanwhile.
///
/// Must be called within a tokio runtime with I/O and time. Dropping the future ends the test at
/// once; `cancel` ends it with a summary at both ends.
///
/// # Errors
/// [`TestFailure`] with what was measured, when the server cannot be reached, refuses, or either
/// end stops before the end of the test.
pub async fn run_client(
    config: &ClientConfig,
    observer: &mut dyn Observer,
    cancel: &Cancel,
) -> Result<TestReport, Box<TestFailure>> {
    let mut recorder = Recorder::new(observer);
    if let Err(error) = run(config, &mut recorder, cancel).await {
        recorder.handle(Progress::Ended(Arc::new(TestEnd::failed(error))));
    }
    recorder.into_result()
}

async fn run(
    config: &ClientConfig,
    recorder: &mut Recorder<'_>,
    cancel: &Cancel,
) -> Result<(), Error> {
    if let Some(cpu) = config.affinity {
        require_cpu(cpu)?;
    }
    let file = config.file.as_ref().map(|path| open_file(config, path)).transpose()?;
    let mut settings = config.settings;
    if let (Some(file), true) = (&file, config.end_is_default) {
        settings.limits = file.limits(settings.direction, settings.limits);
    }
    let login = config.credentials.as_ref().map(Login::new).transpose()?;
    let connecting = reach(config);
    let reached = tokio::select! {
        reached = connecting => reached?,
        () = cancel.cancelled() => return Err(cancel.error()),
    };
    let Reached { control, remote, own, ports } = reached;
    control::prepare(&control, config.control_keep_alive, config.send_timeout);
    let clock = Clock::new();
    let cookie = random_cookie()?;
    // Made late: a server takes it only for some seconds.
    let token = login.map(|login| login.token(SystemTime::now())).transpose()?;
    let session_config = SessionConfig {
        settings,
        packet_rate: config.packet_rate,
        text: ClientText {
            title: config.title.as_deref(),
            extra_data: config.extra_data.as_deref(),
            congestion: config.congestion.as_deref(),
            auth_token: token.as_deref(),
        },
        client_version: linerate_core::IPERF3_EQUIVALENT,
        interval: config.interval,
        offer: config.extension.then_some(Offer::OWN),
        deadlines: Deadlines {
            greeting_ns: nanos(config.answer_timeout.unwrap_or(FOR_EVER)),
            silence_ns: config.receive_timeout.map(nanos),
            streams_ns: nanos(streams_limit(config)),
            ..Deadlines::default()
        },
    };
    let mut session = begin(clock.now(), session_config, cookie)?;
    send_cookie(&control, &mut session);
    let control_mss = sys::mss(&SockRef::from(&control));
    if config.block_from_path {
        session.handle_path(control_mss);
    }
    let settings = *session.settings();
    let connection = Connection {
        end: End::Client,
        test_number: 1,
        peer_host: config.host.clone(),
        peer_port: config.port,
        cookie: cookie.to_string(),
        control_mss,
        path_block_bytes: config.block_from_path.then_some(settings.block_bytes),
        time: SystemTime::now(),
        title: config.title.clone(),
        extra_data: config.extra_data.clone(),
        settings: Some(settings),
    };
    recorder.handle(Progress::Connected(Arc::new(connection.clone())));
    if config.rate_is_default && settings.protocol == Protocol::Udp {
        recorder.handle(Progress::Warning(Warning::DefaultUdpRate));
    }
    let (inputs_sender, inputs) = mpsc::unbounded_channel();
    let options = SocketOptions::new(&settings, config.congestion.as_deref()).with_own(own);
    let mut backend =
        Dialler::new(config, &control, remote, cookie, options, ports, inputs_sender)?;
    backend.file = file;
    let records = Records::new(connection, config.interval);
    Driver::new(session, backend, control, clock, inputs, records, recorder).run(cancel).await;
    Ok(())
}

/// The file to send or to store in, which must be there before anybody is called.
fn open_file(config: &ClientConfig, path: &Path) -> Result<DataFile, Error> {
    if config.settings.protocol == Protocol::Udp {
        let text = error_text::text(error_number::UDP_FILE).unwrap_or_default();
        return Err(Error::Usage(format!("-F {}: {text}", path.display())));
    }
    let file = DataFile::new(path.to_owned(), End::Client, config.settings.direction);
    file.map_err(|error| unusable_file(path, &error))
}

/// A session with room for the most streams is large, and moving it takes stack: it goes to the heap
/// in a frame of its own, which is gone when the test runs.
#[inline(never)]
fn begin<'a>(
    now: Instant,
    config: SessionConfig<'a>,
    cookie: Cookie,
) -> Result<Box<ClientSession<'a, MAX_STREAMS>>, Error> {
    ClientSession::new(now, config, cookie).map(Box::new).map_err(|count| {
        Error::Usage(format!("{count} streams are more than {MAX_STREAMS}, the most at once"))
    })
}

/// Sends what is first: any fresh connection takes as little at once. What it does not take, or that
/// it is gone, shows when the session goes on.
fn send_cookie(control: &TcpStream, session: &mut ClientSession<'_, MAX_STREAMS>) {
    if let Some(Transmit::Bytes(cookie)) = session.poll_control() {
        let sent = control.try_write(cookie).unwrap_or(0);
        session.consume_control(sent);
    }
}

/// Longer than any connection lives.
const FOR_EVER: Duration = Duration::from_secs(10 * 365 * 86_400);

/// Passes everything on, and keeps it for the report.
struct Recorder<'a> {
    observer: &'a mut dyn Observer,
    start: Option<Arc<TestStart>>,
    intervals: Vec<Arc<Interval>>,
    end: Option<Arc<TestEnd>>,
}

impl<'a> Recorder<'a> {
    fn new(observer: &'a mut dyn Observer) -> Self {
        Self { observer, start: None, intervals: Vec::new(), end: None }
    }

    fn into_result(self) -> Result<TestReport, Box<TestFailure>> {
        let end = self.end.expect("every test ends with its end");
        let error = end.error.clone();
        let report = TestReport { start: self.start, intervals: self.intervals, end };
        match error {
            None => Ok(report),
            Some(error) => Err(Box::new(TestFailure { error, report })),
        }
    }
}

impl Observer for Recorder<'_> {
    fn handle(&mut self, progress: Progress) {
        match &progress {
            Progress::Started(start) => self.start = Some(start.clone()),
            Progress::Interval(interval) => self.intervals.push(interval.clone()),
            Progress::Ended(end) => self.end = Some(end.clone()),
            _ => {}
        }
        self.observer.handle(progress);
    }

    fn debug_log(&self) -> Option<DebugLog> {
        self.observer.debug_log()
    }
}

fn random_cookie() -> Result<Cookie, Error> {
    let mut random = [0; Cookie::LEN - 1];
    getrandom::fill(&mut random).map_err(|error| Error::System {
        what: "no random bytes for the test's cookie".into(),
        message: error.to_string(),
        code: None,
    })?;
    Ok(Cookie::from_random(random))
}
