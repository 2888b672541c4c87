use std::time::Duration;

use linerate_core::test::{Direction, Offload, Protocol, TestSettings};
use linerate_core::units::{BitsPerSec, PacketsPerSec};

use super::*;
use crate::config::{Credentials, Family, KeepAlive, LoginConfig, Padding};
use crate::report::log::LogFormat;

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
        ("--answer-timeout 30", |c| c.answer_timeout = Some(Duration::from_secs(30))),
        ("--answer-timeout 0", |c| c.answer_timeout = None),
        ("-i 0", |c| c.interval = None),
        ("-i 0.1", |c| c.interval = Some(Duration::from_millis(100))),
        ("-i 60", |c| c.interval = Some(Duration::from_secs(60))),
        ("-T night", |c| c.title = Some("night".into())),
        ("-T-x", |c| c.title = Some("-x".into())),
        ("--extra-data {}", |c| c.extra_data = Some("{}".into())),
        ("-C bbr", |c| c.congestion = Some("bbr".into())),
        ("--linux-congestion bbr", |c| c.congestion = Some("bbr".into())),
        ("--bind-dev eth0", |c| c.bind_device = Some("eth0".into())),
        ("-B 192.0.2.7%eth0", |c| {
            (c.bind, c.bind_device) = (Some("192.0.2.7".into()), Some("eth0".into()));
        }),
        ("-B fe80::1%eth0", |c| c.bind = Some("fe80::1%eth0".into())),
        ("-c host%eth0", |c| c.bind_device = Some("eth0".into())),
        ("-c host%eth0 --bind-dev eth1", |c| c.bind_device = Some("eth1".into())),
        ("-c fe80::1%eth0", |c| c.host = "fe80::1%eth0".into()),
        ("-c 2001:db8::1%eth0", |c| {
            (c.host, c.bind_device) = ("2001:db8::1".into(), Some("eth0".into()));
        }),
        ("--cport 5300", |c| c.client_port = Some(5300)),
        ("-R --rcv-timeout 100", |c| {
            c.settings.direction = Direction::Reverse;
            c.receive_timeout = Some(Duration::from_millis(100));
        }),
        ("--rcv-timeout 86400000 --bidir", |c| {
            c.settings.direction = Direction::Bidirectional;
            c.receive_timeout = Some(Duration::from_secs(86_400));
        }),
        // 64 KiB a message, and no rate, whatever iperf3 makes of the number of streams.
        ("--sctp --nstreams 5", |c| {
            c.settings = TestSettings::new(Protocol::Sctp);
            c.sctp.streams = Some(5);
        }),
        ("--sctp -l 1M -b 5M -X 192.0.2.7 -X ::1", |c| {
            c.settings = TestSettings::new(Protocol::Sctp);
            (c.settings.block_bytes, c.settings.bitrate) = (1 << 20, Some(BitsPerSec(5_000_000)));
            c.sctp.bind = vec!["192.0.2.7".into(), "::1".into()];
            c.rate_is_default = false;
        }),
        ("--snd-timeout 0", |_| ()),
        ("--snd-timeout 250", |c| c.send_timeout = Some(Duration::from_millis(250))),
        ("--cntl-ka", |c| c.control_keep_alive = KeepAlive::default()),
        ("--cntl-ka=20/3/4", |c| {
            c.control_keep_alive = KeepAlive {
                idle: Some(Duration::from_secs(20)),
                interval: Some(Duration::from_secs(3)),
                count: Some(4),
            };
        }),
        ("--cntl-ka=/7", |c| {
            let interval = Some(Duration::from_secs(7));
            c.control_keep_alive = KeepAlive { interval, ..KeepAlive::default() };
        }),
        ("-A 3", |c| c.affinity = Some(3)),
        ("-A 0x10,1024", |c| {
            (c.affinity, c.settings.server_affinity) = (Some(16), Some(1024));
        }),
        ("-F a.iso", |c| c.file = Some("a.iso".into())),
        ("--username mario --rsa-public-key-path key.pem", |c| {
            c.credentials = Some(Credentials {
                username: "mario".into(),
                password: String::new(),
                public_key: "key.pem".into(),
                padding: Padding::Oaep,
            });
        }),
        ("--forceflush --explain -J -V -f k", |_| ()),
    ];
    for (options, change) in rows {
        let mut expected = ClientConfig::new("host", Protocol::Tcp);
        change(&mut expected);
        assert_eq!(client(options).0, expected, "{options}");
    }
}

