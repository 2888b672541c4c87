//! A client of either tool against a port of the loopback, or of another network.

use std::time::Duration;

#[cfg(target_os = "linux")]
use crate::namespace::Namespace;
use crate::process::{Ended, Process};
use crate::tool::Tool;

/// Starts a client against `host` and `port` with these options.
pub fn start(tool: Tool, host: &str, port: u16, options: &[&str]) -> Process {
    let mut command = tool.command();
    command.args(["-c", host, "-p", &port.to_string()]).args(options);
    Process::start(&mut command)
}

/// Starts one in a network namespace.
#[cfg(target_os = "linux")]
pub fn start_in(
    namespace: &Namespace,
    tool: Tool,
    host: &str,
    port: u16,
    options: &[&str],
) -> Process {
    let mut command = namespace.within(&tool.command());
    command.args(["-c", host, "-p", &port.to_string()]).args(options);
    Process::start(&mut command)
}

/// Runs a client to its end, which must come within `limit`.
///
/// # Errors
///
/// When the client takes longer.
pub fn run(
    tool: Tool,
    host: &str,
    port: u16,
    options: &[&str],
    limit: Duration,
) -> Result<Ended, String> {
    start(tool, host, port, options).wait(limit)
}
