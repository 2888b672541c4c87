//! How the command shows what a test tells: nothing here changes what is measured.

use std::str::FromStr;

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
    /// Say what limited the test (`--explain`). Off under the name `iperf3`, whose readers expect
    /// its lines and no others.
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

/// A fixed unit for rates: bits in steps of 1000, or bytes in steps of 1024.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnitFormat {
    /// `k`: Kbits/sec.
    Kilobits,
    /// `m`: Mbits/sec.
    Megabits,
    /// `g`: Gbits/sec.
    Gigabits,
    /// `t`: Tbits/sec.
    Terabits,
    /// `K`: KBytes/sec.
    Kilobytes,
    /// `M`: MBytes/sec.
    Megabytes,
    /// `G`: GBytes/sec.
    Gigabytes,
    /// `T`: TBytes/sec.
    Terabytes,
}

impl FromStr for UnitFormat {
    type Err = UnknownFormat;

    /// Only the first letter counts: `Mbits` is `M`.
    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        Ok(match text.chars().next() {
            Some('k') => Self::Kilobits,
            Some('m') => Self::Megabits,
            Some('g') => Self::Gigabits,
            Some('t') => Self::Terabits,
            Some('K') => Self::Kilobytes,
            Some('M') => Self::Megabytes,
            Some('G') => Self::Gigabytes,
            Some('T') => Self::Terabytes,
            _ => return Err(UnknownFormat),
        })
    }
}

/// A letter that stands for no [`UnitFormat`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownFormat;
