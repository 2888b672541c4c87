//! The `--json-stream` report: the same objects as the document's, each on a line of its own as soon
//! as it is known.

use linerate_core::test::End;
use serde_json::Value;

use super::{
    JsonOptions, JsonReport, Object, interval, message, server_output_member, to_document_string,
};
use crate::error::Error;
use crate::report::{Interval, Progress, ServerOutput};

/// How the lines are to be made.
#[derive(Debug, Clone, Default)]
pub struct StreamOptions {
    /// What documents and lines have in common.
    pub json: JsonOptions,
    /// The whole document follows the last line (`--json-stream-full-output`).
    pub full_output: bool,
}

/// Turns what one test tells into lines of JSON.
#[derive(Debug)]
pub struct JsonStream {
    report: JsonReport,
    full_output: bool,
    is_numbered: bool,
}

impl JsonStream {
    /// A stream that has said nothing yet.
    pub fn new(options: StreamOptions) -> Self {
        let StreamOptions { json, full_output } = options;
        Self { report: JsonReport::new(json), full_output, is_numbered: false }
    }

    /// Puts the test's number into each line from here on, or no longer: a third member, `linerate`,
    /// beside `event` and `data`. For a server that runs several tests at once, whose lines could not
    /// be told apart otherwise.
    pub fn set_numbered(&mut self, is_numbered: bool) {
        self.is_numbered = is_numbered;
    }

    /// The lines of an end that failed before it had a peer.
    pub fn without_peer(options: StreamOptions, error: &Error, end: End) -> String {
        let StreamOptions { json, full_output } = options;
        let mut lines = line("error", message::error_value(error, end).into(), Object::default());
        lines += &line("end", Object::default().into(), Object::default());
        if full_output {
            lines += &to_document_string(&JsonReport::without_peer(json, error, end));
        }
        lines
    }

    /// The lines to print for what happened.
    pub fn handle(&mut self, progress: &Progress) -> String {
        if let Progress::Interval(interval) = progress {
            return self.interval_line(interval);
        }
        self.report.handle(progress);
        match progress {
            Progress::Started(_) => self.line("start", self.report.start_object()),
            Progress::Ended(_) => self.last_lines(),
            _ => String::new(),
        }
    }

    /// What a server sends its client as its own output.
    pub fn server_output(&self) -> ServerOutput {
        self.report.server_output()
    }

    fn interval_line(&mut self, interval: &Interval) -> String {
        if !self.report.notes(interval) {
            return String::new();
        }
        if self.full_output || self.client_wants_output() {
            self.report.intervals.push(interval);
        }
        let start = self.report.start.as_ref();
        let object =
            start.map(|start| interval::object(interval, start, self.report.options.plain));
        object.map_or(String::new(), |object| self.line("interval", object))
    }

    fn last_lines(&self) -> String {
        let mut lines = String::new();
        if let Some(error) = self.report.error() {
            lines += &self.line("error", error.into());
        }
        if let Some(output) = self.report.end.as_ref().and_then(|end| end.server_output.as_ref()) {
            let (event, data) = server_output_member(output);
            lines += &self.line(event, data);
        }
        lines += &self.end_line();
        if self.full_output {
            lines += &to_document_string(&self.report.finish());
        }
        lines
    }

    /// With what a document says of the whole test, where anything was measured.
    fn end_line(&self) -> String {
        let mut own = self.number();
        let is_measured = self.report.end.as_ref().is_some_and(|end| !end.streams.is_empty());
        if is_measured && !self.report.options.plain {
            own.put("concurrent_tests", self.report.concurrent_tests);
            own.put("has_peer_results", self.report.has_peer_results());
            own.put("engine", self.report.engine());
            own.put("streams", self.report.streams());
            own.put("verdicts", self.report.verdicts());
        }
        line("end", self.report.end_object(), own)
    }

    fn line(&self, event: &str, data: Value) -> String {
        line(event, data, self.number())
    }

    /// The test's number, where that is not plain from the order of the lines.
    fn number(&self) -> Object {
        let mut own = Object::default();
        if self.is_numbered {
            let number = self.report.connection().map_or(0, |connection| connection.test_number);
            own.put("test_number", number);
        }
        own
    }

    fn client_wants_output(&self) -> bool {
        self.report.start.as_ref().is_some_and(|start| {
            start.connection.end == End::Server && start.settings.server_output
        })
    }
}

/// One line; with what is linerate's own, if there is any.
fn line(event: &str, data: Value, own: Object) -> String {
    let mut line = Object::default();
    line.put("event", event);
    line.put("data", data);
    if !own.0.is_empty() {
        line.put("linerate", own);
    }
    format!("{}\n", Value::from(line))
}
