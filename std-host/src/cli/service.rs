//! The words after `linerate service`. They are read on every system, and are of use on Windows.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::error::ErrorKind;
use clap::{ArgAction, CommandFactory, FromArgMatches, Parser, Subcommand};

use super::problem::{Problem, spelling};
use super::{Command, OutputConfig, ProcessConfig, SERVICE, Stop, stop};
use crate::config::ServerConfig;

/// What `linerate service` is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServiceConfig {
    /// Make a service.
    Install {
        /// What commands call it.
        name: OsString,
        /// What lists of services call it.
        display_name: String,
        /// The words of its server's command line, which were checked.
        words: Vec<OsString>,
    },
    /// Let it begin, and wait until it works.
    Start(OsString),
    /// Let it end, and wait for that.
    Stop(OsString),
    /// Say what it does.
    Status(OsString),
    /// Stop and remove it.
    Uninstall(OsString),
    /// Be it: what the service manager starts.
    Run {
        /// What it is called.
        name: OsString,
        /// The words of its server's command line, not checked again as yet.
        words: Vec<OsString>,
    },
}

/// Runs a server as a service of Windows, without anybody who is logged in. On other systems it is
/// refused: a unit for systemd is in docs/server.md.
///
///   linerate service install -- -s -p 5201 --max-bitrate 1G
///   linerate service start
///   linerate service uninstall
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true, disable_help_subcommand = true)]
#[command(max_term_width = 100, verbatim_doc_comment)]
pub(super) struct ServiceArgs {
    #[command(subcommand)]
    what: What,

    /// Print this help
    #[arg(short, long, global = true, action = ArgAction::Help)]
    help: Option<bool>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Make a service that starts with Windows, and again when it fails
    Install {
        #[command(flatten)]
        of: Name,

        /// Its name in lists of services [default: linerate server, and its name if it has another]
        #[arg(long, value_name = "TEXT", value_parser = display_name)]
        display_name: Option<String>,

        #[command(flatten)]
        server: Words,
    },
    /// Start it, and wait until it serves
    Start(Name),
    /// Stop it, and wait until it has ended
    Stop(Name),
    /// Say what it does
    Status(Name),
    /// Stop and remove it
    Uninstall(Name),
    /// Be the service: what the service manager starts
    #[command(hide = true)]
    Run {
        #[command(flatten)]
        of: Name,

        #[command(flatten)]
        server: Words,
    },
}

#[derive(Debug, clap::Args)]
struct Name {
    /// The service, for more than one on a machine
    #[arg(long, value_name = "NAME", default_value = super::DEFAULT_PROGRAM)]
    #[arg(value_parser = name)]
    name: String,
}

#[derive(Debug, clap::Args)]
struct Words {
    /// The options of the server, behind -- [default: -s]
    #[arg(last = true, value_name = "OPTIONS")]
    server: Vec<OsString>,
}

fn name(text: &str) -> Result<String, String> {
    let fits = |c: char| !c.is_control() && !"/\\\"".contains(c);
    match text.trim() == text && (1..=MOST_NAME).contains(&text.chars().count()) {
        true if text.chars().all(fits) => Ok(text.into()),
        _ => Err(format!("must be 1 to {MOST_NAME} characters, none of them / \\ or \"")),
    }
}

fn display_name(text: &str) -> Result<String, String> {
    match (1..=MOST_NAME).contains(&text.chars().count()) && !text.contains(char::is_control) {
        true => Ok(text.into()),
        false => Err(format!("must be 1 to {MOST_NAME} characters")),
    }
}

