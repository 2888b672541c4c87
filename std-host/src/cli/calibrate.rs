//! The words after `linerate calibrate`.

use clap::{ArgAction, Parser};

/// What `linerate calibrate` is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CalibrateConfig {
    /// Seconds for each kind of work.
    pub seconds: u32,
    /// One JSON document instead of a table (`-J`).
    pub json: bool,
}

/// Shows what this host can do before any network is blamed: client and server in one process, over
/// loopback, through the same code as every test.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true, max_term_width = 100)]
pub(super) struct CalibrateArgs {
    /// Seconds for each kind of work, 1 to 60
    #[arg(short, long, value_name = "SECONDS", default_value_t = 2)]
    #[arg(value_parser = seconds, allow_negative_numbers = true)]
    time: u32,

    /// Print one JSON document
    #[arg(short = 'J', long)]
    json: bool,

    /// Print this help
    #[arg(short, long, action = ArgAction::Help)]
    help: Option<bool>,
}

fn seconds(text: &str) -> Result<u32, String> {
    let seconds = text.parse().ok().filter(|seconds| (1..=60).contains(seconds));
    seconds.ok_or_else(|| "seconds for each kind of work must be 1 to 60".into())
}

impl From<CalibrateArgs> for CalibrateConfig {
    fn from(args: CalibrateArgs) -> Self {
        Self { seconds: args.time, json: args.json }
    }
}
