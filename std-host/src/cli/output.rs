//! How the command shows what a test tells: nothing here changes what is measured.

use crate::report::UnitFormat;

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
    /// More detail in the text (`-V`).
    pub verbose: bool,
    /// Print hints and warnings even where no terminal shows them (`--explain`). Off under the name
    /// `iperf3`, whose readers expect its lines and no others.
    pub explain: bool,
    /// Name of the test, before every line of text (`-T`).
    pub title: Option<String>,
}

impl OutputConfig {
    /// Options that are given but have no effect on this output, in words for a person.
    pub fn warnings(&self) -> impl Iterator<Item = &'static str> {
        (self.json && self.format.is_some())
            .then_some("Report format (-f) flag ignored with JSON output (-J)")
            .into_iter()
    }
}
