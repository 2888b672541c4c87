//! A linerate server whose log lines are read while it runs.

use std::time::{Duration, Instant};

use serde_json::Value;

#[cfg(target_os = "linux")]
use crate::namespace::Namespace;
use crate::scratch::Scratch;
use crate::server::Server;
use crate::tool::Tool;

/// A running server with its log.
#[derive(Debug)]
pub struct LoggedServer {
    /// The server itself.
    pub server: Server,
    scratch: Scratch,
}

impl LoggedServer {
    /// Starts one with these options.
    ///
    /// # Panics
    ///
    /// When it does not come up.
    pub fn start(options: &[&str]) -> Self {
        Self::start_by(options, |options| Server::start(Tool::Linerate, options))
    }

    /// The same in a network namespace.
    ///
    /// # Panics
    ///
    /// When it does not come up.
    #[cfg(target_os = "linux")]
    pub fn start_in(namespace: &Namespace, options: &[&str]) -> Self {
        Self::start_by(options, |options| Server::start_in(namespace, Tool::Linerate, options))
    }

    fn start_by(options: &[&str], start: impl FnOnce(&[&str]) -> Server) -> Self {
        let scratch = Scratch::new();
        let path = scratch.file(NAME);
        let path = path.to_str().expect("a plain path");
        let log = ["--test-log", "json", "--logfile", path];
        let server = start(&[&log[..], options].concat());
        Self { server, scratch }
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.server.port()
    }

    /// All lines so far.
    pub fn lines(&self) -> Vec<Value> {
        let text = self.scratch.read(NAME);
        // The report is in the file, too; no line of it is an object.
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Everything in the log file.
    pub fn text(&self) -> String {
        self.scratch.read(NAME)
    }

    /// Waits for the line of this event from this place on, or that of a test's end, which must come
    /// within `limit`; tells how long it took.
    ///
    /// # Errors
    ///
    /// With all lines, when it does not come.
    pub fn await_event(
        &self,
        event: &str,
        from: usize,
        limit: Duration,
    ) -> Result<(Value, Duration), String> {
        let began = Instant::now();
        loop {
            let lines = self.lines();
            if let Some(line) = lines.iter().skip(from).find(|line| line["event"] == event) {
                return Ok((line.clone(), began.elapsed()));
            }
            if began.elapsed() >= limit {
                return Err(format!("no {event:?} within {limit:?}:\n{}", self.text()));
            }
            std::thread::sleep(POLL);
        }
    }
}

const NAME: &str = "server.log";
const POLL: Duration = Duration::from_millis(10);
