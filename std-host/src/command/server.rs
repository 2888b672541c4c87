//! The server command: tests of many clients, printed so that each can be read.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use linerate::auth::Guest;
use linerate::cli::{LimitsConfig, OutputConfig, ProcessConfig};
use linerate::config::ServerConfig;
use linerate::error::{Error, ExitCode};
use linerate::observe::{Cancel, DebugLog, Detail, Observer};
use linerate::process::{Detached, PidFile, Readiness, detach};
use linerate::report::log::{LogLine, TestLog};
use linerate::report::text::banner;
use linerate::report::{Progress, ServerOutput, error_line};
use linerate::server::{ObserveTests, Server};
use linerate::service::Supervisor;
use linerate::system_info::run_on_cpu;
use linerate_core::session::SessionError;
use linerate_core::test::End;
use tokio::sync::Notify;

use super::console::{Console, Purpose};
use super::events;
use super::firewall;
use super::journal::{self, Journal};
use super::policy::Policy;
use super::printer::{Report, is_plain, text_options};
use super::{block_on, open_console, signals, supervise, tell_failure};

/// Serves until it is told to stop, or for one test.
pub(crate) fn server(
    config: ServerConfig,
    output: OutputConfig,
    process: ProcessConfig,
) -> ExitCode {
    match run(config, output, process) {
        Ok(()) => ExitCode::Success,
        Err(error) => error.exit_code(),
    }
}

/// The same; why it did not serve is said already.
pub(super) fn run(
    mut config: ServerConfig,
    output: OutputConfig,
    process: ProcessConfig,
) -> Result<(), Error> {
    let log = journal::format(&output, process.daemon);
    let purpose = Purpose { end: End::Server, log, lasts: !config.one_off };
    let console = open_console(&output, purpose)?;
    config.affinity.into_iter().for_each(run_on_cpu);
    let limits = process.limits.load();
    let served = limits.and_then(|limits| {
        config.limits = limits;
        let readiness = leave(process.daemon)?;
        console.log_panics();
        let lost_log = journal::lost_log(&output).filter(|_| process.daemon);
        output.warnings().chain(lost_log).for_each(|text| console.warn_of_options(text));
        let pid_file = process.pidfile.map(PidFile::create).transpose()?.map(Arc::new);
        block_on(serve(
            config,
            process.limits,
            output.clone(),
            console.clone(),
            pid_file,
            readiness,
        ))
    });
    served.inspect_err(|error| {
        tell_failure(&console, &output, error, End::Server);
        if process.daemon || events::log().is_some() {
            console.error_beside_file(error);
        }
        console.flush(Some(LAST_OUTPUT));
    })
}

/// Begins to become a daemon, if it shall be one. The process that was started ends here, with the
/// daemon's success or failure to begin.
fn leave(is_daemon: bool) -> Result<Option<Readiness>, Error> {
    if !is_daemon {
        return Ok(None);
    }
    match detach()? {
        Detached::Starter(code) => std::process::exit(code.into()),
        Detached::Daemon(readiness) => Ok(Some(readiness)),
    }
}

