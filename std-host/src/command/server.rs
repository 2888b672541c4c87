//! The server command: tests of many clients, printed so that each can be read.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use linerate::auth::Guest;
use linerate::cli::{OutputConfig, ProcessConfig};
use linerate::config::ServerConfig;
use linerate::error::{Error, ExitCode};
use linerate::observe::{Cancel, DebugLog, Detail, Observer};
use linerate::process::{Detached, PidFile, Readiness, detach};
use linerate::report::text::banner;
use linerate::report::{Progress, ServerOutput, error_line};
use linerate::server::{ObserveTests, Server};
use linerate::system_info::run_on_cpu;
use linerate_core::test::End;

use super::console::Console;
use super::printer::{Report, text_options};
use super::{block_on, open_console, signals, tell_failure};

/// Serves until it is told to stop, or for one test.
pub(crate) fn server(
    config: ServerConfig,
    output: OutputConfig,
    process: ProcessConfig,
) -> ExitCode {
    let console = match open_console(&output, End::Server) {
        Ok(console) => console,
        Err(code) => return code,
    };
    config.affinity.into_iter().for_each(run_on_cpu);
    let served = leave(process.daemon).and_then(|readiness| {
        let pid_file = process.pidfile.map(PidFile::create).transpose()?.map(Arc::new);
        block_on(serve(config, output.clone(), console.clone(), pid_file, readiness))
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
    output: OutputConfig,
    console: Arc<Console>,
    pid_file: Option<Arc<PidFile>>,
    readiness: Option<Readiness>,
) -> Result<(), Error> {
    let cancel = Cancel::new();
    signals::listen(&cancel, ExitCode::Success, pid_file);
    let one_off = config.one_off;
    let server = Server::bind(config).await?;
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
        Box::new(Printer { log, test_number, report, is_numbered: false })
    }

    fn turned_away(&self, peer: SocketAddr, why: &str) {
        let (program, ip) = (&self.0.output.program, peer.ip().to_canonical());
        self.0.complain(&format!("{program}: {ip} was turned away: {why}"));
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
    report: Report,
    is_numbered: bool,
}

impl Observer for Printer {
    fn handle(&mut self, progress: Progress) {
        let Self { log, report, is_numbered, .. } = self;
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
        let Self { log, report, test_number, is_numbered } = self;
        if matches!(error, Error::Interrupted { .. }) {
            log.told_of_interrupt.store(true, Ordering::Relaxed);
        }
        if report.is_text() {
            let number = if *is_numbered { format!("#{test_number} ") } else { String::new() };
            let line = error_line(&log.output.program, error, End::Server);
            log.complain(&format!("{number}{line}"));
        }
    }
}

impl Drop for Printer {
    fn drop(&mut self) {
        let is_last = self.log.running.fetch_sub(1, Ordering::Relaxed) == 1;
        if is_last && !self.log.one_off && !self.log.cancel.is_cancelled() {
            self.log.print_banner(self.log.next_test.load(Ordering::Relaxed));
        }
    }
}

/// Lets a few lines a second through and counts the rest, so that a port scan does not fill a disk.
struct Throttle {
    second_began: Option<Instant>,
    said: u32,
    unsaid: u64,
}

impl Throttle {
    const fn new() -> Self {
        Self { second_began: None, said: 0, unsaid: 0 }
    }

    /// Whether a line may be printed, and how many were held back before it.
    fn admit(&mut self, now: Instant) -> Option<u64> {
        if self.second_began.is_none_or(|began| now - began >= Duration::from_secs(1)) {
            self.second_began = Some(now);
            self.said = 0;
        }
        if self.said >= MOST_LINES_A_SECOND {
            self.unsaid += 1;
            return None;
        }
        self.said += 1;
        Some(std::mem::take(&mut self.unsaid))
    }
}

const MOST_LINES_A_SECOND: u32 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_lines_is_counted_instead() {
        let now = Instant::now();
        let mut throttle = Throttle::new();
        let said = (0..20).filter(|_| throttle.admit(now).is_some()).count();
        assert_eq!(said, 5);
        assert_eq!(throttle.admit(now + Duration::from_secs(1)), Some(15));
    }
}
