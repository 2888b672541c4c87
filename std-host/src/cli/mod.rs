//! The command line: words in, a checked [`Command`] out. It prints nothing and ends nothing; what a
//! person should read instead of a test comes back as [`Stop`]. Option names, defaults, limits and
//! the wording of limits equal iperf3 3.21; the help is our own.

mod args;
mod auth;
mod calibrate;
mod examples;
mod generate;
mod limits;
mod output;
mod problem;
mod process;
mod resolve;
mod service;
mod value;

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::fmt;
use std::path::Path;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches};

pub use auth::AuthConfig;
pub use calibrate::CalibrateConfig;
pub use limits::LimitsConfig;
pub use output::{JsonStreamKind, LogChoice, OutputConfig};
pub use process::ProcessConfig;
pub use service::{ServiceConfig, words_of_service};

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
    Client(ClientConfig, OutputConfig, ProcessConfig),
    /// Serve tests.
    Server(ServerConfig, OutputConfig, ProcessConfig),
    /// Make keys or users for a server's logins.
    Auth(AuthConfig),
    /// Measure this host itself.
    Calibrate(CalibrateConfig),
    /// Deal with a server that is a service of Windows.
    Service(ServiceConfig),
}

/// Why there is nothing to run. The texts have no line break at their end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// Help was asked for: for the standard output.
    Help(String),
    /// The version was asked for: for the standard output.
    Version(String),
    /// A text made from the options, completions or the manual: for the standard output.
    Generated(String),
    /// The command line cannot be used: one line for the standard error.
    Usage(String),
}

impl Stop {
    /// The code to exit with.
    pub const fn exit_code(&self) -> ExitCode {
        match self {
            Self::Help(_) | Self::Version(_) | Self::Generated(_) => ExitCode::Success,
            Self::Usage(_) => ExitCode::Usage,
        }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Help(text) | Self::Version(text) | Self::Generated(text) | Self::Usage(text)) =
            self;
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
    let words: Vec<OsString> = args.collect();

    if let Some(name) = words.first().and_then(|word| word.to_str())
        && SUBCOMMANDS.contains(&name)
    {
        return subcommand(name, &words[1..], &program);
    }
    let mut command = args::command(&program);
    let matches = match command.try_get_matches_from_mut(&words) {
        Ok(matches) => matches,
        Err(error) => return Err(stop(&error, &command, &words, &program)),
    };
    let args = Args::from_arg_matches(&matches)
        .map_err(|error| stop(&error, &command, &words, &program))?;
    resolve::resolve(args, &command, &matches, &program)
        .map_err(|problem| problem.into_stop(&program))
}

/// What stands for itself as the first word, instead of a role.
fn subcommand(name: &str, words: &[OsString], program: &str) -> Result<Command, Stop> {
    match name {
        AUTH => auth::parse(words, program).map(Command::Auth),
        CALIBRATE => {
            Ok(Command::Calibrate(words_of::<CalibrateArgs>(name, words, program)?.into()))
        }
        SERVICE => service::parse(words, program).map(Command::Service),
        COMPLETIONS => {
            let args = words_of(name, words, program)?;
            Err(Stop::Generated(generate::completions(&args, program)))
        }
        _ => {
            words_of::<generate::ManArgs>(name, words, program)?;
            let manual = generate::manual(program);
            Err(Stop::Generated(manual.expect("memory takes every write")))
        }
    }
}

/// The options of a subcommand.
fn words_of<A: CommandFactory + FromArgMatches>(
    name: &str,
    words: &[OsString],
    program: &str,
) -> Result<A, Stop> {
    let mut command = A::command().bin_name(format!("{program} {name}"));
    let matches = command.try_get_matches_from_mut(words);
    let args = matches.and_then(|matches| A::from_arg_matches(&matches));
    args.map_err(|error| stop(&error, &command, words, program))
}

/// The name that messages begin with: the one the command was started under, so that a script that
/// calls it `iperf3` finds the words it looks for.
pub fn program_name(arg0: Option<OsString>) -> String {
    arg0.as_deref()
        .and_then(|path| Path::new(path).file_stem())
        .filter(|name| !name.is_empty())
        .map_or_else(|| DEFAULT_PROGRAM.into(), |name| name.to_string_lossy().into_owned())
}

fn stop(error: &clap::Error, command: &clap::Command, words: &[OsString], program: &str) -> Stop {
    match error.kind() {
        ErrorKind::InvalidUtf8 => {
            let word = words.iter().find(|word| word.to_str().is_none());
            let word = word.map(|word| word.to_string_lossy()).unwrap_or_default();
            Problem::new(word, "must be valid UTF-8").into_stop(program)
        }
        ErrorKind::DisplayHelp => Stop::Help(error.render().to_string().trim_end().into()),
        ErrorKind::DisplayVersion => Stop::Version(version(program)),
        _ => Problem::from_clap(error, command).into_stop(program),
    }
}

/// iperf3's first word and number come first under its name, where scripts look for them.
fn version(program: &str) -> String {
    let own = env!("CARGO_PKG_VERSION");
    let equal = linerate_core::IPERF3_EQUIVALENT;
    let first = if program == IPERF3_PROGRAM {
        format!("iperf {equal} (linerate {own})")
    } else {
        format!("{program} {own} (equals iperf {equal})")
    };
    format!("{first}\n{}\nOptional features available: {}", system_info(), features())
}

/// What iperf3 may have been built without, in its words.
fn features() -> String {
    let on_linux = cfg!(target_os = "linux");
    let bsd = cfg!(target_os = "freebsd");
    [
        (on_linux || bsd, "CPU affinity setting"),
        (on_linux, "IPv6 flow label"),
        (on_linux, "SCTP"),
        (on_linux || bsd, "TCP congestion algorithm setting"),
        (on_linux || bsd, "sendfile / zerocopy"),
        (on_linux, "socket pacing"),
        (true, "authentication"),
        (on_linux, "bind to device"),
        (true, "support IPv4 don't fragment"),
        (true, "POSIX threads"),
        (on_linux, "GSO/GRO support"),
    ]
    .iter()
    .filter_map(|&(is_there, name)| is_there.then_some(name))
    .collect::<Vec<_>>()
    .join(", ")
}

const AUTH: &str = "auth";
const CALIBRATE: &str = "calibrate";
const COMPLETIONS: &str = "completions";
const MAN: &str = "man";
const SERVICE: &str = "service";
const SUBCOMMANDS: [&str; 5] = [AUTH, CALIBRATE, COMPLETIONS, MAN, SERVICE];
const DEFAULT_PROGRAM: &str = "linerate";
/// Started under this name, the command prints what iperf3 would and nothing else.
pub const IPERF3_PROGRAM: &str = "iperf3";