async fn serve(
    config: ServerConfig,
    limits: LimitsConfig,
    output: OutputConfig,
    console: Arc<Console>,
    pid_file: Option<Arc<PidFile>>,
    readiness: Option<Readiness>,
) -> Result<(), Error> {
    let cancel = Cancel::new();
    let reread = limits.policy().map(|_| Arc::new(Notify::new()));
    signals::listen(&cancel, ExitCode::Success, pid_file, reread.clone());
    let one_off = config.one_off;
    let server = tokio::select! {
        server = Server::bind(config) => server?,
        () = cancel.cancelled() => {
            tell_failure(&console, &output, &cancel.error(), End::Server);
            return Ok(());
        }
    };
    if let Some(asked) = reread {
        let policy = Policy { limits, live: server.limits(), program: output.program.clone() };
        tokio::spawn(Arc::new(policy).reread(asked, console.clone()));
    }
    let journal = Journal::new(&console);
    // What was said until here is for the terminal.
    console.flush(Some(LAST_OUTPUT));
    readiness.map(Readiness::tell).transpose()?;
    let log = Arc::new(Log {
        port: server.port(),
        one_off,
        cancel: cancel.clone(),
        output,
        console,
        journal,
        running: AtomicUsize::new(0),
        next_test: AtomicU64::new(1),
        told_of_interrupt: AtomicBool::new(false),
    });
    log.print_banner(1);
    log.hint_at_firewall();
    log.journal.write(&LogLine::new("start").with("port", log.port));
    let supervisor = Supervisor::from_env().map(Arc::new);
    if let Some(supervisor) = &supervisor {
        let log = log.clone();
        supervise::begin(supervisor.clone(), server.handle(), move || log.status());
    }
    let stopping = tokio::spawn(log.clone().stopping(supervisor));
    server.run(Arc::new(Tests(log.clone())), &cancel).await;
    if cancel.is_cancelled() {
        // It has nothing more to wait for; an idle server has been faster.
        let _ = stopping.await;
    } else {
        stopping.abort();
    }
    let is_told = log.told_of_interrupt.load(Ordering::Relaxed);
    if cancel.is_cancelled() && !is_told {
        log.tell_of_end();
    }
    let why = cancel.is_cancelled().then(|| cancel.error().to_string());
    log.journal.write(&LogLine::new("stop").with("reason", why));
    // What one test printed is worth waiting for; a server that is stopped has to end.
    let is_waited_for = one_off && !cancel.is_cancelled();
    log.console.flush((!is_waited_for).then_some(LAST_OUTPUT));
    Ok(())
}

/// What all tests print through.
struct Log {
    output: OutputConfig,
    console: Arc<Console>,
    journal: Journal,
    port: u16,
    one_off: bool,
    cancel: Cancel,
    running: AtomicUsize,
    next_test: AtomicU64,
    /// A test's own document says what ended the server.
    told_of_interrupt: AtomicBool,
}

impl Log {
    fn print_banner(&self, test_number: u64) {
        if !self.output.is_json() {
            self.console.print(banner(&text_options(&self.output), self.port, test_number));
        }
    }

    /// Nobody else tells a server that it was not reached. Who installs a service is told then.
    fn hint_at_firewall(&self) {
        let has_reader = self.output.verbose && !is_plain(&self.output) && !self.journal.is_on();
        if let Some(hint) = firewall::hint().filter(|_| has_reader) {
            let plain = format!("{}: {hint}", self.output.program);
            self.console.tell(&plain, &LogLine::warning(&hint));
        }
    }

    /// Says why the server ends, unless the log does.
    fn tell_of_end(&self) {
        let error = self.cancel.error();
        match Report::without_peer(&self.output, &error, End::Server) {
            Some(document) => self.console.print(document),
            None if self.journal.is_on() => {}
            None => self.console.error(&error),
        }
    }

    /// What whoever supervises the server may show.
    fn status(&self) -> String {
        let running = self.running.load(Ordering::Relaxed);
        let begun = self.next_test.load(Ordering::Relaxed) - 1;
        format!("port {}, clients now: {running}, since the start: {begun}", self.port)
    }

    /// Says once that the server is being stopped.
    async fn stopping(self: Arc<Self>, supervisor: Option<Arc<Supervisor>>) {
        self.cancel.cancelled().await;
        if let Some(supervisor) = supervisor {
            supervisor.stopping(&self.status());
        }
    }
}

struct Tests(Arc<Log>);

impl ObserveTests for Tests {
    fn observe(&self, test_number: u64) -> Box<dyn Observer> {
        let log = self.0.clone();
        log.running.fetch_add(1, Ordering::Relaxed);
        log.next_test.fetch_max(test_number + 1, Ordering::Relaxed);
        let report = Report::new(&log.output);
        let peer = String::new();
        let test_log = TestLog::new();
        Box::new(Printer { log, test_number, peer, report, test_log, is_numbered: false })
    }

    fn turned_away(&self, peer: SocketAddr, why: &str) {
        let (program, ip) = (&self.0.output.program, peer.ip().to_canonical());
        let plain = format!("{program}: {ip} was turned away: {why}");
        self.0.journal.say_few(plain, Some(LogLine::turned_away(peer, why)));
    }

    fn waits(&self, peer: SocketAddr, place: usize) {
        if self.0.output.verbose {
            let (program, ip) = (&self.0.output.program, peer.ip().to_canonical());
            let plain = format!("{program}: {ip} waits for its turn, {place} in the queue");
            self.0.journal.say_few(plain, Some(LogLine::waits(peer, place)));
        }
    }

