//! Where the log lines of a server go, and when there are any: for a service, which nobody watches,
//! or where they are asked for. A server that is started as people start iperf3's looks as it does.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime};

use linerate::cli::{LogChoice, OutputConfig};
use linerate::report::log::{LogFormat, LogLine};
use linerate::service;

use super::console::Console;
use super::printer::is_plain;
use super::throttle::Throttle;

/// The log of a server.
#[derive(Debug)]
pub(super) struct Journal {
    format: LogFormat,
    console: Arc<Console>,
    throttle: Mutex<Throttle>,
}

impl Journal {
    /// The log, if there is to be one.
    pub(super) fn open(
        output: &OutputConfig,
        is_daemon: bool,
        console: &Arc<Console>,
    ) -> Option<Self> {
        let format = match output.test_log {
            Some(LogChoice::Lines(format)) => format,
            Some(LogChoice::Off) => return None,
            None if is_plain(output) => return None,
            None if is_daemon || service::is_service() => LogFormat::Text,
            None => return None,
        };
        Some(Self { format, console: console.clone(), throttle: Mutex::new(Throttle::new()) })
    }

    /// Writes a line.
    pub(super) fn write(&self, line: &LogLine) {
        self.console.log(&line.show(self.format, SystemTime::now()));
    }

    /// Writes a line that strangers can cause at will, unless there are too many.
    pub(super) fn write_few(&self, line: LogLine) {
        let admitted = {
            let mut throttle = self.throttle.lock().unwrap_or_else(PoisonError::into_inner);
            throttle.admit(Instant::now())
        };
        match admitted {
            None => {}
            Some(0) => self.write(&line),
            Some(unsaid) => self.write(&line.with("lines_left_out", unsaid)),
        }
    }
}
