//! The server command: tests of many clients, printed so that each can be read.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use linerate::auth::Guest;
use linerate::cli::{OutputConfig, ProcessConfig};
use linerate::config::ServerConfig;
use linerate::error::{Error, ExitCode};
use linerate::observe::{Cancel, Observer};
use linerate::report::json::{JsonOptions, JsonReport, to_document_string};
use linerate::report::text::{TextOptions, TextReport, banner};
use linerate::report::{Progress, ServerOutput, error_line};
use linerate::server::{ObserveTests, Server};
use linerate::system_info::{run_on_cpu, system_info};
use linerate_core::session::SessionError;
use linerate_core::test::End;

use super::{block_on, console, is_plain, signals};

/// Serves until it is told to stop, or for one test.
pub(crate) fn server(
    config: ServerConfig,
    output: OutputConfig,
    _process: &ProcessConfig,
) -> ExitCode {
    for warning in output.warnings() {
        console::complain(&format!("warning: {warning}"));
    }
    config.affinity.into_iter().for_each(run_on_cpu);
    let served = block_on(serve(config, output.clone()));
    match served {
        Ok(()) => ExitCode::Success,
        Err(error) => {
            if output.json {
                let document = JsonReport::without_peer(json_options(&output), &error, End::Server);
                console::print(&to_document_string(&document));
            } else {
                console::complain(&error_line(&output.program, &error, End::Server));
            }
            error.exit_code()
        }
    }
}

fn json_options(output: &OutputConfig) -> JsonOptions {
    JsonOptions { system_info: system_info(), plain: is_plain(output) }
}

async fn serve(config: ServerConfig, output: OutputConfig) -> Result<(), Error> {
    let cancel = Cancel::new();
    signals::listen(&cancel, ExitCode::Success);
    let one_off = config.one_off;
    let server = Server::bind(config).await?;
    let log = Arc::new(Log {
        system_info: system_info(),
        port: server.port(),
        one_off,
        cancel: cancel.clone(),
        output,
        running: AtomicUsize::new(0),
        next_test: AtomicU64::new(1),
        told_of_interrupt: AtomicBool::new(false),
        complaints: Mutex::new(Throttle::new()),
    });
    log.print_banner(1);
    server.run(Arc::new(Tests(log.clone())), &cancel).await;
    let is_told = log.told_of_interrupt.load(Ordering::Relaxed);
    if log.output.json && cancel.is_cancelled() && !is_told {
        let options = json_options(&log.output);
        let document = JsonReport::without_peer(options, &cancel.error(), End::Server);
        console::print(&to_document_string(&document));
    }
    Ok(())
}

/// What all tests print through.
struct Log {
    output: OutputConfig,
    system_info: String,
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
        if !self.output.json {
            console::print(&banner(&self.text_options(), self.port, test_number));
        }
    }

    /// A line on the error stream, unless there are too many.
    fn complain(&self, line: &str) {
        let mut throttle = self.complaints.lock().unwrap_or_else(PoisonError::into_inner);
        match throttle.admit(Instant::now()) {
            None => {}
            Some(0) => console::complain(line),
            Some(unsaid) => console::complain(&format!("{line} (and {unsaid} lines before it)")),
        }
    }

    fn text_options(&self) -> TextOptions {
        TextOptions {
            format: self.output.format,
            verbose: self.output.verbose,
            title: None,
            system_info: self.system_info.clone(),
        }
    }
}

struct Tests(Arc<Log>);

impl ObserveTests for Tests {
    fn observe(&self, test_number: u64) -> Box<dyn Observer> {
        let log = self.0.clone();
        log.running.fetch_add(1, Ordering::Relaxed);
        log.next_test.fetch_max(test_number + 1, Ordering::Relaxed);
        let report = if log.output.json {
            Report::Json(JsonReport::new(json_options(&log.output)))
        } else {
            Report::Text(TextReport::new(log.text_options()))
        };
        let peer = String::new();
        Box::new(Printer { log, test_number, peer, report, is_numbered: false })
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

enum Report {
    Text(TextReport),
    Json(JsonReport),
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
        let Self { log, report, test_number, peer, is_numbered } = self;
        if let Progress::Connected(connection) = &progress {
            peer.clone_from(&connection.peer_host);
        }
        // For good: a test's lines look alike to its end.
        *is_numbered |= log.running.load(Ordering::Relaxed) > 1;
        match report {
            Report::Text(report) => {
                report.set_numbered(*is_numbered);
                console::print(&report.handle(&progress));
            }
            Report::Json(report) => report.handle(&progress),
        }
        if let Progress::Ended(end) = &progress
            && matches!(end.error, Some(Error::Interrupted { .. }))
        {
            log.told_of_interrupt.store(true, Ordering::Relaxed);
        }
        match (&progress, report) {
            (Progress::Warning(warning), _) => console::warn(&log.output, warning),
            (Progress::Ended(_), Report::Json(report)) => {
                console::print(&to_document_string(&report.finish()));
            }
            (Progress::Ended(end), Report::Text(_)) => {
                let number = if *is_numbered { format!("#{test_number} ") } else { String::new() };
                if let Some(error) = &end.error {
                    let line = error_line(&log.output.program, error, End::Server);
                    let whose = if is_turned_down(error) {
                        format!(" (client {peer})")
                    } else {
                        String::new()
                    };
                    log.complain(&format!("{number}{line}{whose}"));
                }
            }
            _ => {}
        }
    }

    fn server_output(&mut self) -> Option<ServerOutput> {
        Some(match &self.report {
            Report::Text(report) => report.server_output(),
            Report::Json(report) => report.server_output(),
        })
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
