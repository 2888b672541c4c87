//! The command line: words in, a checked [`Command`] out. It prints nothing and ends nothing; what a
//! person should read instead of a test comes back as [`Stop`]. Option names, defaults, limits and
//! the wording of limits equal iperf3 3.21; the help is our own.

mod args;
mod calibrate;
mod output;
mod problem;
mod resolve;
mod value;

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::fmt;
use std::path::Path;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches};

pub use calibrate::CalibrateConfig;
pub use output::OutputConfig;

use self::args::Args;
use self::calibrate::CalibrateArgs;
use self::problem::Problem;
use crate::config::{ClientConfig, ServerConfig};
use crate::error::ExitCode;
use crate::system_info::system_info;

/// What the command is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "one value per process, moved once")]
pub enum Command {
    /// Run one test against a server.
    Client(ClientConfig, OutputConfig),
    /// Serve tests.
    Server(ServerConfig, OutputConfig),
    /// Measure this host itself.
    Calibrate(CalibrateConfig),
}

/// Why there is nothing to run. The texts have no line break at their end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// Help was asked for: for the standard output.
    Help(String),
    /// The version was asked for: for the standard output.
    Version(String),
    /// The command line cannot be used: one line for the standard error.
    Usage(String),
}

impl Stop {
    /// The code to exit with.
    pub const fn exit_code(&self) -> ExitCode {
        match self {
            Self::Help(_) | Self::Version(_) => ExitCode::Success,
            Self::Usage(_) => ExitCode::Usage,
        }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Help(text) | Self::Version(text) | Self::Usage(text)) = self;
        f.write_str(text)
    }
}

/// Reads a whole command line, the program's own name first. All options are read before any is
/// judged by another, so their order does not matter.
///
/// # Errors
/// [`Stop`] when help or the version is asked for, or when the options cannot be used.
pub fn parse(args: impl Iterator<Item = OsString>) -> Result<Command, Stop> {
    let mut args = args;
    let program = program_name(args.next());
    let mut words = Vec::new();
    for arg in args {
        match arg.into_string() {
            Ok(word) => words.push(word),
            Err(arg) => {
                let problem = Problem::new(arg.to_string_lossy(), "must be valid UTF-8");
                return Err(problem.into_stop(&program));
            }
        }
    }

    if words.first().is_some_and(|word| word == CALIBRATE) {
        return calibrate(&words[1..], &program);
    }
    let mut command = args::command(&program);
    let matches = match command.try_get_matches_from_mut(&words) {
        Ok(matches) => matches,
        Err(error) => return Err(stop(&error, &command, &program)),
    };
    let args =
        Args::from_arg_matches(&matches).map_err(|error| stop(&error, &command, &program))?;
    resolve::resolve(args, &command, &matches, &program)
        .map_err(|problem| problem.into_stop(&program))
}

fn calibrate(words: &[String], program: &str) -> Result<Command, Stop> {
    let mut command = CalibrateArgs::command().bin_name(format!("{program} {CALIBRATE}"));
    let matches = command.try_get_matches_from_mut(words);
    let args = matches.and_then(|matches| CalibrateArgs::from_arg_matches(&matches));
    match args {
        Ok(args) => Ok(Command::Calibrate(args.into())),
        Err(error) => Err(stop(&error, &command, program)),
    }
}

/// The name that messages begin with: the one the command was started under, so that a script that
/// calls it `iperf3` finds the words it looks for.
pub fn program_name(arg0: Option<OsString>) -> String {
    arg0.as_deref()
        .and_then(|path| Path::new(path).file_stem())
        .filter(|name| !name.is_empty())
        .map_or_else(|| DEFAULT_PROGRAM.into(), |name| name.to_string_lossy().into_owned())
}

fn stop(error: &clap::Error, command: &clap::Command, program: &str) -> Stop {
    match error.kind() {
        ErrorKind::DisplayHelp => Stop::Help(error.render().to_string().trim_end().into()),
        ErrorKind::DisplayVersion => Stop::Version(version(program)),
        _ => Problem::from_clap(error, command).into_stop(program),
    }
}

fn version(program: &str) -> String {
    format!(
        "{program} {} (equals iperf {})\n{}",
        env!("CARGO_PKG_VERSION"),
        linerate_core::IPERF3_EQUIVALENT,
        system_info()
    )
}

const CALIBRATE: &str = "calibrate";
const DEFAULT_PROGRAM: &str = "linerate";
/// Started under this name, the command prints what iperf3 would and nothing else.
pub const IPERF3_PROGRAM: &str = "iperf3";
