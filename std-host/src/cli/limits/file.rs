//! The policy file: TOML, one key for each limit, named as its option where there is one. Whatever
//! cannot be used is an error that names file, line, key and what is allowed: a limit that is not
//! kept is worse than a server that does not begin.

use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::LimitChoices;
use crate::cli::value;
use crate::error::Error;
use crate::limits::Network;

/// What the file chooses.
pub(super) fn read(path: &Path) -> Result<LimitChoices, Error> {
    let at = |what: String| Error::Usage(format!("--policy {}: {what}", path.display()));
    let size = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    if size > MAX_FILE_BYTES {
        return Err(at(format!("must be at most {MAX_FILE_BYTES} bytes")));
    }
    let text = std::fs::read_to_string(path).map_err(|error| at(crate::error::words(&error)))?;
    parse(&text).map_err(at)
}

fn parse(text: &str) -> Result<LimitChoices, String> {
    let on_line = |span: Option<Range<usize>>, what: &str| {
        let before = span.map_or(0, |span| span.start.min(text.len()));
        let line = 1 + text.as_bytes()[..before].iter().filter(|&&byte| byte == b'\n').count();
        format!("line {line}: {}", what.escape_debug().to_string().replace("\\'", "'"))
    };
    let table = DeTable::parse(text).map_err(|error| on_line(error.span(), error.message()))?;
    let mut choices = LimitChoices::default();
    for (key, value) in table.get_ref() {
        let name: &str = key.get_ref();
        let Some((_, take)) = KEYS.iter().find(|(known, _)| *known == name) else {
            let known: Vec<_> = KEYS.iter().map(|(known, _)| *known).collect();
            let what = format!("{name}: unknown key, must be one of {}", known.join(", "));
            return Err(on_line(Some(key.span()), &what));
        };
        take(&mut choices, value).map_err(|Wrong { span, what }| {
            on_line(Some(span.unwrap_or_else(|| value.span())), &format!("{name}: {what}"))
        })?;
    }
    Ok(choices)
}

/// Puts one value where it belongs.
type Take = fn(&mut LimitChoices, &Spanned<DeValue<'_>>) -> Result<(), Wrong>;

/// What is wrong with a value, and with which part of it.
struct Wrong {
    span: Option<Range<usize>>,
    what: String,
}

impl From<String> for Wrong {
    fn from(what: String) -> Self {
        Self { span: None, what }
    }
}

/// Every key of the file.
const KEYS: &[(&str, Take)] = &[
    ("server-bitrate-limit", |c, v| put(&mut c.bitrate, v, value::bitrate_limit)),
    ("server-max-duration", |c, v| put(&mut c.duration, v, value::duration)),
    ("max-test-bytes", |c, v| put(&mut c.bytes, v, value::count)),
    ("max-streams", |c, v| put(&mut c.streams, v, value::parallel)),
    ("udp", |c, v| put_flag(&mut c.udp, v)),
    ("max-bitrate", |c, v| put(&mut c.server_bitrate, v, value::fq_rate)),
    ("max-streams-in-all", |c, v| put(&mut c.streams_in_all, v, value::streams_in_all)),
    ("exclusive", |c, v| put_flag(&mut c.exclusive, v)),
    ("max-tests", |c, v| put(&mut c.tests, v, value::tests)),
    ("max-tests-per-address", |c, v| put(&mut c.tests_per_address, v, value::tests_or_any)),
    ("max-tests-per-hour", |c, v| put(&mut c.tests_per_hour, v, value::tests_an_hour)),
    ("queue", |c, v| put(&mut c.queue, v, value::queue)),
    ("allow", |c, v| put_networks(&mut c.allow, v)),
    ("deny", |c, v| put_networks(&mut c.deny, v)),
    ("require-login", |c, v| put_flag(&mut c.require_login, v)),
];

/// A number, or the text that the option takes, such as `"10M"`.
fn put<T>(
    place: &mut Option<T>,
    value: &Spanned<DeValue<'_>>,
    read: fn(&str) -> Result<T, String>,
) -> Result<(), Wrong> {
    let text = match value.get_ref() {
        DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
        DeValue::String(text) => text,
        other => {
            let kind = other.type_str();
            return Err(format!("must be a number or a text, not {kind}").into());
        }
    };
    *place = Some(read(text).map_err(|allowed| format!("{text}: {allowed}"))?);
    Ok(())
}

fn put_flag(place: &mut Option<bool>, value: &Spanned<DeValue<'_>>) -> Result<(), Wrong> {
    let DeValue::Boolean(flag) = value.get_ref() else {
        return Err(format!("must be true or false, not {}", value.get_ref().type_str()).into());
    };
    *place = Some(*flag);
    Ok(())
}

fn put_networks(
    place: &mut Option<Vec<Network>>,
    value: &Spanned<DeValue<'_>>,
) -> Result<(), Wrong> {
    const ALLOWED: &str = "must be a list of networks, such as [\"192.0.2.0/24\"]";
    let DeValue::Array(list) = value.get_ref() else {
        return Err(String::from(ALLOWED).into());
    };
    *place = Some(networks(list)?);
    Ok(())
}

fn networks(list: &DeArray<'_>) -> Result<Vec<Network>, Wrong> {
    let network = |element: &Spanned<DeValue<'_>>| {
        let wrong = |what: String| Wrong { span: Some(element.span()), what };
        match element.get_ref() {
            DeValue::String(text) => {
                text.parse().map_err(|allowed| wrong(format!("{text}: {allowed}")))
            }
            other => Err(wrong(format!("must be texts, not {}", other.type_str()))),
        }
    };
    if list.len() > MAX_NETWORKS {
        return Err(format!("must be at most {MAX_NETWORKS} networks").into());
    }
    list.iter().map(network).collect()
}

