//! How the command lives beside other processes.

use std::path::PathBuf;

use super::LimitsConfig;

/// What becomes of the process before it begins its work.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ProcessConfig {
    /// Go into the background (`-D`).
    pub daemon: bool,
    /// File that holds the process id meanwhile (`-I`).
    pub pidfile: Option<PathBuf>,
    /// Where a server's limits come from.
    pub limits: LimitsConfig,
}
