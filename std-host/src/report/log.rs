//! The log of a server that nobody watches: one line when a test begins, one when it ends with who
//! ended it and why, one for a connection that was turned away, and one for whatever else went wrong. Each line is a moment, an event and
//! fields; how it is written, as text for people and `grep` or as JSON for programs, changes nothing
//! of what it says.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::SystemTime;

use jiff::Timestamp;
use linerate_core::session::SessionError;
use linerate_core::test::{Direction, End, Role, TestSettings};
use serde_json::{Map, Value};

use super::{Connection, Progress, TestEnd, message};
use crate::auth::Guest;
use crate::error::Error;

/// How the lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// `TIME EVENT KEY=VALUE...`; a value with blanks or quotes in it is a JSON string.
    Text,
    /// One object a line.
    Json,
}

/// How grave a line is, for places that sort by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Everyday life.
    Information,
    /// Somebody did not get what he wanted, or an operator should know.
    Warning,
    /// The server could not do its work.
    Error,
}

/// One line, as yet without a time.
#[derive(Debug, Clone, PartialEq)]
pub struct LogLine {
    event: &'static str,
    fields: Map<String, Value>,
}

impl LogLine {
    /// A line that says nothing but what happened.
    pub fn new(event: &'static str) -> Self {
        Self { event, fields: Map::new() }
    }

    /// The same line with one thing more. What is unknown is left out.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        match value.into() {
            Value::Null => {}
            value => drop(self.fields.insert(key.into(), value)),
        }
        self
    }

    /// Something went wrong, beside what a test's own end says.
    pub fn error(error: &Error, end: End) -> Self {
        Self::new("error").with("reason", message::error_text(error, end))
    }

    /// Something that an operator should know.
    pub fn warning(text: &str) -> Self {
        Self::new("warning").with("reason", text)
    }

    /// A connection that became no test.
    pub fn turned_away(peer: SocketAddr, why: &str) -> Self {
        let host = peer.ip().to_canonical().to_string();
        Self::new("turned-away").with("peer", host).with("port", peer.port()).with("reason", why)
    }

    /// A client in the queue, at this place from one.
    pub fn waits(peer: SocketAddr, place: usize) -> Self {
        let host = peer.ip().to_canonical().to_string();
        Self::new("waits").with("peer", host).with("port", peer.port()).with("place", place)
    }

    /// How grave it is.
    pub fn severity(&self) -> Severity {
        let outcome = self.fields.get("outcome").and_then(Value::as_str);
        match (self.event, outcome) {
            ("error", _) | ("end", Some("failed")) => Severity::Error,
            ("warning" | "turned-away", _)
            | ("end", Some("refused" | "limited" | "bad-client")) => Severity::Warning,
            _ => Severity::Information,
        }
    }

    /// The line, without its newline.
    pub fn show(&self, format: LogFormat, time: SystemTime) -> String {
        // A clock that is off by ages is no reason to say nothing.
        let time = Timestamp::try_from(time).unwrap_or(Timestamp::UNIX_EPOCH);
        let time = format!("{time:.3}");
        match format {
            LogFormat::Text => {
                let mut line = format!("{time} {}", self.event);
                for (key, value) in &self.fields {
                    let _ = write!(line, " {key}={}", Word(value));
                }
                line
            }
            LogFormat::Json => {
                let mut object = Map::new();
                object.insert("time".into(), time.into());
                object.insert("event".into(), self.event.into());
                object.extend(self.fields.clone());
                Value::Object(object).to_string()
            }
        }
    }
}

/// A value in a line of text.
struct Word<'a>(&'a Value);

impl std::fmt::Display for Word<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Value::String(text) if is_plain_word(text) => f.write_str(text),
            value => value.fmt(f),
        }
    }
}

fn is_plain_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic() && !"\"=\\".contains(c))
}

