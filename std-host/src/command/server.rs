//! The server command: tests of many clients, printed so that each can be read.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use linerate::auth::Guest;
use linerate::cli::{LimitsConfig, OutputConfig, ProcessConfig};
use linerate::config::ServerConfig;
use linerate::error::{Error, ExitCode};
use linerate::limits::LiveLimits;
use linerate::observe::{Cancel, DebugLog, Detail, Observer};
use linerate::process::{Detached, PidFile, Readiness, detach};
use linerate::report::text::banner;
use linerate::report::{Progress, ServerOutput, error_line};
use linerate::server::{ObserveTests, Server};
use linerate::system_info::run_on_cpu;
use linerate_core::session::SessionError;
use linerate_core::test::End;

use super::console::Console;
use super::printer::{Report, is_plain, text_options};
use super::{block_on, open_console, signals, tell_failure};

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
    let live = Arc::new(OnceLock::new());
    let reread = reread(limits, live.clone(), &output, &console);
    signals::listen(&cancel, ExitCode::Success, pid_file, reread);
    let one_off = config.one_off;
    let server = Server::bind(config).await?;
    let _the_first = live.set(server.limits());
    readiness.map(Readiness::tell).transpose()?;
    let log = Arc::new(Log {
        port: server.port(),
        one_off,
        cancel: cancel.clone(),
        output,
        console,
        running: AtomicUsize::new(0),
        next_test: AtomicU64::new(1),
        told_of_interrupt: AtomicBool::new(false),
        complaints: Mutex::new(Throttle::new()),
    });
    log.print_banner(1);
    server.run(Arc::new(Tests(log.clone())), &cancel).await;
    let is_told = log.told_of_interrupt.load(Ordering::Relaxed);
    if cancel.is_cancelled() && !is_told {
        tell_failure(&log.console, &log.output, &cancel.error(), End::Server);
    }
    Ok(())
}

/// Reads the policy file again, where there is one. One that cannot be used changes nothing.
fn reread(
    limits: LimitsConfig,
    live: Arc<OnceLock<LiveLimits>>,
    output: &OutputConfig,
    console: &Arc<Console>,
) -> Option<signals::Reread> {
    let file = limits.policy()?.display().to_string();
    let (output, console) = (output.clone(), console.clone());
    Some(Box::new(move || match (limits.load(), live.get()) {
        (Ok(limits), Some(live)) => {
            live.set(limits);
            let program = &output.program;
            console.complain(&format!("{program}: --policy {file}: read again, for later tests"));
        }
        // The server begins with what it is about to read.
        (Ok(_), None) => {}
        (Err(error), _) => console.complain(&error_line(&output.program, &error, End::Server)),
    }))
}

/// What all tests print through.
struct Log {
    output: OutputConfig,
    console: Arc<Console>,
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
        Box::new(Printer { log, test_number, peer, report, is_numbered: false })
    }

    fn turned_away(&self, peer: SocketAddr, why: &str) {
        let (program, ip) = (&self.0.output.program, peer.ip().to_canonical());
        self.0.complain(&format!("{program}: {ip} was turned away: {why}"));
    }

    fn waits(&self, peer: SocketAddr, place: usize) {
        if self.0.output.verbose {
            let (program, ip) = (&self.0.output.program, peer.ip().to_canonical());
            self.0.complain(&format!("{program}: {ip} waits for its turn, {place} in the queue"));
        }
    }

    fn logged_in(&self, peer: SocketAddr, guest: &Guest) {
        if self.0.output.verbose {
            let (program, ip) = (&self.0.output.program, peer.ip().to_canonical());
            let (user, behind) = (guest.user.escape_debug(), guest.behind_secs);
            self.0.complain(&format!(
                "{program}: {ip} logged in as \"{user}\", its clock is {behind} s behind"
            ));
        }
    }

    fn cannot_accept(&self, error: &io::Error) {
        let error = Error::system("unable to accept connections for now", error);
        self.0.complain(&error_line(&self.0.output.program, &error, End::Server));
    }
}

/// Prints one test.
struct Printer {
    log: Arc<Log>,
    test_number: u64,
    /// The client's address.
    peer: String,
    report: Report,
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
    fn on_error(&self, error: &Error) {
        let Self { log, report, test_number, peer, is_numbered } = self;
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

/// Lets the lines of a bad minute through and a few a second of a bad day, and counts the rest: who
/// was refused and why is to be read, and a port scan must not fill a disk.
struct Throttle {
    left: u32,
    refilled: Option<Instant>,
    unsaid: u64,
}

impl Throttle {
    const fn new() -> Self {
        Self { left: MOST_LINES_AT_ONCE, refilled: None, unsaid: 0 }
    }

    /// Whether a line may be printed, and how many were held back before it.
    fn admit(&mut self, now: Instant) -> Option<u64> {
        let passed = now - *self.refilled.get_or_insert(now);
        let more = u32::try_from(passed.as_millis() / MILLIS_A_LINE).unwrap_or(u32::MAX);
        if more > 0 {
            self.left = self.left.saturating_add(more).min(MOST_LINES_AT_ONCE);
            self.refilled = Some(now);
        }
        let Some(left) = self.left.checked_sub(1) else {
            self.unsaid += 1;
            return None;
        };
        self.left = left;
        Some(std::mem::take(&mut self.unsaid))
    }
}

const MOST_LINES_AT_ONCE: u32 = 100;
/// Five lines a second in the long run.
const MILLIS_A_LINE: u128 = 200;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_flood_of_lines_is_counted_instead() {
        let began = Instant::now();
        let at = |millis| began + Duration::from_millis(millis);
        let mut throttle = Throttle::new();
        let mut said = |count: u64, at| (0..count).filter_map(|_| throttle.admit(at)).count();
        assert_eq!(said(120, at(0)), 100);
        // The first of them tells of the 20 before it.
        assert_eq!(said(120, at(1000)), 5);
        assert_eq!(throttle.admit(at(1300)), Some(115));
        assert_eq!(throttle.admit(at(1301)), None);
        assert_eq!(throttle.admit(at(3_600_000)), Some(1));
    }
}
