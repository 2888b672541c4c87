//! The policy file: TOML, one key for each limit, named as its option where there is one. Whatever
//! cannot be used is an error that names file, line, key and what is allowed: a limit that is not
//! kept is worse than a server that does not begin.

use std::borrow::Cow;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::LimitChoices;
use crate::cli::value;
use crate::error::words;
use crate::limits::Network;
use crate::small_file;

/// What a file chooses.
#[derive(Debug)]
pub(super) struct PolicyFile {
    pub(super) choices: LimitChoices,
    /// Where each key stands.
    lines: Vec<(&'static str, usize)>,
}

impl PolicyFile {
    /// What the file says as it stands.
    ///
    /// # Errors
    /// What is wrong with it, with the line and the key.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let bytes = small_file::read(path, MAX_FILE_BYTES).map_err(|error| words(&error))?;
        let text = str::from_utf8(&bytes).map_err(|error| {
            let line = line(&bytes, error.valid_up_to());
            format!("line {line}: must be a text in UTF-8")
        })?;
        Self::parse(text)
    }

    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let table = DeTable::parse(text).map_err(|error| syntax(text, &error))?;
        let mut file = Self { choices: LimitChoices::default(), lines: Vec::new() };
        for (key, value) in table.get_ref() {
            let at = line(text.as_bytes(), key.span().start);
            let name: &str = key.get_ref();
            let Some(&(known, take)) = KEYS.iter().find(|(known, _)| *known == name) else {
                let known: Vec<_> = KEYS.iter().map(|(known, _)| *known).collect();
                let (name, known) = (short(name), known.join(", "));
                return Err(format!("line {at}: {name}: unknown key, must be one of {known}"));
            };
            take(&mut file.choices, &Value { value, text }).map_err(
                |Wrong { at: place, what }| {
                    format!(
                        "line {}: {name}: {what}",
                        place.map_or(at, |at| line(text.as_bytes(), at))
                    )
                },
            )?;
            file.lines.push((known, at));
        }
        Ok(file)
    }

    /// What is wrong with the value of this key.
    pub(super) fn problem(&self, key: &str, what: &str) -> String {
        let line = self.lines.iter().find(|(name, _)| *name == key).map_or(0, |&(_, line)| line);
        format!("line {line}: {key}: {what}")
    }
}

/// What is no TOML, with the key of its line as far as there is one.
fn syntax(text: &str, error: &toml::de::Error) -> String {
    let at = error.span().map_or(0, |span| span.start.min(text.len()));
    let number = line(text.as_bytes(), at);
    let line = text.lines().nth(number - 1).unwrap_or_default().trim();
    let key = line.split(['=', ':', ' ', '\t']).next().unwrap_or_default();
    let key = if key.is_empty() { line } else { key };
    let separator = if key.is_empty() { "" } else { ": " };
    match error.message() {
        "duplicate key" => format!("line {number}: {}: must be there only once", short(key)),
        what => format!("line {number}: {}{separator}{what} ({LINES})", short(key)),
    }
}

/// The line of this byte, from one.
fn line(text: &[u8], at: usize) -> usize {
    1 + text[..at.min(text.len())].iter().filter(|&&byte| byte == b'\n').count()
}

/// As much of it as a message has room for.
fn short(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(MOST_SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]).into(),
        None => text.into(),
    }
}

/// Puts one value where it belongs.
type Take = fn(&mut LimitChoices, &Value<'_>) -> Result<(), Wrong>;

/// Every key of the file.
const KEYS: &[(&str, Take)] = &[
    ("server-bitrate-limit", |c, v| put(&mut c.bitrate, v, value::exact_bitrate_limit)),
    ("server-max-duration", |c, v| put(&mut c.duration, v, value::duration)),
    ("max-test-bytes", |c, v| put(&mut c.bytes, v, value::exact_count)),
    ("max-streams", |c, v| put(&mut c.streams, v, value::parallel)),
    ("udp", |c, v| put_flag(&mut c.udp, v)),
    ("max-bitrate", |c, v| put(&mut c.server_bitrate, v, value::exact_rate)),
    ("max-streams-in-all", |c, v| put(&mut c.streams_in_all, v, value::streams_in_all)),
    ("exclusive", |c, v| put_flag(&mut c.exclusive, v)),
    ("max-tests", |c, v| put(&mut c.tests, v, value::tests)),
    ("max-tests-per-address", |c, v| put(&mut c.tests_per_address, v, value::tests_or_any)),
    ("max-tests-per-hour", |c, v| put(&mut c.tests_per_hour, v, value::tests_an_hour)),
    ("queue", |c, v| put(&mut c.queue, v, value::queue)),
    ("allow", |c, v| put_allowed(&mut c.allow, v)),
    ("deny", |c, v| put_networks(&mut c.deny, v)),
    ("require-login", |c, v| put_flag(&mut c.require_login, v)),
];

/// A value of the file.
struct Value<'a> {
    value: &'a Spanned<DeValue<'a>>,
    /// The whole file.
    text: &'a str,
}

