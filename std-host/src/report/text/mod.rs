//! The report that people read, line for line as iperf3 prints it: the same words, columns and
//! trailing blanks. It writes nothing itself; each event gives the text to print for it.

mod details;
mod headers;
mod lines;
mod opening;
mod summary;

use std::sync::Arc;

use linerate_core::test::{End, Role};

use super::{
    Interval, Progress, ServerOutput, Stamps, StreamInterval, TestEnd, TestStart, UnitFormat, json,
    view,
};
use lines::{Label, Tag};

pub use opening::banner;

/// How the report is to look.
#[derive(Debug, Clone, Default)]
pub struct TextOptions {
    /// The unit of rates (`-f`); none fits each rate with one.
    pub format: Option<UnitFormat>,
    /// Tell more about the test (`-V`).
    pub verbose: bool,
    /// After the summary, tell what iperf3 does not (`--explain`).
    pub explain: bool,
    /// Words that a client puts before each line (`-T`).
    pub title: Option<String>,
    /// The system's name, release and machine, as `uname -a` words them.
    pub system_info: String,
    /// What stands before each line, before the title too (`--timestamps`).
    pub stamps: Option<Stamps>,
    /// Name the release of iperf3 instead of this program, for readers that expect its words.
    pub plain: bool,
}

impl TextOptions {
    fn stamped(&self, text: &str) -> String {
        self.stamps.as_ref().map_or_else(|| text.into(), |stamps| stamps.put(text))
    }
}

/// Turns what one test tells into the lines to print.
#[derive(Debug)]
pub struct TextReport {
    options: TextOptions,
    start: Option<Arc<TestStart>>,
    has_intervals: bool,
    has_summary: bool,
    is_numbered: bool,
    test_number: u64,
    /// A server's lines of this test, while its client may want them.
    server_output: Option<String>,
}

impl TextReport {
    /// A report that has printed nothing yet.
    pub fn new(options: TextOptions) -> Self {
        Self {
            options,
            start: None,
            has_intervals: false,
            has_summary: false,
            is_numbered: false,
            test_number: 0,
            server_output: None,
        }
    }

    /// Puts the test's number before each line from here on (`#3 `), or no longer. For a server
    /// that runs several tests at once, whose lines could not be told apart otherwise.
    pub fn set_numbered(&mut self, is_numbered: bool) {
        self.is_numbered = is_numbered;
    }

    /// The text to print for what happened. Warnings are for the error stream and give none here.
    pub fn handle(&mut self, progress: &Progress) -> String {
        let text = match progress {
            Progress::Connected(connection) => {
                self.test_number = connection.test_number;
                if connection.end == End::Server {
                    self.server_output = Some(String::new());
                }
                opening::connected(&self.options, connection)
            }
            Progress::Started(start) => self.on_started(start),
            Progress::Interval(interval) => self.on_interval(interval),
            Progress::OmitEnded => self.on_omit_ended(),
            Progress::Measured(end) => self.on_measured(end),
            Progress::Ended(end) => self.on_ended(end),
            Progress::Warning(_) => String::new(),
        };
        if let Some(output) = &mut self.server_output {
            let text = self.options.stamped(&text);
            match progress {
                Progress::Interval(_) => keep_interval(output, &text),
                _ => output.push_str(&text),
            }
        }
        self.options.stamped(&self.prefixed(&text))
    }

    /// What a server sends its client as its own output: the lines of this test so far.
    pub fn server_output(&self) -> ServerOutput {
        ServerOutput::Text(self.server_output.clone().unwrap_or_default())
    }

    fn on_started(&mut self, start: &Arc<TestStart>) -> String {
        if !start.settings.server_output {
            self.server_output = None;
        }
        self.start = Some(Arc::clone(start));
        opening::started(&self.options, start)
    }

    fn on_interval(&mut self, interval: &Interval) -> String {
        let Some(start) = self.start.clone() else { return String::new() };
        if !view::is_worth_reporting(interval, &start) {
            return String::new();
        }
        let mut text = String::new();
        if !self.has_intervals {
            text += headers::interval(&start, interval);
        } else if start.settings.parallel > 1 {
            text += headers::SEPARATOR;
        }
        self.has_intervals = true;
        for &role in view::directions(&start.settings, start.connection.end) {
            let streams: Vec<_> =
                interval.streams.iter().filter(|stream| stream.role == role).collect();
            for stream in &streams {
                let label = Label::stream(&start, stream.id, role);
                text += &self.interval_line(&start, &label, stream);
            }
            if let (true, Some(sum)) = (streams.len() > 1, view::interval_sum(&streams)) {
                text += &self.interval_line(&start, &Label::sum(&start, role), &sum);
            }
        }
        text
    }