    fn cannot_accept(&self, error: &io::Error) {
        let error = Error::system("unable to accept connections for now", error);
        let plain = error_line(&self.0.output.program, &error, End::Server);
        self.0.journal.say_few(plain, Some(LogLine::error(&error, End::Server)));
    }
}

/// Prints one test.
struct Printer {
    log: Arc<Log>,
    test_number: u64,
    /// The client's address.
    peer: String,
    report: Report,
    test_log: TestLog,
    is_numbered: bool,
}

impl Observer for Printer {
    fn handle(&mut self, progress: Progress) {
        let Self { log, report, peer, is_numbered, .. } = self;
        if let Progress::Connected(connection) = &progress {
            peer.clone_from(&connection.peer_host);
        }
        // For good: a test's lines look alike to its end.
        *is_numbered |= log.running.load(Ordering::Relaxed) > 1;
        report.set_numbered(*is_numbered);
        log.console.print(report.handle(&progress));
        match &progress {
            Progress::Warning(warning) => log.console.warn(warning, Some(self.test_number)),
            Progress::Ended(end) => {
                if let Some(error) = &end.error {
                    self.on_error(error);
                }
            }
            _ => {}
        }
        self.journal(&progress);
    }

    fn logged_in(&mut self, guest: &Guest) {
        self.test_log.logged_in(guest);
        if self.log.output.verbose {
            let (program, ip) = (&self.log.output.program, &self.peer);
            let (user, behind) = (guest.user.escape_debug(), guest.behind_secs);
            let plain =
                format!("{program}: {ip} logged in as \"{user}\", its clock is {behind} s behind");
            let event = LogLine::new("login").with("test", self.test_number);
            let event = event.with("peer", ip.as_str()).with("user", guest.user.as_str());
            self.log.journal.say_few(plain, Some(event.with("clock_behind_seconds", behind)));
        }
    }

    fn server_output(&mut self) -> Option<ServerOutput> {
        Some(self.report.server_output())
    }

    fn debug_log(&self) -> Option<DebugLog> {
        let (level, console) = (self.log.output.debug?, self.log.console.clone());
        let number = self.test_number;
        let write = move |text: &str| console.debug(text, Some(number));
        Some(DebugLog::new(Detail::from_level(level), write))
    }
}

impl Printer {
    /// Anybody can end a test that never began.
    fn journal(&mut self, progress: &Progress) {
        let journal = &self.log.journal;
        match self.test_log.handle(progress) {
            Some(line) if self.test_log.has_begun() => journal.write(&line),
            Some(line) => journal.write_few(line),
            None => {}
        }
    }

    fn on_error(&self, error: &Error) {
        let Self { log, report, test_number, peer, is_numbered, .. } = self;
        if matches!(error, Error::Interrupted { .. }) {
            log.told_of_interrupt.store(true, Ordering::Relaxed);
        }
        if report.is_text() {
            let number = if *is_numbered { format!("#{test_number} ") } else { String::new() };
            let line = error_line(&log.output.program, error, End::Server);
            let tells_whose = is_turned_down(error) && !is_plain(&log.output);
            let whose = if tells_whose { format!(" (client {peer})") } else { String::new() };
            // In the log, the line of the test's end says it.
            log.journal.say_few(format!("{number}{line}{whose}"), None);
        }
    }
}

/// The server did not want what the client asked for or sent: its operator wants to know whose that
/// was.
const fn is_turned_down(error: &Error) -> bool {
    use SessionError::{Denied, NotAllowed, Peer};
    matches!(error, Error::Session(Denied(_) | NotAllowed(_) | Peer(_)))
}

impl Drop for Printer {
    fn drop(&mut self) {
        let is_last = self.log.running.fetch_sub(1, Ordering::Relaxed) == 1;
        if is_last && !self.log.one_off && !self.log.cancel.is_cancelled() {
            self.log.print_banner(self.log.next_test.load(Ordering::Relaxed));
        }
    }
}

/// How long a server that ends waits for those who read what it said last.
const LAST_OUTPUT: Duration = Duration::from_secs(1);