/// Reads the words after `service`, and those of the server that they have.
///
/// # Errors
/// [`Stop`] when help is asked for, or when the words cannot be used.
pub(super) fn parse(words: &[OsString], program: &str) -> Result<ServiceConfig, Stop> {
    let mut command = ServiceArgs::command().bin_name(format!("{program} {SERVICE}"));
    let matches = command.try_get_matches_from_mut(words);
    let args = matches.and_then(|matches| ServiceArgs::from_arg_matches(&matches));
    let args = args.map_err(|error| match error.kind() {
        ErrorKind::MissingSubcommand
        | ErrorKind::InvalidSubcommand
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let allowed = "must be followed by install, start, stop, status or uninstall";
            Problem::new(SERVICE, allowed).into_stop(program)
        }
        _ => {
            let of_these = words.first().and_then(|word| command.find_subcommand(word));
            stop(&error, of_these.unwrap_or(&command), words, program)
        }
    })?;
    Ok(match args.what {
        What::Install { of, display_name, server } => {
            let words = match server.server.is_empty() {
                true => vec!["-s".into()],
                false => server.server,
            };
            check(&words, program)?;
            let display_name = display_name.unwrap_or_else(|| of.display_name());
            ServiceConfig::Install { name: of.name.into(), display_name, words }
        }
        What::Start(of) => ServiceConfig::Start(of.name.into()),
        What::Stop(of) => ServiceConfig::Stop(of.name.into()),
        What::Status(of) => ServiceConfig::Status(of.name.into()),
        What::Uninstall(of) => ServiceConfig::Uninstall(of.name.into()),
        What::Run { of, server } => {
            ServiceConfig::Run { name: of.name.into(), words: server.server }
        }
    })
}

impl Name {
    fn display_name(&self) -> String {
        match self.name.as_str() {
            super::DEFAULT_PROGRAM => "linerate server".into(),
            other => format!("linerate server ({other})"),
        }
    }
}

/// Whether these are the words of a server that can be a service.
fn check(words: &[OsString], program: &str) -> Result<(), Stop> {
    let line = std::iter::once(OsString::from(program)).chain(words.iter().cloned());
    let problem = match super::parse(line)? {
        Command::Server(server, output, process) => unfit(&server, &output, &process),
        _ => Some(Problem::new("service install", "only a server can be a service: -s")),
    };
    problem.map_or(Ok(()), |problem| Err(problem.into_stop(program)))
}

/// What a server asks for that a service does not have.
fn unfit(server: &ServerConfig, output: &OutputConfig, process: &ProcessConfig) -> Option<Problem> {
    if process.daemon {
        return Some(Problem::new("-D", "a service is in the background without it"));
    }
    if output.is_json() && output.logfile.is_none() {
        let option = if output.json_stream.is_some() { "--json-stream" } else { "-J" };
        let why = "needs --logfile FILE, a service has no standard output";
        return Some(Problem::new(option, why));
    }
    if output.debug.is_some() && output.logfile.is_none() {
        let why = "needs --logfile FILE, it would flood the event log";
        return Some(Problem::new("-d", why));
    }
    let login = server.login.as_ref();
    let paths = [
        ("-F", server.file.as_deref()),
        ("-I", process.pidfile.as_deref()),
        ("--logfile", output.logfile.as_deref()),
        ("--policy", process.limits.policy()),
        ("--rsa-private-key-path", login.map(|login| login.private_key.as_path())),
        ("--authorized-users-path", login.map(|login| login.users.as_path())),
    ];
    let relative = paths.iter().find_map(|&(option, path)| {
        path.filter(|path| !path.is_absolute()).map(|path| (option, path))
    });
    relative.map(|(option, path)| {
        Problem::new(
            spelling(option, &path.to_string_lossy()),
            format!("a service starts in another folder, give the whole path ({})", whole(path)),
        )
    })
}

fn whole(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.into()).display().to_string()
}

/// The words after the program's name that make it the service of this name.
pub fn words_of_service(name: &OsStr, words: Vec<OsString>) -> Vec<OsString> {
    let own = [SERVICE, "run", "--name"].map(OsString::from);
    own.into_iter().chain([name.into(), "--".into()]).chain(words).collect()
}

