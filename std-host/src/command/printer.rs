//! The report of one test in the form that the options ask for.

use std::io::{self, IsTerminal};

use linerate::cli::{IPERF3_PROGRAM, JsonStreamKind, OutputConfig};
use linerate::error::Error;
use linerate::report::json::{
    JsonOptions, JsonReport, JsonStream, StreamOptions, to_document_string,
};
use linerate::report::text::{TextOptions, TextReport};
use linerate::report::{Progress, ServerOutput, Stamps};
use linerate::system_info::system_info;
use linerate_core::test::End;

/// A report, as it grows.
pub(super) enum Report {
    Text(Box<TextReport>),
    Document(Box<JsonReport>),
    Stream(Box<JsonStream>),
}

impl Report {
    pub(super) fn new(output: &OutputConfig) -> Self {
        match output.json_stream {
            Some(kind) => Self::Stream(Box::new(JsonStream::new(stream_options(output, kind)))),
            None if output.json => Self::Document(Box::new(JsonReport::new(json_options(output)))),
            None => Self::Text(Box::new(TextReport::new(text_options(output)))),
        }
    }

    /// What to print of an end that failed before it had a peer; nothing in text, which says it on
    /// the error stream.
    pub(super) fn without_peer(output: &OutputConfig, error: &Error, end: End) -> Option<String> {
        match output.json_stream {
            Some(kind) => Some(JsonStream::without_peer(stream_options(output, kind), error, end)),
            None if output.json => {
                let document = JsonReport::without_peer(json_options(output), error, end);
                Some(to_document_string(&document))
            }
            None => None,
        }
    }

    /// What to print for what happened.
    pub(super) fn handle(&mut self, progress: &Progress) -> String {
        match self {
            Self::Text(report) => report.handle(progress),
            Self::Stream(report) => report.handle(progress),
            Self::Document(report) => {
                report.handle(progress);
                match progress {
                    Progress::Ended(_) => to_document_string(&report.finish()),
                    _ => String::new(),
                }
            }
        }
    }

    /// Tells apart what is printed of several tests at once; documents come whole.
    pub(super) fn set_numbered(&mut self, is_numbered: bool) {
        match self {
            Self::Text(report) => report.set_numbered(is_numbered),
            Self::Stream(report) => report.set_numbered(is_numbered),
            Self::Document(_) => {}
        }
    }

    /// What a server sends its client as its own output.
    pub(super) fn server_output(&self) -> ServerOutput {
        match self {
            Self::Text(report) => report.server_output(),
            Self::Document(report) => report.server_output(),
            Self::Stream(report) => report.server_output(),
        }
    }

    /// Errors are not in it, but on the error stream.
    pub(super) const fn is_text(&self) -> bool {
        matches!(self, Self::Text(_))
    }
}

pub(super) fn text_options(output: &OutputConfig) -> TextOptions {
    TextOptions {
        format: output.format,
        verbose: output.verbose,
        explain: output.explain || is_read_by_a_person(output),
        title: output.title.clone(),
        system_info: system_info(),
        stamps: output.timestamps.clone().map(Stamps::new),
        plain: is_plain(output),
    }
}

fn json_options(output: &OutputConfig) -> JsonOptions {
    JsonOptions { system_info: system_info(), plain: is_plain(output) }
}

fn stream_options(output: &OutputConfig, kind: JsonStreamKind) -> StreamOptions {
    let full_output = kind == JsonStreamKind::LinesAndDocument;
    StreamOptions { json: json_options(output), full_output }
}

/// The report goes to a terminal.
fn is_read_by_a_person(output: &OutputConfig) -> bool {
    output.logfile.is_none() && io::stdout().is_terminal()
}

/// The program was started under iperf3's name, whose readers expect its output and nothing more.
pub(super) fn is_plain(output: &OutputConfig) -> bool {
    output.program == IPERF3_PROGRAM
}
