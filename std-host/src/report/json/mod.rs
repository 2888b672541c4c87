//! The `-J` report: one document for each test, with iperf3's keys, types, order and layout, and
//! what is linerate's own under the one key `linerate`. Where iperf3 repeats a key or prints a wrong
//! number, this prints the key once and the right one.

mod detail;
mod end;
mod interval;
mod intervals;
mod layout;
mod start;
mod stream;

use std::sync::Arc;

use linerate_core::test::End;
use serde_json::{Map, Value, json};

use super::{
    Connection, Engine, Interval, Progress, ServerOutput, TestEnd, TestStart, Warning, message,
    version, view,
};
use crate::error::Error;
use intervals::{Intervals, MOST_OF_A_SERVER};

pub use layout::to_document_string;
pub use stream::{JsonStream, StreamOptions};

/// How the document is to be made.
#[derive(Debug, Clone, Default)]
pub struct JsonOptions {
    /// The system's name, release and machine, as `uname -a` words them.
    pub system_info: String,
    /// Leave the key `linerate` out, for readers that expect iperf3's keys and no other.
    pub plain: bool,
}

/// Collects what one test tells and makes a document of it.
#[derive(Debug)]
pub struct JsonReport {
    options: JsonOptions,
    connection: Option<Arc<Connection>>,
    start: Option<Arc<TestStart>>,
    intervals: Intervals,
    end: Option<Arc<TestEnd>>,
    warnings: Vec<Warning>,
    concurrent_tests: Option<u32>,
}

impl JsonReport {
    /// A report that has heard nothing yet; finished as it is, it still is a complete document.
    pub fn new(options: JsonOptions) -> Self {
        Self {
            options,
            connection: None,
            start: None,
            intervals: Intervals::new(),
            end: None,
            warnings: Vec::new(),
            concurrent_tests: None,
        }
    }

    /// Takes note of what happened.
    pub fn handle(&mut self, progress: &Progress) {
        match progress {
            Progress::Connected(connection) => self.connection = Some(Arc::clone(connection)),
            Progress::Started(start) => self.on_started(start),
            Progress::Interval(interval) => {
                if self.notes(interval) {
                    self.intervals.push(interval);
                }
            }
            Progress::Measured(end) | Progress::Ended(end) => {
                self.concurrent_tests = self.concurrent_tests.max(end.concurrent_tests);
                self.end = Some(Arc::clone(end));
            }
            Progress::Warning(warning) => self.warnings.push(warning.clone()),
            Progress::OmitEnded => {}
        }
    }

    fn on_started(&mut self, start: &Arc<TestStart>) {
        if start.connection.end == End::Server {
            self.intervals.bound();
        }
        self.start = Some(Arc::clone(start));
    }

    /// Takes note of an interval without keeping it; tells whether it belongs into the document.
    fn notes(&mut self, interval: &Interval) -> bool {
        if self.connection().is_some_and(|connection| connection.end == End::Server) {
            self.concurrent_tests = self.concurrent_tests.max(Some(interval.concurrent_tests));
        }
        self.start.as_ref().is_some_and(|start| view::is_worth_reporting(interval, start))
    }

    /// The document, as far as the test came.
    pub fn finish(&self) -> Value {
        let mut document = self.measurements(self.options.plain);
        if let Some(connection) = self.connection() {
            if let Some(title) = &connection.title {
                document.put("title", title.as_str());
            }
            if let Some(extra_data) = &connection.extra_data {
                document.put("extra_data", extra_data.as_str());
            }
        }
        if let Some(end) = &self.end {
            if let Some(output) = &end.server_output {
                let (key, value) = server_output_member(output);
                document.put(key, value);
            }
            if let Some(error) = self.error() {
                document.put("error", error);
            }
        }
        if !self.options.plain {
            document.put("linerate", self.own());
        }
        document.into()
    }

    /// The document of an end that failed before it had a peer.
    pub fn without_peer(options: JsonOptions, error: &Error, end: End) -> Value {
        let report = Self::new(options);
        let mut document = report.measurements(report.options.plain);
        document.put("error", message::error_value(error, end));
        if !report.options.plain {
            document.put("linerate", report.own());
        }
        document.into()
    }

    /// What a server sends its client as its own output: the document so far, of which the client
    /// knows title and extra data already. What is linerate's own is in its results.
    pub fn server_output(&self) -> ServerOutput {
        ServerOutput::Json(self.measurements(true).into())
    }

