//! The server command: tests of many clients, printed so that each can be read.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

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

use super::console::Console;
use super::journal::Journal;
use super::policy::Policy;
use super::printer::{Report, is_plain, text_options};
use super::throttle::Throttle;
use super::{block_on, open_console, signals, supervise, tell_failure};

/// Serves until it is told to stop, or for one test.
pub(crate) fn server(
    mut config: ServerConfig,
    output: OutputConfig,
    process: ProcessConfig,
) -> ExitCode {
    let console = match open_console(&output, End::Server) {
        Ok(console) => console,
        Err(code) => return code,
    };
    config.affinity.into_iter().for_each(run_on_cpu);
    let limits = process.limits.load();
    let served = limits.and_then(|limits| {
        config.limits = limits;
        let readiness = leave(process.daemon)?;
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
    match served {
        Ok(()) => ExitCode::Success,
        Err(error) => {
            tell_failure(&console, &output, &error, End::Server);
            if process.daemon {
                let line = error_line(&output.program, &error, End::Server);
                console.complain_beside_log(&line);
            }
            error.exit_code()
        }
    }
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
    let journal = Journal::open(&output, readiness.is_some(), &console);
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
        complaints: Mutex::new(Throttle::new()),
    });
    log.print_banner(1);
    log.write(|| LogLine::new("start").with("port", log.port));
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
        tell_failure(&log.console, &log.output, &cancel.error(), End::Server);
    }
    let why = cancel.is_cancelled().then(|| cancel.error().to_string());
    log.write(|| LogLine::new("stop").with("reason", why));
    Ok(())
}

/// What all tests print through.
struct Log {
    output: OutputConfig,
    console: Arc<Console>,
    journal: Option<Journal>,
    port: u16,
    one_off: bool,
    cancel: Cancel,
    running: AtomicUsize,
    next_test: AtomicU64,
    /// A test's own document says what ended the server.
    told_of_interrupt: AtomicBool,
    complaints: Mutex<Throttle>,
}

impl Log {
    fn print_banner(&self, test_number: u64) {
        if !self.output.is_json() {
            self.console.print(&banner(&text_options(&self.output), self.port, test_number));
        }
    }

    /// A line of the log, if there is one.
    fn write(&self, line: impl FnOnce() -> LogLine) {
        if let Some(journal) = &self.journal {
            journal.write(&line());
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

    /// A line on the error stream, unless there are too many.
    fn complain(&self, line: &str) {
        let mut throttle = self.complaints.lock().unwrap_or_else(PoisonError::into_inner);
        match throttle.admit(Instant::now()) {
            None => {}
            Some(0) => self.console.complain(line),
            Some(unsaid) => {
                self.console.complain(&format!("{line} (and {unsaid} lines before it)"));
            }
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
        match &self.0.journal {
            Some(journal) => journal.write_few(LogLine::turned_away(peer, why)),
            None => {
                let (program, ip) = (&self.0.output.program, peer.ip().to_canonical());
                self.0.complain(&format!("{program}: {ip} was turned away: {why}"));
            }
        }
    }

    fn waits(&self, peer: SocketAddr, place: usize) {
        if self.0.output.verbose {
            let (program, ip) = (&self.0.output.program, peer.ip().to_canonical());
            self.0.complain(&format!("{program}: {ip} waits for its turn, {place} in the queue"));
        }
    }

    fn cannot_accept(&self, error: &io::Error) {
        let error = Error::system("unable to accept connections for now", error);
        match &self.0.journal {
            Some(journal) => {
                journal.write_few(LogLine::new("trouble").with("reason", error.to_string()));
            }
            None => self.0.complain(&error_line(&self.0.output.program, &error, End::Server)),
        }
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
        log.console.print(&report.handle(&progress));
        match &progress {
            Progress::Warning(warning) => log.console.warn(warning),
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
        if self.log.output.verbose && self.log.journal.is_none() {
            let (program, ip) = (&self.log.output.program, &self.peer);
            let (user, behind) = (guest.user.escape_debug(), guest.behind_secs);
            self.log.complain(&format!(
                "{program}: {ip} logged in as \"{user}\", its clock is {behind} s behind"
            ));
        }
    }

    fn server_output(&mut self) -> Option<ServerOutput> {
        Some(self.report.server_output())
    }

    fn debug_log(&self) -> Option<DebugLog> {
        let (level, console) = (self.log.output.debug?, self.log.console.clone());
        let number = self.test_number;
        let write = move |text: &str| console.debug(&format!("#{number} {text}"));
        Some(DebugLog::new(Detail::from_level(level), write))
    }
}

impl Printer {
    /// Anybody can end a test that never began.
    fn journal(&mut self, progress: &Progress) {
        let Some(journal) = &self.log.journal else { return };
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
            log.complain(&format!("{number}{line}{whose}"));
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
