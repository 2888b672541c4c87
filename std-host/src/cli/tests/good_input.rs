use std::time::Duration;

use linerate_core::test::{Direction, Protocol, TestSettings};
use linerate_core::units::BitsPerSec;

use super::*;
use crate::config::Family;

type Row<T> = (&'static str, fn(&mut T));

#[test]
fn each_client_option_changes_what_it_is_for() {
    let rows: &[Row<ClientConfig>] = &[
        ("", |_| ()),
        ("-p 5301", |c| c.port = 5301),
        ("--port=65535", |c| c.port = 65535),
        ("-B 192.0.2.7", |c| c.bind = Some("192.0.2.7".into())),
        ("-4", |c| c.family = Some(Family::V4)),
        ("-4 -6", |c| c.family = Some(Family::V6)),
        ("--version6 --version4", |c| c.family = Some(Family::V4)),
        ("--connect-timeout 250", |c| c.connect_timeout = Some(Duration::from_millis(250))),
        ("-i 0", |c| c.interval = None),
        ("-i 0.1", |c| c.interval = Some(Duration::from_millis(100))),
        ("-i 60", |c| c.interval = Some(Duration::from_secs(60))),
        ("-T night", |c| c.title = Some("night".into())),
        ("-T-x", |c| c.title = Some("-x".into())),
        ("--extra-data {}", |c| c.extra_data = Some("{}".into())),
        ("-C bbr", |c| c.congestion = Some("bbr".into())),
        ("--linux-congestion bbr", |c| c.congestion = Some("bbr".into())),
        ("--forceflush --explain -J -V -f k", |_| ()),
    ];
    for (options, change) in rows {
        let mut expected = ClientConfig::new("host", Protocol::Tcp);
        change(&mut expected);
        assert_eq!(client(options).0, expected, "{options}");
    }
}

#[test]
fn each_setting_of_a_tcp_test_has_its_option() {
    let rows: &[Row<TestSettings>] = &[
        ("-t 3", |s| s.limits.seconds = Some(3)),
        ("-t3", |s| s.limits.seconds = Some(3)),
        ("-t 0", |s| s.limits.seconds = None),
        ("-t 86400", |s| s.limits.seconds = Some(86_400)),
        ("-n 10M", |s| (s.limits.seconds, s.limits.bytes) = (None, Some(10 << 20))),
        ("-k 2k", |s| (s.limits.seconds, s.limits.blocks) = (None, Some(2048))),
        ("-n 0 -k 0", |_| ()),
        ("-t 5 -n 0", |s| s.limits.seconds = Some(5)),
        ("-n 0 -k 5", |s| (s.limits.seconds, s.limits.blocks) = (None, Some(5))),
        ("-l 10K", |s| s.block_bytes = 10_240),
        ("-l 1M", |s| s.block_bytes = 1 << 20),
        ("-l 1", |s| s.block_bytes = 1),
        ("-l 0", |_| ()),
        ("-P 128", |s| s.parallel = 128),
        ("-R", |s| s.direction = Direction::Reverse),
        ("--bidir", |s| s.direction = Direction::Bidirectional),
        ("-b 10M", |s| s.bitrate = Some(BitsPerSec(10_000_000))),
        ("-b 0", |_| ()),
        ("-b 2.5G/10", |s| {
            (s.bitrate, s.burst) = (Some(BitsPerSec(2_500_000_000)), Some(10));
        }),
        ("--bandwidth 1M", |s| s.bitrate = Some(BitsPerSec(1_000_000))),
        ("-O 2 -t 1", |s| (s.omit_secs, s.limits.seconds) = (2, Some(1))),
        ("-w 1M", |s| s.window_bytes = Some(1 << 20)),
        ("-w 512M", |s| s.window_bytes = Some(512 << 20)),
        ("-w 0", |_| ()),
        ("-M 1400", |s| s.mss_bytes = Some(1400)),
        ("-M 32767", |s| s.mss_bytes = Some(32_767)),
        ("-M 0", |_| ()),
        ("-N", |s| s.no_delay = true),
        ("-S 72", |s| s.tos = 72),
        ("-S 0x48", |s| s.tos = 72),
        ("-S 0110", |s| s.tos = 72),
        ("-S 255", |s| s.tos = 255),
        ("--dscp 46", |s| s.tos = 184),
        ("--dscp 0x2e", |s| s.tos = 184),
        ("--dscp EF", |s| s.tos = 184),
        ("--dscp va", |s| s.tos = 176),
        ("--dscp af41", |s| s.tos = 34 << 2),
        ("--dscp cs6", |s| s.tos = 48 << 2),
        ("--dscp lowdelay", |s| s.tos = 16),
        ("--dscp throughput", |s| s.tos = 8),
        ("--dscp reliability", |s| s.tos = 4),
        ("-S 8 --dscp ef", |s| s.tos = 184),
        ("--dscp ef -S 8", |s| s.tos = 8),
        ("-Z", |s| s.zero_copy = true),
        ("--get-server-output", |s| s.server_output = true),
        ("--udp-counters-64bit", |s| s.counters_64bit = true),
        ("--repeating-payload", |s| s.repeating_payload = true),
    ];
    for (options, change) in rows {
        let mut expected = TestSettings::new(Protocol::Tcp);
        change(&mut expected);
        assert_eq!(client(options).0.settings, expected, "{options}");
    }
}

#[test]
fn udp_has_its_own_rate_and_block() {
    let rows: &[Row<ClientConfig>] = &[
        ("-u", |_| ()),
        ("-u -l 0", |_| ()),
        ("-u -l 128", |c| (c.settings.block_bytes, c.block_from_path) = (128, false)),
        ("-l 128 -u", |c| (c.settings.block_bytes, c.block_from_path) = (128, false)),
        ("-u -l 16", |c| (c.settings.block_bytes, c.block_from_path) = (16, false)),
        ("-u -l 65507", |c| (c.settings.block_bytes, c.block_from_path) = (65_507, false)),
        ("-u -b 0", |c| (c.settings.bitrate, c.rate_is_default) = (None, false)),
        ("-b 1M/10 -u", |c| {
            c.rate_is_default = false;
            c.settings.bitrate = Some(BitsPerSec(1_000_000));
            c.settings.burst = Some(10);
        }),
    ];
    for (options, change) in rows {
        let mut expected = ClientConfig::new("host", Protocol::Udp);
        assert_eq!(expected.settings.bitrate, Some(BitsPerSec(1_048_576)));
        change(&mut expected);
        assert_eq!(client(options).0, expected, "{options}");
    }
}

#[test]
fn each_server_option_changes_what_it_is_for() {
    let rows: &[Row<ServerConfig>] = &[
        ("", |_| ()),
        ("-p 5301", |s| s.port = 5301),
        ("-B ::1 -6", |s| (s.bind, s.family) = (Some("::1".into()), Some(Family::V6))),
        ("-i 0", |s| s.interval = None),
        ("-i 0.5", |s| s.interval = Some(Duration::from_millis(500))),
        ("-1", |s| s.one_off = true),
        ("--one-off -J --forceflush", |s| s.one_off = true),
    ];
    for (options, change) in rows {
        let mut expected = ServerConfig::new();
        change(&mut expected);
        assert_eq!(server(options).0, expected, "{options}");
    }
}

#[test]
fn output_options_serve_both_roles() {
    let rows: &[Row<OutputConfig>] = &[
        ("", |_| ()),
        ("-J", |o| o.json = true),
        ("-V", |o| o.verbose = true),
        ("--explain", |o| o.explain = true),
        ("-f k", |o| o.format = "k".parse().ok()),
        ("-f m", |o| o.format = "m".parse().ok()),
        ("-f g", |o| o.format = "g".parse().ok()),
        ("-f t", |o| o.format = "t".parse().ok()),
        ("-f K", |o| o.format = "K".parse().ok()),
        ("-f MBytes", |o| o.format = "M".parse().ok()),
        ("-f G", |o| o.format = "G".parse().ok()),
        ("-f T", |o| o.format = "T".parse().ok()),
    ];
    for (options, change) in rows {
        let mut expected = OutputConfig {
            program: "linerate".into(),
            format: None,
            json: false,
            verbose: false,
            explain: false,
            title: None,
        };
        change(&mut expected);
        assert_eq!(client(options).1, expected, "{options}");
        assert_eq!(server(options).1, expected, "{options}");
    }
    assert_eq!(client("-T night").1.title.as_deref(), Some("night"));
}

#[test]
fn a_unit_without_effect_is_warned_about() {
    assert_eq!(client("-f k").1.warnings().count(), 0);
    let warnings: Vec<_> = client("-f k -J").1.warnings().collect();
    assert_eq!(warnings, ["Report format (-f) flag ignored with JSON output (-J)"]);
}

#[test]
fn the_last_of_a_repeated_option_counts() {
    let (config, _) = client("-t 3 -c other -u -u -t 4 -b 1M --bitrate 2M");
    assert_eq!(config.host, "other");
    assert_eq!(config.settings.limits.seconds, Some(4));
    assert_eq!(config.settings.bitrate, Some(BitsPerSec(2_000_000)));
}

#[test]
fn a_long_option_may_be_cut_to_what_is_unique() {
    for (cut, whole) in [
        ("--tim 3", "--time 3"),
        ("--ban 1M", "--bandwidth 1M"),
        ("--bit=1M", "--bitrate=1M"),
        ("--rev", "--reverse"),
        ("--get", "--get-server-output"),
        ("--udp-c --no", "--udp-counters-64bit --no-delay"),
    ] {
        assert_eq!(client(cut), client(whole), "{cut}");
    }
}

#[test]
fn single_letters_may_be_joined() {
    assert_eq!(client("-uRVt3"), client("-u -R -V -t 3"));
}

#[test]
fn under_its_iperf3_name_the_command_explains_nothing() {
    for (arg0, program, explain) in [
        ("linerate", "linerate", true),
        ("/usr/bin/iperf3", "iperf3", false),
        ("./other", "other", true),
    ] {
        let command = parse_line(&format!("{arg0} -s --explain"));
        let Ok(Command::Server(_, output)) = command else { panic!("{arg0}: {command:?}") };
        assert_eq!((output.program.as_str(), output.explain), (program, explain));
    }
}

#[test]
fn calibrate_is_a_command_of_its_own() {
    let parsed = |words: &str| {
        let words = ["linerate"].into_iter().chain(words.split_whitespace());
        parse(words.map(Into::into))
    };
    let config = |seconds, json| Ok(Command::Calibrate(CalibrateConfig { seconds, json }));
    assert_eq!(parsed("calibrate"), config(2, false));
    assert_eq!(parsed("calibrate -J -t 5"), config(5, true));
    let usage = "linerate: parameter error - -t 0: seconds for each kind of work must be 1 to 60";
    assert_eq!(parsed("calibrate -t 0"), Err(Stop::Usage(usage.into())));
    assert!(matches!(parsed("calibrate --help"), Err(Stop::Help(_))));
}