impl Value<'_> {
    /// As the file has it.
    fn written(&self) -> &str {
        self.text.get(self.value.span()).unwrap_or_default()
    }

    /// As options have it; nothing where no option could.
    fn as_option(&self) -> &str {
        match self.value.get_ref() {
            DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
            DeValue::Float(number) => number.as_str(),
            DeValue::String(text) => text,
            DeValue::Array(_) | DeValue::Table(_) => "",
            _ => self.written(),
        }
    }

    /// It is not what is allowed.
    fn is_not(&self, allowed: &str) -> Wrong {
        let shown = match self.value.get_ref() {
            DeValue::Array(_) => "a list".into(),
            DeValue::Table(_) => "a table".into(),
            _ => short(self.written()),
        };
        Wrong { at: Some(self.value.span().start), what: format!("{shown}: {allowed}") }
    }
}

/// What is wrong with a value, and where if not at its key.
struct Wrong {
    at: Option<usize>,
    what: String,
}

/// A number, or the text that the option takes, such as `"10M"`.
fn put<T>(
    place: &mut Option<T>,
    value: &Value<'_>,
    read: fn(&str) -> Result<T, String>,
) -> Result<(), Wrong> {
    *place = Some(read(value.as_option()).map_err(|allowed| value.is_not(&allowed))?);
    Ok(())
}

fn put_flag(place: &mut Option<bool>, value: &Value<'_>) -> Result<(), Wrong> {
    let DeValue::Boolean(flag) = value.value.get_ref() else {
        return Err(value.is_not("must be true or false"));
    };
    *place = Some(*flag);
    Ok(())
}

/// Nobody can tell whether an empty list is meant to let in nobody or everybody.
fn put_allowed(place: &mut Option<Vec<Network>>, value: &Value<'_>) -> Result<(), Wrong> {
    put_networks(place, value)?;
    match place {
        Some(networks) if networks.is_empty() => Err(Wrong { at: None, what: NOBODY.into() }),
        _ => Ok(()),
    }
}

fn put_networks(place: &mut Option<Vec<Network>>, value: &Value<'_>) -> Result<(), Wrong> {
    let DeValue::Array(list) = value.value.get_ref() else {
        return Err(value.is_not(NETWORKS));
    };
    if list.len() > MAX_NETWORKS {
        let what = format!("{} networks: must be {MAX_NETWORKS} at most", list.len());
        return Err(Wrong { at: None, what });
    }
    let network = |element| {
        let element = Value { value: element, text: value.text };
        match element.value.get_ref() {
            DeValue::String(text) => {
                text.parse().map_err(|allowed: String| element.is_not(&allowed))
            }
            _ => Err(element.is_not(NETWORKS)),
        }
    };
    *place = Some(list.iter().map(network).collect::<Result<_, _>>()?);
    Ok(())
}

/// Each connection is held against all of them.
const MAX_NETWORKS: usize = 1000;
const MAX_FILE_BYTES: u64 = 1 << 20;
const MOST_SHOWN: usize = 60;
const NETWORKS: &str = "must be a list of networks, such as [\"192.0.2.0/24\"]";
const NOBODY: &str = "[]: must have a network: leave it out to let everybody in, or keep everybody out \
                      with deny = [\"0.0.0.0/0\", \"::/0\"]";
const LINES: &str = "each line is KEY = NUMBER, KEY = \"TEXT\", KEY = true or KEY = [\"TEXT\"]";

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