    fn measurements(&self, plain: bool) -> Object {
        let mut document = Object::default();
        document.put("start", self.start_object());
        let objects = |start: &Arc<TestStart>| {
            let intervals = self.intervals.iter();
            intervals.map(|interval| interval::object(interval, start, plain)).collect()
        };
        document.put("intervals", self.start.as_ref().map_or_else(Vec::new, objects));
        document.put("end", self.end_object());
        document
    }

    fn start_object(&self) -> Value {
        start::object(&self.options, self.connection(), self.start.as_deref())
    }

    fn end_object(&self) -> Value {
        match (&self.start, &self.end) {
            (Some(start), Some(end)) if !end.streams.is_empty() => end::object(start, end),
            _ => Object::default().into(),
        }
    }

    fn error(&self) -> Option<String> {
        let error = self.end.as_ref()?.error.as_ref()?;
        let end = self.connection().map_or(End::Client, |connection| connection.end);
        Some(message::error_value(error, end))
    }

    /// The connection as it is known best: a server learns title and extra data after it accepts.
    fn connection(&self) -> Option<&Connection> {
        match &self.start {
            Some(start) => Some(&start.connection),
            None => self.connection.as_deref(),
        }
    }

    /// Without them the other side of each stream stands in `end` as zeros, which it need not have
    /// been.
    fn has_peer_results(&self) -> bool {
        let mut streams = self.end.iter().flat_map(|end| &end.streams);
        streams.any(|stream| stream.remote.is_some())
    }

    /// How this end moved the data, by direction.
    fn engine(&self) -> Value {
        let mut object = Object::default();
        for (direction, how) in self.end.iter().flat_map(|end| &end.engines).map(Engine::member) {
            object.put(direction, how);
        }
        if self.end.as_ref().is_some_and(|end| end.remote_batch_jitter) {
            object.put("peer", json!({ "jitter_of_batches": true }));
        }
        object.into()
    }

    /// What both ends know of each stream beyond iperf3's numbers.
    fn streams(&self) -> Vec<Value> {
        let known = self.start.as_ref().zip(self.end.as_ref());
        known.map_or_else(Vec::new, |(start, end)| detail::streams(start, end))
    }

    /// What limited the test.
    fn verdicts(&self) -> Vec<Value> {
        self.end.as_ref().map_or_else(Vec::new, |end| detail::verdicts(end))
    }

    fn own(&self) -> Value {
        let mut warnings: Vec<String> = self.warnings.iter().map(message::warning_text).collect();
        warnings.extend(self.intervals.joined().map(|joined| {
            format!(
                "a server keeps {MOST_OF_A_SERVER} intervals of streams: each element of \
                 intervals is {joined} of the test"
            )
        }));
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "test_number": self.connection().map_or(0, |connection| connection.test_number),
            "concurrent_tests": self.concurrent_tests,
            "has_peer_results": self.has_peer_results(),
            "engine": self.engine(),
            "streams": self.streams(),
            "verdicts": self.verdicts(),
            "warnings": warnings,
        })
    }
}

/// Key and value under which a client's document shows the server's output, and under which the
/// server's results carry it.
pub fn server_output_member(output: &ServerOutput) -> (&'static str, Value) {
    match output {
        ServerOutput::Text(text) => ("server_output_text", text.as_str().into()),
        ServerOutput::Json(document) => ("server_output_json", document.clone()),
    }
}

/// An object under construction, in order and without a key twice.
#[derive(Debug, Default)]
struct Object(Map<String, Value>);

impl Object {
    fn put(&mut self, key: &str, value: impl Into<Value>) {
        let previous = self.0.insert(key.into(), value.into());
        debug_assert!(previous.is_none(), "{key} stands in the object already");
    }

    /// Leaves out what is not known.
    fn put_known(&mut self, key: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.put(key, value);
        }
    }

    /// Leaves out an object without members.
    fn put_filled(&mut self, key: &str, object: Object) {
        if !object.0.is_empty() {
            self.put(key, object);
        }
    }
}

impl From<Object> for Value {
    fn from(object: Object) -> Self {
        Self::Object(object.0)
    }
}

/// A number that is written without a fraction when it has none. What is not finite cannot be
/// measured and counts as zero.
fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < MAX_EXACT {
        Value::from(value as i64)
    } else {
        serde_json::Number::from_f64(value).map_or(Value::from(0), Value::Number)
    }
}

/// Above it a double has gaps between the integers.
const MAX_EXACT: f64 = (1_u64 << 53) as f64;