/// Makes the lines of one test from what it tells.
#[derive(Debug, Default)]
pub struct TestLog {
    connection: Option<Arc<Connection>>,
    settings: Option<TestSettings>,
    user: Option<String>,
    began: bool,
    concurrent_tests: u32,
}

impl TestLog {
    /// The log of a test that has not told anything yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whose test it is.
    pub fn logged_in(&mut self, guest: &Guest) {
        self.user = Some(guest.user.clone());
    }

    /// Whether the test has begun, so that its end is worth a line whatever else happens.
    pub const fn has_begun(&self) -> bool {
        self.began
    }

    /// The line for what happened, if it is worth one.
    pub fn handle(&mut self, progress: &Progress) -> Option<LogLine> {
        match progress {
            Progress::Connected(connection) => self.connection = Some(Arc::clone(connection)),
            Progress::Started(start) => {
                self.began = true;
                self.settings = Some(start.settings);
                return Some(self.line("begin"));
            }
            Progress::Interval(interval) => {
                self.concurrent_tests = self.concurrent_tests.max(interval.concurrent_tests);
            }
            Progress::Ended(end) => return Some(self.end(end)),
            _ => {}
        }
        None
    }

    fn line(&self, event: &'static str) -> LogLine {
        let mut line = LogLine::new(event);
        if let Some(connection) = &self.connection {
            line = line
                .with("test", connection.test_number)
                .with("peer", connection.peer_host.as_str())
                .with("port", connection.peer_port);
        }
        line = line.with("user", self.user.as_deref());
        if let Some(settings) = &self.settings {
            line = line
                .with("protocol", settings.protocol.name())
                .with("direction", direction(settings.direction))
                .with("streams", settings.stream_count());
        }
        line
    }

    fn end(&self, end: &TestEnd) -> LogLine {
        let mut line = self.line("end");
        if self.began {
            let of = |role| end.streams.iter().filter(move |stream| stream.role == role);
            let bytes = |role| of(role).map(|stream| stream.local.bytes).sum::<u64>();
            let (received, sent) = (bytes(Role::Receiver), bytes(Role::Sender));
            let nanos = end.streams.iter().filter_map(|stream| stream.local.duration_ns).max();
            let nanos = nanos.unwrap_or(0);
            let bits = u128::from(received.saturating_add(sent)) * 8 * 1_000_000_000;
            let rate = u64::try_from(bits.checked_div(nanos.into()).unwrap_or(0));
            line = line
                .with("received_bytes", received)
                .with("sent_bytes", sent)
                .with("bits_per_second", rate.unwrap_or(u64::MAX))
                .with("seconds", (nanos / 1_000_000) as f64 / 1000.0)
                .with("concurrent_tests", self.concurrent_tests);
        }
        let Some(error) = &end.error else { return line.with("outcome", "complete") };
        let (outcome, by) = self.verdict(error);
        let reason = message::error_text(error, End::Server);
        line.with("outcome", outcome).with("by", by).with("reason", reason)
    }

    /// What became of the test, and which end made it so.
    fn verdict(&self, error: &Error) -> (&'static str, &'static str) {
        const CLIENT: &str = "client";
        const SERVER: &str = "server";
        match error {
            Error::Interrupted { .. } => ("interrupted", SERVER),
            Error::Session(SessionError::Terminated(End::Client)) => ("interrupted", CLIENT),
            Error::ControlLost { .. }
            | Error::StreamsLost { .. }
            | Error::Session(SessionError::ControlClosed(_) | SessionError::StreamsLost) => {
                ("lost", CLIENT)
            }
            Error::Session(SessionError::TimedOut(_)) => ("timed-out", CLIENT),
            Error::Session(SessionError::Peer(_)) => ("bad-client", CLIENT),
            Error::Session(SessionError::NotAllowed(_)) if self.began => ("limited", SERVER),
            Error::Login(_)
            | Error::Session(SessionError::Denied(_) | SessionError::NotAllowed(_)) => {
                ("refused", SERVER)
            }
            _ => ("failed", SERVER),
        }
    }
}

const fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::Forward => "forward",
        Direction::Reverse => "reverse",
        Direction::Bidirectional => "bidirectional",
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use linerate_core::protocol::code::ServerError;
    use linerate_core::session::{Denial, Phase, Timer};

    use super::*;

    fn that_moment() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(1_796_090_645_678)
    }

    #[test]
    fn a_line_says_the_same_in_both_forms() {
        let line = LogLine::new("end")
            .with("test", 3)
            .with("user", None::<&str>)
            .with("reason", "it closed \"early\"")
            .with("peer", "192.0.2.1")
            .with("seconds", 1.5);
        assert_eq!(
            line.show(LogFormat::Text, that_moment()),
            r#"2026-12-01T02:04:05.678Z end test=3 reason="it closed \"early\"" peer=192.0.2.1 seconds=1.5"#
        );
        assert_eq!(
            line.show(LogFormat::Json, that_moment()),
            r#"{"time":"2026-12-01T02:04:05.678Z","event":"end","test":3,"reason":"it closed \"early\"","peer":"192.0.2.1","seconds":1.5}"#
        );
    }

    #[test]
    fn a_line_is_as_grave_as_what_it_tells() {
        let end = |outcome: &str| LogLine::new("end").with("outcome", outcome);
        for (line, severity) in [
            (LogLine::new("start"), Severity::Information),
            (LogLine::new("stop").with("reason", "error"), Severity::Information),
            (end("complete"), Severity::Information),
            (end("lost"), Severity::Information),
            (end("refused"), Severity::Warning),
            (end("limited"), Severity::Warning),
            (LogLine::warning("a clock is off"), Severity::Warning),
            (LogLine::new("turned-away"), Severity::Warning),
            (end("failed"), Severity::Error),
            (LogLine::error(&Error::Usage("-F".into()), End::Server), Severity::Error),
        ] {
            assert_eq!(line.severity(), severity, "{line:?}");
        }
    }

    #[test]
    fn what_a_peer_sends_stays_one_word_of_one_line() {
        for text in ["a b", "a\nb end test=9", "a=b", "", "\u{7}", "\u{e9}", "\"", "\\"] {
            for format in [LogFormat::Text, LogFormat::Json] {
                let shown = LogLine::new("end").with("user", text).show(format, that_moment());
                assert!(!shown.contains(|c: char| c.is_control()), "{shown}");
                let word = shown.split_once("user").expect("it is there").1;
                let quoted = word.trim_start_matches(['"', ':', '=']);
                assert!(quoted.len() < word.len(), "{shown}");
            }
        }
    }

    #[test]
    fn every_end_has_its_outcome_and_its_author() {
        use SessionError as S;
        let denial = Denial::Duration { asked_secs: Some(9), limit_secs: 5 };
        let lost = Error::ControlLost { phase: Phase::Running, reason: "reset".into() };
        for (error, began, outcome) in [
            (Error::Interrupted { by: None }, true, ("interrupted", "server")),
            (Error::Session(S::Terminated(End::Client)), true, ("interrupted", "client")),
            (Error::Session(S::ControlClosed(Phase::Running)), true, ("lost", "client")),
            (lost, true, ("lost", "client")),
            (Error::Session(S::TimedOut(Timer::Step)), false, ("timed-out", "client")),
            (Error::Session(S::NotAllowed(denial)), false, ("refused", "server")),
            (Error::Session(S::NotAllowed(denial)), true, ("limited", "server")),
            (Error::Session(S::Denied(ServerError::new(121))), false, ("refused", "server")),
            (Error::Usage("-F".into()), false, ("failed", "server")),
        ] {
            let log = TestLog { began, ..TestLog::default() };
            assert_eq!(log.verdict(&error), outcome, "{error:?}");
        }
    }
}
