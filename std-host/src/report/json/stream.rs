//! The `--json-stream` report: the same objects as the document's, each on a line of its own as soon
//! as it is known.

use linerate_core::test::End;
use serde_json::{Value, json};

use super::{JsonOptions, JsonReport, server_output_member, to_document_string};
use crate::report::{Progress, ServerOutput};

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
}

impl JsonStream {
    /// A stream that has said nothing yet.
    pub fn new(options: StreamOptions) -> Self {
        Self { report: JsonReport::new(options.json), full_output: options.full_output }
    }

    /// The lines to print for what happened.
    pub fn handle(&mut self, progress: &Progress) -> String {
        let intervals_before = self.report.intervals.len();
        self.report.handle(progress);
        match progress {
            Progress::Started(_) => line("start", self.report.start_object()),
            Progress::Interval(_) => self.interval_line(intervals_before),
            Progress::Ended(_) => self.last_lines(),
            _ => String::new(),
        }
    }

    /// What a server sends its client as its own output.
    pub fn server_output(&self) -> ServerOutput {
        self.report.server_output()
    }

    fn interval_line(&mut self, intervals_before: usize) -> String {
        if self.report.intervals.len() == intervals_before {
            return String::new();
        }
        let keeps_intervals = self.full_output || self.client_wants_output();
        let intervals = &mut self.report.intervals;
        let interval = if keeps_intervals { intervals.last().cloned() } else { intervals.pop() };
        interval.map_or(String::new(), |interval| line("interval", interval))
    }

    fn last_lines(&self) -> String {
        let mut lines = String::new();
        if let Some(error) = self.report.error() {
            lines += &line("error", error.into());
        }
        if let Some(output) = self.report.end.as_ref().and_then(|end| end.server_output.as_ref()) {
            let (event, data) = server_output_member(output);
            lines += &line(event, data);
        }
        lines += &line("end", self.report.end_object());
        if self.full_output {
            lines += &to_document_string(&self.report.finish());
        }
        lines
    }

    fn client_wants_output(&self) -> bool {
        self.report.start.as_ref().is_some_and(|start| {
            start.connection.end == End::Server && start.settings.server_output
        })
    }
}

fn line(event: &str, data: Value) -> String {
    format!("{}\n", json!({ "event": event, "data": data }))
}
