//! What a policy file can say, and what is said of it when it cannot.

use std::time::Duration;

use linerate_core::units::BitsPerSec;

use super::*;
use crate::cli::limits::{LimitsConfig, Service, one_line};
use crate::limits::ServerLimits;

fn limits(options: LimitChoices, text: &str) -> ServerLimits {
    let config = LimitsConfig::new(options, None, Service::ANY);
    let file = PolicyFile::parse(text);
    file.and_then(|file| config.over(&file)).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// What is said of a file that cannot be used by such a server.
fn problem_of(options: LimitChoices, service: Service, text: &str) -> String {
    let config = LimitsConfig::new(options, None, service);
    let limits = PolicyFile::parse(text).and_then(|file| config.over(&file));
    one_line(&limits.expect_err(text))
}

fn problem(text: &str) -> String {
    problem_of(LimitChoices::default(), Service::ANY, text)
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
        ("max-bitrate = 1e9", |l| l.server_bitrate = Some(BitsPerSec(1_000_000_000))),
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
        ("max-tests = -1", "line 1: max-tests: -1: must be 1 to 10000 tests"),
        ("\n\nmax-tests = \"many\"", "line 3: max-tests: \"many\": must be 1 to 10000 tests"),
        ("max-tests = \"\"", "line 1: max-tests: \"\": must be 1 to 10000 tests"),
        ("max-tests = 1.5", "line 1: max-tests: 1.5: must be 1 to 10000 tests"),
        ("max-tests = 0x10", "line 1: max-tests: 0x10: must be 1 to 10000 tests"),
        ("max-tests = true", "line 1: max-tests: true: must be 1 to 10000 tests"),
        ("max-tests = 1979-05-27", "line 1: max-tests: 1979-05-27: must be 1 to 10000 tests"),
        ("max-tests = [\n4,\n]", "line 1: max-tests: a list: must be 1 to 10000 tests"),
        ("max-tests.most = 4", "line 1: max-tests: a table: must be 1 to 10000 tests"),
        ("\n[max-tests]\nmost = 4", "line 2: max-tests: a table: must be 1 to 10000 tests"),
        (
            "max-tests = 99_999_999_999_999_999_999",
            "line 1: max-tests: 99_999_999_999_999_999_999: must be 1 to 10000 tests",
        ),
        (
            "max-streams = 129",
            "line 1: max-streams: 129: invalid number of parallel streams (min = 1, max = 128)",
        ),
        ("udp = 1", "line 1: udp: 1: must be true or false"),
        ("udp = \"no\"", "line 1: udp: \"no\": must be true or false"),
        (
            "queue = \"5/0\"",
            "line 1: queue: \"5/0\": must be 0 to 1000 clients, or CLIENTS/SECONDS with 1 to 86400",
        ),
        (
            "allow = \"192.0.2.0/24\"",
            "line 1: allow: \"192.0.2.0/24\": must be a list of networks, such as [\"192.0.2.0/24\"]",
        ),
        (
            "allow = []",
            "line 1: allow: []: must have a network: leave it out to let everybody in, or keep \
             everybody out with deny = [\"0.0.0.0/0\", \"::/0\"]",
        ),
        (
            "[[allow]]\nx = 1",
            "line 1: allow: a table: must be a list of networks, such as [\"192.0.2.0/24\"]",
        ),
        (
            "deny = [\n \"192.0.2.0/24\",\n \"192.0.2.1/24\",\n]",
            "line 3: deny: \"192.0.2.1/24\": has bits set beyond its prefix, must be 192.0.2.0/24 or \
             192.0.2.1",
        ),
        ("deny = [1]", "line 1: deny: 1: must be a list of networks, such as [\"192.0.2.0/24\"]"),
        ("max-tests = 1\nmax-tests = 2", "line 2: max-tests: must be there only once"),
        (
            "max-bitrate = \"fast\"",
            "line 1: max-bitrate: \"fast\": invalid unit value or suffix: 'fast' (a number, then \
             k, m, g or t)",
        ),
        (
            "max-bitrate = \"1G/5\"",
            "line 1: max-bitrate: \"1G/5\": invalid unit value or suffix: '1G/5' (a number, then \
             k, m, g or t)",
        ),
        (
            "max-tests = \"4\\n\\u001b\"",
            "line 1: max-tests: \"4\\n\\u001b\": must be 1 to 10000 tests",
        ),
    ] {
        assert_eq!(problem(text), error, "{text}");
    }
    let error = problem("udp = true\n[tests]\nmost = 4");
    assert!(error.starts_with("line 2: tests: unknown key, must be one of server-"), "{error}");
    for (key, _) in KEYS {
        assert!(error.contains(key), "{error}");
    }
    let networks = vec!["\"192.0.2.1\""; MAX_NETWORKS + 1].join(",");
    let error = problem(&format!("udp = true\ndeny = [{networks}]"));
    assert_eq!(error, "line 2: deny: 1001 networks: must be 1000 at most");
}

/// A limit is never another than it looks like.
#[test]
fn nothing_stands_behind_a_unit() {
    for key in ["server-bitrate-limit", "max-bitrate", "max-test-bytes"] {
        for value in ["1Gbit", "1G/", "1G 5", "1G5", "10MB", "5%", "1e", "k", "inf", "1G/5/5"] {
            let error = problem(&format!("{key} = \"{value}\""));
            assert!(error.starts_with(&format!("line 1: {key}: \"{value}\": ")), "{error}");
        }
    }
}