#[test]
fn passwords_are_not_printed() {
    let (config, _) = client("--username mario --rsa-public-key-path key.pem");
    let credentials = Credentials { password: "rossi".into(), ..config.credentials.unwrap() };
    let shown = format!("{credentials:?}");
    assert!(shown.contains("mario") && !shown.contains("rossi"), "{shown}");
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
        ("-m", |s| s.mptcp = true),
        ("-L 0xabcde", |s| s.flow_label = Some(0xabcde)),
        ("-L 1048575", |s| s.flow_label = Some(1_048_575)),
        ("--fq-rate 1G", |s| s.fq_rate = Some(BitsPerSec(1_000_000_000))),
        ("--fq-rate 0", |_| ()),
        ("--fq-rate 1G --no-fq-socket-pacing", |_| ()),
        ("--no-fq-socket-pacing --fq-rate 1G", |s| s.fq_rate = Some(BitsPerSec(1_000_000_000))),
        ("--pacing-timer 2K", |s| s.pacing_timer_us = 2048),
        ("--pacing-timer 0", |s| s.pacing_timer_us = 0),
        ("--skip-rx-copy", |s| s.skip_rx_copy = true),
        ("--dont-fragment", |s| s.dont_fragment = true),
        ("--gsro", |s| s.offload = Offload { gso: true, gro: true }),
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

/// As `wc -l` and `printf %5d` write them.
#[test]
fn blanks_around_a_number_do_no_harm() {
    for (option, value) in [
        ("-t", "3"),
        ("-i", "0.5"),
        ("-P", "4"),
        ("-p", "5300"),
        ("-S", "0x48"),
        ("-L", "7"),
        ("-A", "1"),
        ("-n", "1M"),
        ("-w", "64K"),
        ("-b", "10M/5"),
        ("-b", "10kpps"),
        ("--fq-rate", "1G"),
        ("--connect-timeout", "250"),
        ("--cntl-ka", "9/2/2"),
    ] {
        let words = |value: &str| {
            let words =
                ["linerate".into(), "-c".into(), "host".into(), format!("{option}={value}")];
            parse(words.into_iter().map(OsString::from))
        };
        assert_eq!(words(&format!("  {value} ")), words(value), "{option} {value}");
        assert!(words(value).is_ok(), "{option} {value}");
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
        ("-u -b 1000pps", |c| packets(c, 1000)),
        ("-u -b 2.5kpps", |c| packets(c, 2500)),
        ("-u -b 1MPPS/10", |c| {
            packets(c, 1_000_000);
            c.settings.burst = Some(10);
        }),
        ("-u -b 0pps", |c| (c.settings.bitrate, c.rate_is_default) = (None, false)),
        ("-u -b 5pps -b 0", |c| (c.settings.bitrate, c.rate_is_default) = (None, false)),
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

fn packets(config: &mut ClientConfig, rate: u64) {
    config.rate_is_default = false;
    config.settings.bitrate = None;
    config.packet_rate = Some(PacketsPerSec(rate));
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
        ("-B 192.0.2.7%eth0", |s| {
            (s.bind, s.bind_device) = (Some("192.0.2.7".into()), Some("eth0".into()));
        }),
        ("--bind-dev eth0", |s| s.bind_device = Some("eth0".into())),
        ("--idle-timeout 3", |s| s.idle_timeout = Some(Duration::from_secs(3))),
        ("--rcv-timeout 100", |s| s.receive_timeout = Some(Duration::from_millis(100))),
        ("--snd-timeout 250", |s| s.send_timeout = Some(Duration::from_millis(250))),
        ("--cntl-ka=9", |s| {
            let idle = Some(Duration::from_secs(9));
            s.control_keep_alive = KeepAlive { idle, ..KeepAlive::default() };
        }),
        ("-A 3", |s| s.affinity = Some(3)),
        ("-F a.iso", |s| s.file = Some("a.iso".into())),
        ("-m --cport 5300", |_| ()),
        ("-X 192.0.2.7 -X 192.0.2.8", |s| {
            s.sctp_bind = vec!["192.0.2.7".into(), "192.0.2.8".into()];
        }),
        ("--udp-anywhere", |s| s.udp_anywhere = true),
        ("--server-bitrate-limit 1G", |s| s.limits.bitrate = Some(BitsPerSec(1_000_000_000))),
        ("--server-bitrate-limit 1M/0.5", |s| {
            s.limits.bitrate = Some(BitsPerSec(1_000_000));
            s.limits.bitrate_span = Duration::from_millis(500);
        }),
        ("--server-bitrate-limit 1M/0", |s| {
            s.limits.bitrate = Some(BitsPerSec(1_000_000));
            s.limits.bitrate_span = Duration::ZERO;
        }),
        ("--server-bitrate-limit 0", |_| ()),
        ("--server-max-duration 5", |s| s.limits.duration = Some(Duration::from_secs(5))),
        ("--server-max-duration 0", |_| ()),
        ("--max-bitrate 2G", |s| s.limits.server_bitrate = Some(BitsPerSec(2_000_000_000))),
        ("--max-bitrate 0 --max-test-bytes 0 --max-tests-per-address 0 --queue 0", |_| ()),
        ("--max-test-bytes 10M", |s| s.limits.bytes = Some(10 << 20)),
        ("--max-streams 8", |s| s.limits.streams = 8),
        ("--max-tests 8", |s| s.limits.tests = 8),
        ("--max-tests-per-address 2", |s| s.limits.tests_per_address = Some(2)),
        ("--exclusive", |s| s.limits.tests = 1),
        ("--exclusive --max-tests 1", |s| s.limits.tests = 1),
        ("--queue 3", |s| (s.limits.tests, s.limits.queue) = (1, 3)),
        ("--queue 3/60 --max-tests 4", |s| {
            (s.limits.tests, s.limits.queue) = (4, 3);
            s.limits.queue_time = Duration::from_secs(60);
        }),
        // The file is read when the server begins.
        ("--policy a.toml", |_| ()),
        ("--rsa-private-key-path k --authorized-users-path u", |s| {
            s.login = Some(LoginConfig {
                private_key: "k".into(),
                users: "u".into(),
                time_skew: Duration::from_secs(10),
                padding: Padding::Oaep,
            });
        }),
        (
            "--authorized-users-path u --rsa-private-key-path k --use-pkcs1-padding \
          --time-skew-threshold 20",
            |s| {
                s.login = Some(LoginConfig {
                    private_key: "k".into(),
                    users: "u".into(),
                    time_skew: Duration::from_secs(20),
                    padding: Padding::Pkcs1,
                });
            },
        ),
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
        ("--json-stream", |o| o.json_stream = Some(JsonStreamKind::Lines)),
        ("-J --json-stream", |o| {
            (o.json, o.json_stream) = (true, Some(JsonStreamKind::Lines));
        }),
        ("--json-stream --json-stream-full", |o| {
            o.json_stream = Some(JsonStreamKind::LinesAndDocument);
        }),
        ("--json-stream-full-output", |_| ()),
        ("--logfile a.log", |o| o.logfile = Some("a.log".into())),
        ("--timestamps", |o| o.timestamps = Some("%c ".into())),
        ("--timestamps=%H:%M", |o| o.timestamps = Some("%H:%M".into())),
        ("-d", |o| o.debug = Some(4)),
        ("-dV", |o| (o.debug, o.verbose) = (Some(4), true)),
        ("--debug", |o| o.debug = Some(4)),
        ("--debug=1", |o| o.debug = Some(1)),
        ("--debug=9", |o| o.debug = Some(4)),
        ("--debug=0", |_| ()),
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
            json_stream: None,
            logfile: None,
            timestamps: None,
            test_log: None,
            debug: None,
            has_obsolete: false,
            verbose: false,
            explain: false,
            title: None,
        };
        change(&mut expected);
        assert_eq!(client(options).1, expected, "{options}");
        assert_eq!(server(options).1, expected, "{options}");
    }
    for (word, choice) in [
        ("text", LogChoice::Lines(LogFormat::Text)),
        ("json", LogChoice::Lines(LogFormat::Json)),
        ("off", LogChoice::Off),
    ] {
        assert_eq!(server(&format!("--test-log {word}")).1.test_log, Some(choice));
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
        ("--byt 3", "--bytes 3"),
        ("--ban 1M", "--bandwidth 1M"),
        ("--bit=1M", "--bitrate=1M"),
        ("--rev", "--reverse"),
        ("--get", "--get-server-output"),
        ("--udp-c --no-d", "--udp-counters-64bit --no-delay"),
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
        let Ok(Command::Server(_, output, _)) = command else { panic!("{arg0}: {command:?}") };
        assert_eq!((output.program.as_str(), output.explain), (program, explain));
    }
}

#[test]
fn auth_is_a_command_of_its_own() {
    let parsed = |line: &str| parse_line(&format!("linerate {line}"));
    let keys =
        |bits, prefix: &str| Ok(Command::Auth(AuthConfig::Keys { bits, prefix: prefix.into() }));
    let user = |file: Option<&str>| {
        Ok(Command::Auth(AuthConfig::User { name: "mario".into(), file: file.map(Into::into) }))
    };
    assert_eq!(parsed("auth keys"), keys(2048, "linerate"));
    assert_eq!(parsed("auth keys --bits 4096 --out lab"), keys(4096, "lab"));
    assert_eq!(parsed("auth user mario"), user(None));
    assert_eq!(parsed("auth user mario --file users.csv"), user(Some("users.csv")));
    for line in ["auth -h", "auth --help", "auth keys --help", "auth user -h"] {
        assert!(matches!(parsed(line), Err(Stop::Help(_))), "{line}");
    }
    let bad = [
        ("auth", "auth: must be followed by keys or user"),
        ("auth frob", "auth: must be followed by keys or user"),
        ("auth user", "auth user: needs a value (NAME)"),
        ("auth keys --bits 9", "--bits 9: the size of a key must be 1024 to 8192 bits"),
        ("auth keys --bits -1", "--bits -1: the size of a key must be 1024 to 8192 bits"),
        ("auth keys --out", "--out: needs a value (PREFIX)"),
        ("auth user mario --frob", "--frob: unknown option"),
    ];
    for (line, message) in bad {
        let usage = format!("linerate: parameter error - {message}");
        assert_eq!(parsed(line), Err(Stop::Usage(usage)), "{line}");
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

#[test]
fn a_process_is_told_how_to_live() {
    let process = |line: &str| match parse_line(line) {
        Ok(Command::Client(.., process) | Command::Server(.., process)) => process,
        other => panic!("{line}: {other:?}"),
    };
    assert_eq!(process("linerate -s"), ProcessConfig::default());
    let pidfile = Some("a.pid".into());
    let daemon =
        ProcessConfig { daemon: true, pidfile: pidfile.clone(), ..ProcessConfig::default() };
    assert_eq!(process("linerate -s -D -I a.pid"), daemon);
    assert_eq!(process("linerate --daemon --pidfile=a.pid --server"), daemon);
    assert_eq!(
        process("linerate -c host -I a.pid"),
        ProcessConfig { pidfile, ..ProcessConfig::default() }
    );
}
