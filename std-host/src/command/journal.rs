//! Where the log lines of a server go, and when there are any: for a service, which nobody watches,
//! or where they are asked for. A server that is started as people start iperf3's looks as it does.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use linerate::cli::{LogChoice, OutputConfig};
use linerate::report::log::{LogFormat, LogLine};
use linerate::service;

use super::console::Console;
use super::printer::is_plain;
use super::throttle::Throttle;

/// The form of the log, if there is to be one. A daemon has no error stream: its log is in its file.
pub(super) fn format(output: &OutputConfig, is_daemon: bool) -> Option<LogFormat> {
    match output.test_log {
        _ if is_daemon && !takes_lines(output) => None,
        Some(LogChoice::Lines(format)) => Some(format),
        Some(LogChoice::Off) => None,
        None if is_plain(output) => None,
        None => (is_daemon || service::is_service()).then_some(LogFormat::Text),
    }
}

/// What to warn of where a daemon's log was asked for and has no place.
pub(super) fn lost_log(output: &OutputConfig) -> Option<&'static str> {
    let is_lost = matches!(output.test_log, Some(LogChoice::Lines(_))) && !takes_lines(output);
    is_lost.then_some(
        "--test-log: none with -D but to a --logfile FILE, and without -J or --json-stream",
    )
}

/// Whether there is a log file that is no place for documents alone.
fn takes_lines(output: &OutputConfig) -> bool {
    output.logfile.is_some() && !output.is_json()
}

/// What a server says beside its report: lines of its log, or without one what iperf3 says, too.
#[derive(Debug)]
pub(super) struct Journal {
    console: Arc<Console>,
    throttle: Mutex<Throttle>,
}

impl Journal {
    pub(super) fn new(console: &Arc<Console>) -> Self {
        Self { console: console.clone(), throttle: Mutex::new(Throttle::new()) }
    }

    /// Whether there is a log.
    pub(super) fn is_on(&self) -> bool {
        self.console.has_log()
    }

    /// Writes a line of the log.
    pub(super) fn write(&self, line: &LogLine) {
        self.console.log(line);
    }

    /// Writes a line of the log that strangers can cause at will, unless there are too many.
    pub(super) fn write_few(&self, line: LogLine) {
        if self.is_on() {
            self.say_few(String::new(), Some(line));
        }
    }

    /// Says something that strangers can cause at will, unless there are too many: `plain` where there
    /// is no log, `event` where there is one, which may have it elsewhere.
    pub(super) fn say_few(&self, plain: String, event: Option<LogLine>) {
        let event = match event {
            Some(event) => event,
            None if self.is_on() => return,
            None => LogLine::new("error"),
        };
        let admitted = {
            let mut throttle = self.throttle.lock().unwrap_or_else(PoisonError::into_inner);
            throttle.admit(Instant::now())
        };
        match admitted {
            None => {}
            Some(0) => self.console.tell(&plain, &event),
            Some(unsaid) => {
                let plain = format!("{plain} (and {unsaid} lines before it)");
                self.console.tell(&plain, &event.with("lines_left_out", unsaid));
            }
        }
    }
}