/// As long as the service manager takes it.
const MOST_NAME: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    fn read(line: &str) -> Result<ServiceConfig, String> {
        parse(&words(line), "linerate").map_err(|stop| stop.to_string())
    }

    fn installed(line: &str) -> (OsString, String, Vec<OsString>) {
        match read(line) {
            Ok(ServiceConfig::Install { name, display_name, words }) => (name, display_name, words),
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn each_word_has_its_meaning() {
        let name = || OsString::from("linerate");
        for (line, config) in [
            ("start", ServiceConfig::Start(name())),
            ("stop", ServiceConfig::Stop(name())),
            ("status", ServiceConfig::Status(name())),
            ("uninstall", ServiceConfig::Uninstall(name())),
            ("start --name lab", ServiceConfig::Start("lab".into())),
            (
                "run --name lab -- -s -p 1",
                ServiceConfig::Run { name: "lab".into(), words: words("-s -p 1") },
            ),
        ] {
            assert_eq!(read(line), Ok(config), "{line}");
        }
    }

    #[test]
    fn a_service_has_the_words_of_its_server() {
        let (name, display_name, server) = installed("install");
        assert_eq!((name, display_name.as_str()), ("linerate".into(), "linerate server"));
        assert_eq!(server, words("-s"));
        let (name, display_name, server) = installed("install --name lab -- -s -p 5202 --queue 4");
        assert_eq!((name, display_name.as_str()), ("lab".into(), "linerate server (lab)"));
        assert_eq!(server, words("-s -p 5202 --queue 4"));
        let line = words_of_service("lab".as_ref(), server);
        let run = ServiceConfig::Run { name: "lab".into(), words: words("-s -p 5202 --queue 4") };
        assert_eq!(line[0], SERVICE);
        assert_eq!(parse(&line[1..], "linerate"), Ok(run));
    }

    #[test]
    fn what_cannot_be_a_service_is_refused_when_it_is_made() {
        for (line, has) in [
            ("", "service: must be followed by install, start, stop, status or uninstall"),
            ("restart", "service: must be followed by"),
            ("install -s", "-s: unknown option"),
            ("install server", "server: unexpected word"),
            ("install --name a/b", "--name a/b: must be 1 to 256 characters, none of them"),
            ("install -- -c host", "only a server can be a service: -s"),
            ("install -- -s -p 0", "-p 0: port number must be between 1 and 65535"),
            ("install -- -s -D", "-D: a service is in the background without it"),
            ("install -- -s -J", "-J: needs --logfile FILE, a service has no standard output"),
            ("install -- -s --json-stream", "--json-stream: needs --logfile FILE"),
            ("install -- -s -d", "-d: needs --logfile FILE, it would flood the event log"),
            ("install -- -s --logfile log", "--logfile log: a service starts in another folder"),
            ("install -- -s --policy p.toml", "--policy p.toml: a service starts in another"),
            ("install -- -s -F in", "-F in: a service starts in another folder"),
            ("install -- -s -I pid", "-I pid: a service starts in another folder"),
        ] {
            let told = read(line).expect_err(line);
            assert!(told.starts_with("linerate: parameter error - "), "{line}: {told}");
            assert!(told.contains(has), "{line}: {told}");
        }
    }

    #[test]
    fn whole_paths_are_taken() {
        let path = std::path::absolute("log").expect("there is a folder");
        let line = ["install", "--", "-s", "-J", "--logfile"].map(OsString::from);
        let line: Vec<_> = line.into_iter().chain([path.into_os_string()]).collect();
        assert!(parse(&line, "linerate").is_ok());
    }

    #[test]
    fn help_is_for_people() {
        assert!(read("-h").expect_err("help").contains("uninstall"));
        let help = read("install -h").expect_err("help");
        assert!(help.contains("--display-name") && help.contains("[default: -s]"), "{help}");
        assert!(!read("-h").expect_err("help").contains("Be the service"));
    }
}