    fn interval_line(&self, start: &TestStart, label: &Label, stream: &StreamInterval) -> String {
        let tag = if stream.omitted { Tag::Omitted } else { Tag::Empty };
        let data = lines::data(label, stream.span, stream.bytes, self.options.format);
        let rest = match (view::is_udp(&start.settings), stream.role) {
            (true, Role::Sender) => lines::packets(
                stream.datagrams.packets,
                view::is_bidirectional(&start.settings),
                tag,
            ),
            (true, Role::Receiver) => lines::loss(&stream.datagrams, tag),
            (false, _) => lines::tcp_interval(label, stream.tcp.as_ref(), tag),
        };
        format!("{data}{rest}\n")
    }

    fn on_omit_ended(&self) -> String {
        let has_one_interval = self.start.as_ref().is_some_and(|start| start.interval.is_none());
        if self.options.verbose && has_one_interval {
            "Finished omit period, starting real test\n".into()
        } else {
            String::new()
        }
    }

    /// A server tells what it measured before it hears from its client, who may have asked for the
    /// lines; a client waits for the other half.
    fn on_measured(&mut self, end: &TestEnd) -> String {
        match &self.start {
            Some(start) if start.connection.end == End::Server => self.summary(end),
            _ => String::new(),
        }
    }

    fn on_ended(&mut self, end: &TestEnd) -> String {
        let mut text = self.summary(end);
        text += &self.details(end);
        if let Some(output) = &end.server_output {
            text += &server_output_section(output);
        }
        let is_client =
            self.start.as_ref().is_some_and(|start| start.connection.end == End::Client);
        if is_client && end.error.is_none() {
            text += "\niperf Done.\n";
        }
        text
    }

    /// The summary, unless it was printed before or nothing was measured.
    fn summary(&mut self, end: &TestEnd) -> String {
        match &self.start {
            Some(start) if !self.has_summary && !end.streams.is_empty() => {
                self.has_summary = true;
                summary::text(&self.options, start, end)
            }
            _ => String::new(),
        }
    }

    /// What is known beyond that: a server's comes with the end of the test, when it has heard from its
    /// client.
    fn details(&self, end: &TestEnd) -> String {
        match &self.start {
            Some(start) if self.options.explain && !self.options.plain => {
                details::text(&self.options, start, end)
            }
            _ => String::new(),
        }
    }

    fn prefixed(&self, text: &str) -> String {
        let mut prefix = String::new();
        if let Some(title) = &self.options.title {
            prefix += &format!("{title}:  ");
        }
        if self.is_numbered {
            prefix += &format!("#{} ", self.test_number);
        }
        prefix_lines(text, &prefix)
    }
}

/// Puts `prefix` before each line of `text`.
pub(super) fn prefix_lines(text: &str, prefix: &str) -> String {
    if prefix.is_empty() {
        return text.into();
    }
    text.split_inclusive('\n').map(|line| format!("{prefix}{line}")).collect()
}

/// Adds an interval to the output that a client asked for. It is the client that says how long the
/// test runs, so what is kept for it has a bound; the summary comes in any case.
fn keep_interval(output: &mut String, text: &str) {
    if output.len() + text.len() <= OUTPUT_LIMIT {
        output.push_str(text);
    } else if !output.ends_with(LEFT_OUT) {
        output.push_str(LEFT_OUT);
    }
}

/// Bytes of intervals that are kept for a client: eight hours of ten streams, a second each.
const OUTPUT_LIMIT: usize = 16 << 20;
const LEFT_OUT: &str = "[further intervals are left out]\n";

fn server_output_section(output: &ServerOutput) -> String {
    match output {
        ServerOutput::Text(text) => format!("\nServer output:\n{text}\n"),
        ServerOutput::Json(document) => {
            format!("\nServer JSON output:\n{}", json::to_document_string(document))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_kept_for_a_client_has_a_bound() {
        let line = format!("{}\n", "x".repeat(9999));
        let mut output = String::new();
        for _ in 0..2 * OUTPUT_LIMIT / line.len() {
            keep_interval(&mut output, &line);
        }
        assert!(output.len() <= OUTPUT_LIMIT + LEFT_OUT.len());
        assert_eq!(output.matches(LEFT_OUT).count(), 1);
    }
}