#[test]
fn no_key_takes_a_value_of_another_kind() {
    let of_any_key = ["1979-05-27", "07:32:00", "{ a = 1 }", "[[1]]", "nan", "-inf", "-1", "\"\""];
    for (key, _) in KEYS {
        for value in of_any_key {
            let error = problem(&format!("\n{key} = {value}\n"));
            assert!(error.starts_with(&format!("line 2: {key}: ")), "{value}: {error}");
            let allowed = ["must be ", "(min = 1", "(a number, ", "valid values are "];
            assert!(allowed.iter().any(|words| error.contains(words)), "{value}: {error}");
        }
    }
}

#[test]
fn what_is_no_toml_is_named_with_its_line_and_key() {
    for (text, begin) in [
        ("udp = true\nmax-tests", "line 2: max-tests: "),
        ("max-tests 4", "line 1: max-tests: "),
        ("max-tests: 4", "line 1: max-tests: "),
        ("max-tests = 1 2", "line 1: max-tests: "),
        ("max-tests =\n", "line 1: max-tests: "),
        ("max-tests = 010", "line 1: max-tests: "),
        ("max-tests = \u{ff14}", "line 1: max-tests: "),
        ("max-bitrate = 1G", "line 1: max-bitrate: "),
        ("max-bitrate = '1G\nudp = true", "line 1: max-bitrate: "),
        ("udp = True", "line 1: udp: "),
        ("udp = tr\0ue", "line 1: udp: "),
        ("udp = true\rexclusive = true", "line 1: udp: "),
        ("= 4", "line 1: = 4: "),
        ("udp = true\n# \0", "line 2: #: "),
    ] {
        let error = problem(text);
        assert!(error.starts_with(begin), "{text:?}: {error}");
        assert!(error.ends_with(&format!(" ({LINES})")), "{text:?}: {error}");
    }
    let deep = format!("allow = {}", "[".repeat(100_000));
    assert!(problem(&deep).starts_with("line 1: allow: "));
}

#[test]
fn messages_are_one_line_of_bounded_length() {
    for text in [
        "\"max\\ntests\" = 4",
        "\"\\u001b[31m\" = 4",
        "max-tests = '\u{1b}'",
        "max-tests = \"\"\"\n4x\n\"\"\"",
        &format!("max-tests = \"{}\"", "9".repeat(100_000)),
        &format!("{} = 4", "x".repeat(100_000)),
        &format!("{} 4", "x".repeat(100_000)),
    ] {
        let error = problem(text);
        assert!(!error.chars().any(char::is_control), "{error:?}");
        assert!(error.len() < 1000, "{error:?}");
    }
}

#[test]
fn limits_that_contradict_each_other_are_refused_wherever_they_come_from() {
    let two = LimitChoices { tests: Some(2), ..LimitChoices::default() };
    let no_queue =
        LimitChoices { queue: Some(value::queue("0").unwrap()), ..LimitChoices::default() };
    let none = LimitChoices::default;
    let one_off = Service { one_off: true, ..Service::ANY };
    let without_login = Service { has_login: false, ..Service::ANY };
    let places = "line 2: exclusive: true: only one of exclusive and max-tests can be";
    for (options, service, text, error) in [
        (none(), Service::ANY, "max-tests = 5\nexclusive = true", Some(places)),
        (two.clone(), Service::ANY, "max-tests = 5\nexclusive = true", Some(places)),
        (none(), Service::ANY, "max-tests = 1\nexclusive = true", None),
        (none(), Service::ANY, "max-tests = 5\nexclusive = false", None),
        // Options go before the file.
        (two, Service::ANY, "exclusive = true", None),
        (none(), one_off, "queue = 5", Some("line 1: queue: only one of -1 and a queue can be")),
        (none(), one_off, "queue = 0", None),
        (no_queue, one_off, "queue = 5", None),
        (
            none(),
            without_login,
            "\nrequire-login = true",
            Some(
                "line 2: require-login: true: needs --rsa-private-key-path and \
                 --authorized-users-path",
            ),
        ),
        (none(), without_login, "require-login = false", None),
    ] {
        let config = LimitsConfig::new(options, None, service);
        let problem = PolicyFile::parse(text).and_then(|file| config.over(&file)).err();
        assert_eq!(problem.as_deref(), error, "{text}");
    }
}

#[test]
fn any_editors_text_is_read() {
    for text in ["\u{feff}max-tests = 8\n", "udp = true\r\nmax-tests = 8\r\n", "max-tests = 8"] {
        assert_eq!(limits(LimitChoices::default(), text).tests, 8, "{text:?}");
    }
    assert!(problem("udp = true\r\n\r\nmax-tests = 0\r\n").starts_with("line 3: max-tests: 0: "));
}

#[test]
fn file_that_cannot_be_read_is_named() {
    let error = |name: &Path| {
        let path = Some(name.to_owned());
        let config = LimitsConfig::new(LimitChoices::default(), path, Service::ANY);
        config.load().unwrap_err().to_string()
    };
    let missing = error(Path::new("/nowhere/pol\nicy.toml"));
    assert!(missing.starts_with("--policy /nowhere/pol\\nicy.toml: "), "{missing}");
    let folder = error(Path::new(env!("CARGO_MANIFEST_DIR")));
    assert!(folder.ends_with(": must be a regular file, not a folder"), "{folder}");

    let name = format!("linerate-policy-{}.toml", std::process::id());
    let path = std::env::temp_dir().join(name);
    for (bytes, end) in [
        (&b"udp = true\n# caf\xe9\n"[..], ": line 2: must be a text in UTF-8"),
        (b"\xff\xfem\0a\0x\0", ": line 1: must be a text in UTF-8"),
        (&[b'#'; (1 << 20) + 1], ": must be at most 1024 KiB"),
    ] {
        std::fs::write(&path, bytes).expect("own file");
        let error = error(&path);
        assert!(error.ends_with(end), "{error}");
    }
    std::fs::remove_file(&path).expect("own file");
}
