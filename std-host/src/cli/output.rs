//! How the command shows what a test tells: nothing here changes what is measured.

use std::path::PathBuf;

use crate::report::UnitFormat;
use crate::report::log::LogFormat;

/// What the output looks like.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutputConfig {
    /// The name that messages begin with.
    pub program: String,
    /// Unit of the rates (`-f`); none picks one for each number.
    pub format: Option<UnitFormat>,
    /// One JSON document instead of text (`-J`).
    pub json: bool,
    /// Lines of JSON as things happen, and whether the document follows them; goes before `json`
    /// (`--json-stream`, `--json-stream-full-output`).
    pub json_stream: Option<JsonStreamKind>,
    /// File that everything is appended to instead (`--logfile`).
    pub logfile: Option<PathBuf>,
    /// What every line of text begins with, as strftime formats a time (`--timestamps`).
    pub timestamps: Option<String>,
    /// How much to tell of what happens inside, 1 to 4 (`-d`).
    pub debug: Option<u8>,
    /// Server: lines of a log for each test (`--test-log`); none leaves it to whether somebody
    /// watches.
    pub test_log: Option<LogChoice>,
    /// More detail in the text (`-V`).
    pub verbose: bool,
    /// Explain the result and print hints and warnings, terminal or not (`--explain`). Off under the
    /// name `iperf3`, whose readers expect its lines and no others.
    pub explain: bool,
    /// Name of the test, before every line of text (`-T`).
    pub title: Option<String>,
    /// An option was given that does nothing any more.
    pub has_obsolete: bool,
}

/// The log lines of a server that were asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogChoice {
    /// None.
    Off,
    /// In this form.
    Lines(LogFormat),
}

/// What lines of JSON end with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonStreamKind {
    /// Nothing more.
    Lines,
    /// The whole document.
    LinesAndDocument,
}

impl OutputConfig {
    /// Nothing but JSON belongs on the standard output.
    pub const fn is_json(&self) -> bool {
        self.json || self.json_stream.is_some()
    }

    /// Options that are given but have no effect on this output, in words for a person.
    pub fn warnings(&self) -> impl Iterator<Item = &'static str> {
        let format = self.is_json() && self.format.is_some();
        [
            (format, "Report format (-f) flag ignored with JSON output (-J)"),
            (self.has_obsolete, "--no-fq-socket-pacing is deprecated and does nothing"),
        ]
        .into_iter()
        .filter_map(|(is_given, text)| is_given.then_some(text))
    }
}
