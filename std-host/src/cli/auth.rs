//! The words after `linerate auth`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{ArgAction, CommandFactory, FromArgMatches, Parser, Subcommand};

use super::problem::Problem;
use super::{AUTH, Stop, stop};

/// What `linerate auth` is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthConfig {
    /// Make a pair of keys.
    Keys {
        /// Size of the modulus.
        bits: usize,
        /// What both file names begin with.
        prefix: String,
    },
    /// Make the line of a user.
    User {
        /// The user's name.
        name: String,
        /// Users file to add it to; none prints it.
        file: Option<PathBuf>,
    },
}

/// Makes what a server with logins needs: a pair of RSA keys, and the lines of its users file. Both
/// are what iperf3 takes as well.
///
///   linerate auth keys --out lab
///   linerate auth user mario --file users.csv
///   linerate -s --rsa-private-key-path lab-private.pem --authorized-users-path users.csv
///   linerate -c HOST --username mario --rsa-public-key-path lab-public.pem
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true, disable_help_subcommand = true)]
#[command(max_term_width = 100, verbatim_doc_comment)]
pub(super) struct AuthArgs {
    #[command(subcommand)]
    what: What,

    /// Print this help
    #[arg(short, long, global = true, action = ArgAction::Help)]
    help: Option<bool>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Make a pair of keys: PREFIX-private.pem for the server, PREFIX-public.pem for its clients
    Keys {
        /// Size of the keys, 1024 to 8192
        #[arg(long, value_name = "BITS", default_value_t = 2048, allow_negative_numbers = true)]
        #[arg(value_parser = bits)]
        bits: usize,

        /// What the names of both files begin with; files that are there already are kept
        #[arg(long, value_name = "PREFIX", default_value = "linerate")]
        out: String,
    },
    /// Make the line of a user for the users file. The password comes from IPERF3_PASSWORD, else
    /// it is asked for
    User {
        /// The user's name, without blanks and commas
        #[arg(value_name = "NAME")]
        name: String,

        /// Users file to add the line to, made if it is not there; without it the line is printed
        #[arg(long, value_name = "USERS")]
        file: Option<PathBuf>,
    },
}

fn bits(text: &str) -> Result<usize, String> {
    let bits = text.parse().ok().filter(|bits| (1024..=8192).contains(bits));
    bits.ok_or_else(|| "the size of a key must be 1024 to 8192 bits".into())
}

/// Reads the words after `auth`.
///
/// # Errors
/// [`Stop`] when help is asked for, or when the words cannot be used.
pub(super) fn parse(words: &[OsString], program: &str) -> Result<AuthConfig, Stop> {
    let mut command = AuthArgs::command().bin_name(format!("{program} {AUTH}"));
    let matches = command.try_get_matches_from_mut(words);
    let args = matches.and_then(|matches| AuthArgs::from_arg_matches(&matches));
    args.map(AuthConfig::from).map_err(|error| match error.kind() {
        ErrorKind::MissingSubcommand
        | ErrorKind::InvalidSubcommand
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            Problem::new(AUTH, "must be followed by keys or user").into_stop(program)
        }
        ErrorKind::MissingRequiredArgument => {
            Problem::new("auth user", "needs a value (NAME)").into_stop(program)
        }
        _ => {
            let of_two = words.first().and_then(|word| command.find_subcommand(word));
            stop(&error, of_two.unwrap_or(&command), words, program)
        }
    })
}

impl From<AuthArgs> for AuthConfig {
    fn from(args: AuthArgs) -> Self {
        match args.what {
            What::Keys { bits, out } => Self::Keys { bits, prefix: out },
            What::User { name, file } => Self::User { name, file },
        }
    }
}