/// Each connection is held against all of them.
const MAX_NETWORKS: usize = 1000;
const MAX_FILE_BYTES: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use linerate_core::units::BitsPerSec;

    use super::*;
    use crate::cli::limits::LimitsConfig;
    use crate::limits::ServerLimits;

    fn limits(options: LimitChoices, text: &str) -> ServerLimits {
        let config = LimitsConfig::new(options, None);
        config.over(parse(text).unwrap_or_else(|error| panic!("{text}: {error}")))
    }

    #[test]
    fn each_key_changes_what_it_is_for() {
        type Row = (&'static str, fn(&mut ServerLimits));
        let rows: &[Row] = &[
            ("", |_| ()),
            ("# nothing\n", |_| ()),
            ("server-bitrate-limit = \"100M/0.5\"", |l| {
                l.bitrate = Some(BitsPerSec(100_000_000));
                l.bitrate_span = Duration::from_millis(500);
            }),
            ("server-bitrate-limit = 1_000", |l| l.bitrate = Some(BitsPerSec(1000))),
            ("server-max-duration = 60", |l| l.duration = Some(Duration::from_secs(60))),
            ("max-test-bytes = \"1G\"", |l| l.bytes = Some(1 << 30)),
            ("max-streams = 4", |l| l.streams = 4),
            ("udp = false", |l| l.udp = false),
            ("max-bitrate = \"1G\"", |l| l.server_bitrate = Some(BitsPerSec(1_000_000_000))),
            ("max-streams-in-all = 64", |l| l.streams_in_all = 64),
            ("exclusive = true", |l| l.tests = 1),
            ("exclusive = false", |_| ()),
            ("max-tests = 8", |l| l.tests = 8),
            ("max-tests-per-address = 2", |l| l.tests_per_address = Some(2)),
            ("max-tests-per-address = 0", |_| ()),
            ("max-tests-per-hour = 20", |l| l.tests_per_hour = Some(20)),
            ("queue = 5", |l| (l.queue, l.tests) = (5, 1)),
            ("queue = \"5/30\"", |l| {
                (l.queue, l.tests, l.queue_time) = (5, 1, Duration::from_secs(30));
            }),
            ("queue = 5\nmax-tests = 8", |l| (l.queue, l.tests) = (5, 8)),
            ("queue = 5\nexclusive = false", |l| l.queue = 5),
            ("allow = [\"192.0.2.0/24\", \"::1\"]", |l| {
                l.networks.allow = vec!["192.0.2.0/24".parse().unwrap(), "::1".parse().unwrap()];
            }),
            ("deny = [\n  \"::ffff:192.0.2.7\", # him\n]", |l| {
                l.networks.deny = vec!["192.0.2.7".parse().unwrap()];
            }),
            ("require-login = true", |l| l.require_login = true),
        ];
        for (text, change) in rows {
            let mut expected = ServerLimits::DEFAULT;
            change(&mut expected);
            assert_eq!(limits(LimitChoices::default(), text), expected, "{text}");
        }
        for (key, _) in KEYS {
            assert!(rows.iter().any(|(text, _)| text.starts_with(key)), "{key} has no row");
        }
    }

    #[test]
    fn options_go_before_the_file() {
        let options = || LimitChoices {
            streams: Some(2),
            tests: Some(3),
            queue: Some(value::queue("1").unwrap()),
            ..LimitChoices::default()
        };
        let both = limits(options(), "max-streams = 4\nexclusive = true\nqueue = 9\nudp = false");
        let ServerLimits { streams, tests, queue, udp, .. } = both;
        assert_eq!((streams, tests, queue, udp), (2, 3, 1, false));
        let exclusive = LimitChoices { exclusive: Some(true), ..LimitChoices::default() };
        assert_eq!(limits(exclusive, "max-tests = 9").tests, 1);
    }

    #[test]
    fn what_cannot_be_used_is_named_with_its_line_and_what_is_allowed() {
        for (text, error) in [
            ("max-tests = 0", "line 1: max-tests: 0: must be 1 to 10000 tests"),
            ("\n\nmax-tests = \"many\"", "line 3: max-tests: many: must be 1 to 10000 tests"),
            ("max-tests = 1.5", "line 1: max-tests: must be a number or a text, not float"),
            ("max-tests = 0x10", "line 1: max-tests: must be a number or a text, not integer"),
            (
                "max-streams = 129",
                "line 1: max-streams: 129: invalid number of parallel streams (min = 1, max = 128)",
            ),
            ("udp = 1", "line 1: udp: must be true or false, not integer"),
            ("udp = \"no\"", "line 1: udp: must be true or false, not string"),
            (
                "queue = \"5/0\"",
                "line 1: queue: 5/0: must be 0 to 1000 clients, or CLIENTS/SECONDS with 1 to 86400",
            ),
            (
                "allow = \"192.0.2.0/24\"",
                "line 1: allow: must be a list of networks, such as [\\\"192.0.2.0/24\\\"]",
            ),
            (
                "deny = [\n \"192.0.2.0/24\",\n \"192.0.2.1/24\",\n]",
                "line 3: deny: 192.0.2.1/24: has bits set beyond its prefix",
            ),
            ("deny = [1]", "line 1: deny: must be texts, not integer"),
            ("max-tests = 1\nmax-tests = 2", "line 2: duplicate key"),
            ("max-tests = 1\nmax-tests", "line 2: key with no value, expected `=`"),
            (
                "max-bitrate = \"fast\"",
                "line 1: max-bitrate: fast: invalid unit value or suffix: 'fast' (a number, then \
                 k, m, g or t)",
            ),
        ] {
            assert_eq!(parse(text).unwrap_err(), error, "{text}");
        }
        let error = parse("udp = true\n[tests]\nmost = 4").unwrap_err();
        assert!(error.starts_with("line 2: tests: unknown key, must be one of server-"), "{error}");
        for (key, _) in KEYS {
            assert!(error.contains(key), "{error}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named() {
        let error = read(Path::new("/nowhere/policy.toml")).unwrap_err().to_string();
        assert!(error.starts_with("--policy /nowhere/policy.toml: "), "{error}");
    }
}
