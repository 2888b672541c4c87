//! What is wrong with a command line, as the one line that a person or a script reads:
//! `linerate: parameter error - OPTION VALUE: what is allowed`. Where iperf3 has words for what is
//! allowed they are kept, because scripts look for them.

use std::error::Error as _;
use std::fmt::Write as _;

use clap::Arg;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use linerate_core::protocol::error_text;

use super::Stop;

/// One fault of a command line.
#[derive(Debug)]
pub(super) struct Problem {
    /// The option and its value, as far as there is one.
    seen: String,
    /// What it could be instead.
    allowed: String,
}

impl Problem {
    pub(super) fn new(seen: impl Into<String>, allowed: impl Into<String>) -> Self {
        Self { seen: seen.into(), allowed: allowed.into() }
    }

    /// What clap found, in our form.
    pub(super) fn from_clap(error: &clap::Error, command: &clap::Command) -> Self {
        let text = |kind| match error.get(kind) {
            Some(ContextValue::String(text)) => text.as_str(),
            _ => "",
        };
        let (arg, value) = (text(ContextKind::InvalidArg), text(ContextKind::InvalidValue));
        let known = find(arg, command);
        let name = known.map_or_else(|| arg.into(), option_name);
        match error.kind() {
            ErrorKind::ValueValidation => {
                let allowed = error.source().map(ToString::to_string).unwrap_or_default();
                Self::new(spelling(&name, value), allowed)
            }
            ErrorKind::InvalidValue if !value.is_empty() => {
                Self::new(spelling(arg, value), format!("must be one of {}", valid_values(error)))
            }
            ErrorKind::MissingRequiredArgument => {
                let missing = match error.get(ContextKind::InvalidArg) {
                    Some(ContextValue::Strings(missing)) => missing.join(" "),
                    _ => String::new(),
                };
                Self::new("", format!("{missing} is missing"))
            }
            ErrorKind::InvalidValue => {
                let what = known.and_then(Arg::get_value_names).and_then(<[_]>::first);
                let what = what.map_or("VALUE", |what| what.as_str());
                Self::new(name, format!("needs a value ({what})"))
            }
            ErrorKind::TooManyValues => Self::new(spelling(&name, value), "takes no value"),
            ErrorKind::UnknownArgument => {
                Self::new(visible(arg), unknown(arg, text(ContextKind::SuggestedArg), command))
            }
            _ => {
                let rendered = error.render().to_string();
                let line = rendered.lines().next().unwrap_or_default();
                Self::new("", line.trim_start_matches("error: "))
            }
        }
    }

    /// The line to print, whatever characters the user gave.
    pub(super) fn into_stop(self, program: &str) -> Stop {
        let mut line = format!("{program}: parameter error - ");
        let separator = if self.seen.is_empty() { "" } else { ": " };
        for c in [&self.seen, separator, &self.allowed].iter().flat_map(|part| part.chars()) {
            if c.is_control() {
                let _ = write!(line, "{}", c.escape_default());
            } else {
                line.push(c);
            }
        }
        Stop::Usage(line)
    }
}

/// iperf3's words for an error number.
pub(super) fn iperf3_text(number: i32) -> String {
    error_text::text(number).expect("every number of this command has a text").into()
}

/// How messages call an option: by its letter, if it has one.
pub(super) fn option_name(arg: &Arg) -> String {
    match (arg.get_short(), arg.get_long()) {
        (Some(short), _) => format!("-{short}"),
        (None, Some(long)) => format!("--{long}"),
        (None, None) => arg.get_id().to_string(),
    }
}

/// An option and its value.
pub(super) fn spelling(name: &str, value: &str) -> String {
    format!("{name} {}", visible(value))
}

fn visible(word: &str) -> &str {
    if word.is_empty() { "''" } else { word }
}

/// The option that clap shows as `--time <SECONDS>`.
fn find<'a>(shown: &str, command: &'a clap::Command) -> Option<&'a Arg> {
    let long = shown.split([' ', '=', '[']).next()?.strip_prefix("--")?;
    command.get_arguments().find(|arg| arg.get_long() == Some(long))
}

/// The values that an option takes, where they are a list.
fn valid_values(error: &clap::Error) -> String {
    match error.get(ContextKind::ValidValue) {
        Some(ContextValue::Strings(values)) => values.join(", "),
        _ => String::new(),
    }
}

fn unknown(arg: &str, suggested: &str, command: &clap::Command) -> String {
    if !arg.starts_with('-') {
        return "unexpected word, options begin with -".into();
    }
    let longs = command.get_arguments().filter_map(Arg::get_long);
    let starts: Vec<_> =
        longs.map(|long| format!("--{long}")).filter(|long| long.starts_with(arg)).collect();
    if arg.len() > 2 && starts.len() > 1 {
        return format!("ambiguous option, could be {}", starts.join(", "));
    }
    match suggested {
        "" => "unknown option".into(),
        suggested => format!("unknown option, did you mean {suggested}?"),
    }
}

/// iperf3's error numbers that only a command line meets; each is stable since it appeared.
pub(super) mod number {
    pub(in crate::cli) const BOTH_ROLES: i32 = 1;
    pub(in crate::cli) const NO_ROLE: i32 = 2;
    pub(in crate::cli) const SERVER_ONLY: i32 = 3;
    pub(in crate::cli) const CLIENT_ONLY: i32 = 4;
    pub(in crate::cli) const INTERVAL: i32 = 9;
    pub(in crate::cli) const END_CONDITIONS: i32 = 16;
    pub(in crate::cli) const CLIENT_LOGIN: i32 = 22;
    pub(in crate::cli) const SERVER_LOGIN: i32 = 23;
    pub(in crate::cli) const FORMAT: i32 = 24;
    pub(in crate::cli) const REVERSE_BIDIR: i32 = 25;
    pub(in crate::cli) const PORT: i32 = 26;
    pub(in crate::cli) const LIMIT_SPAN: i32 = 28;
    pub(in crate::cli) const TIME_SKEW: i32 = 29;
    pub(in crate::cli) const IDLE_TIMEOUT: i32 = 30;
    pub(in crate::cli) const RECEIVE_TIMEOUT: i32 = 31;
    pub(in crate::cli) const RECEIVE_TIMEOUT_OF_SENDER: i32 = 32;
    pub(in crate::cli) const SEND_TIMEOUT: i32 = 33;
    pub(in crate::cli) const UDP_FILE: i32 = 34;
    pub(in crate::cli) const KEEP_ALIVE: i32 = 36;
    pub(in crate::cli) const UNIT: i32 = 38;
    pub(in crate::cli) const DSCP: i32 = 40;
}
