use super::*;

const BLOCK: &str = "block size too large (maximum = 1048576 bytes)";
const BURST: &str = "invalid burst count (maximum = 1000)";
const CLIENT_ONLY: &str = "some option you are trying to set is client only";
const CPU: &str = "unable to set CPU affinity (0 to 1024)";
const DEVICE: &str = "must be HOST or HOST%DEVICE";
const IDLE: &str = "idle timeout parameter is not positive or larger than allowed limit (1 to 86400 \
                    seconds)";
const KEEP_ALIVE: &str = "control connection Keepalive period should be larger than the full retry \
                          period (interval * count)";
const KEEP_ALIVE_FORM: &str = "must be IDLE/INTERVAL/COUNT, each 0 to 32767";
const LABEL: &str = "unable to set IPv6 flow label (1 to 1048575)";
const PACING: &str = "must be 0 to 2147483647 microseconds";
const RECEIVE: &str =
    "receive timeout value is incorrect or not in range (100 to 86400000 milliseconds)";
const SEND: &str = "send timeout value is incorrect or not in range (0 to 86400000 milliseconds)";
const SKEW: &str = "skew threshold must be a positive number of seconds";
const SPAN: &str = "invalid time interval for calculating average data rate (0, or 0.1 to 60 \
                    seconds)";
const COUNT: &str = "must be 0 or more, and less than 2^63";
const DATAGRAM: &str = "block size invalid (minimum = 16 bytes, maximum = 65507 bytes)";
const DSCP: &str = "bad DSCP value (numeric: 0-63 inclusive, symbolic: one of [af11-13, af21-23, \
                    af31-33, af41-43, cs1-7, ef, va, lowdelay, throughput, reliability])";
const ENDS: &str = "only one test end condition (-t, -n, -k) may be specified";
const FORMAT: &str = "bad format specifier (valid formats are in the set [kmgtKMGT])";
const HOST: &str = "must be a name or an address";
const INTERVAL: &str = "invalid report interval (min = 0.1, max = 60 seconds)";
const MSS: &str = "TCP MSS must be 0 to 32767 bytes";
const OMIT: &str = "bogus value for --omit (maximum = 600 seconds)";
const PACKET_RATE: &str = "must be 0, or 1 or more and less than 2^40 packets per second";
const PORT: &str = "port number must be between 1 and 65535 inclusive";
const QUEUE: &str = "must be 0 to 1000 clients, or CLIENTS/SECONDS with 1 to 86400";
const RATE: &str = "must be 0 or more, and less than 2^63 bits per second";
const SERVER_ONLY: &str = "some option you are trying to set is server only";
const STREAMS: &str = "invalid number of parallel streams (min = 1, max = 128)";
const TEST_LOG: &str = "must be text, json or off";
const TIME: &str = "test duration valid values are 0 to 86400 seconds";
const TIMEOUT: &str = "must be 1 to 2147483647 milliseconds";
const TOS: &str = "bad TOS value (must be between 0 and 255 inclusive)";
const TRANSPORTS: &str = "only one of -u, --sctp and -m can be";
const UDP_FILE: &str = "cannot transfer file using UDP";
const WINDOW: &str = "socket buffer size must be 0 to 536870912 bytes";
const WINDOW_MAX: &str = "socket buffer size too large (maximum = 536870912 bytes)";

/// Each row: what follows `linerate`, then the line without its beginning.
fn check(rows: &[(&str, &str, &str)]) {
    for (options, seen, allowed) in rows {
        let line = match *seen {
            "" => format!("linerate: parameter error - {allowed}"),
            _ => format!("linerate: parameter error - {seen}: {allowed}"),
        };
        let stop = parse_line(&format!("linerate {options}")).expect_err(options);
        assert_eq!(stop, Stop::Usage(line), "{options}");
        assert_eq!(stop.exit_code() as u8, 1);
    }
}

#[test]
fn one_role_is_needed() {
    let none = "must either be a client (-c) or server (-s)";
    let both = "cannot be both server and client";
    check(&[
        ("", "", none),
        ("-V -t 5", "", none),
        ("-s -c host", "-s -c host", both),
        ("-c host -s", "-s -c host", both),
        ("--client=", "-c ''", HOST),
        ("-s -B=", "-B ''", HOST),
    ]);
}

#[test]
fn a_number_is_read_to_its_last_character() {
    check(&[
        ("-c host -t abc", "-t abc", TIME),
        ("-c host -t 1.5", "-t 1.5", TIME),
        ("-c host -t 10s", "-t 10s", TIME),
        ("-c host --time=", "-t ''", TIME),
        ("-c host -p 80x", "-p 80x", PORT),
        ("-s -p 80x", "-p 80x", PORT),
        ("-c host -i 1s", "-i 1s", INTERVAL),
        ("-c host -i nan", "-i nan", INTERVAL),
        ("-c host -O x", "-O x", OMIT),
        ("-c host -P 2x", "-P 2x", STREAMS),
        ("-c host -M abc", "-M abc", MSS),
        ("-c host -S 08", "-S 08", TOS),
        ("-c host -S 0x", "-S 0x", TOS),
        ("-c host -S 0x+5", "-S 0x+5", TOS),
        ("-c host -S 72x", "-S 72x", TOS),
        ("-c host --dscp 46x", "--dscp 46x", DSCP),
        ("-c host -b 1M/x", "-b 1M/x", BURST),
    ]);
}

#[test]
fn a_unit_is_one_of_four_letters() {
    let options =
        ["-n", "-k", "-l", "-w", "--connect-timeout", "--fq-rate", "--pacing-timer", "--nstreams"];
    for option in options {
        for (value, number) in [("abc", "abc"), ("10%", "10%"), ("1q", "1q")] {
            let allowed =
                format!("invalid unit value or suffix: '{number}' (a number, then k, m, g or t)");
            let (options, seen) =
                (format!("-c host {option} {value}"), format!("{option} {value}"));
            check(&[(&options, &seen, &allowed)]);
        }
    }
}

#[test]
fn a_rate_may_be_one_of_packets() {
    for (value, number) in
        [("abc", "abc"), ("1q", "1q"), ("/5", ""), ("pps", "pps"), ("5xpps/2", "5xpps")]
    {
        let allowed = format!(
            "invalid unit value or suffix: '{number}' (a number, then k, m, g or t, and pps for \
             packets)"
        );
        check(&[(&format!("-c host -b {value}"), &format!("-b {value}"), &allowed)]);
    }
}

#[test]
fn a_number_keeps_its_range() {
    check(&[
        ("-c host -t -1", "-t -1", TIME),
        ("-c host -t -40", "-t -40", TIME),
        ("-c host -t 86401", "-t 86401", TIME),
        ("-c host -t 4294967295", "-t 4294967295", TIME),
        ("-c host -p 0", "-p 0", PORT),
        ("-s -p 0", "-p 0", PORT),
        ("-s -p 65536", "-p 65536", PORT),
        ("-c host -p -5", "-p -5", PORT),
        ("-c host -i 0.05", "-i 0.05", INTERVAL),
        ("-s -i 61", "-i 61", INTERVAL),
        ("-c host -i -1", "-i -1", INTERVAL),
        ("-c host -O 601", "-O 601", OMIT),
        ("-c host -O -1", "-O -1", OMIT),
        ("-c host -P 0", "-P 0", STREAMS),
        ("-c host -P -3", "-P -3", STREAMS),
        ("-c host -P 129", "-P 129", STREAMS),
        ("-c host -M -1", "-M -1", MSS),
        ("-c host -M 40000", "-M 40000", "TCP MSS too large (maximum = 32767 bytes)"),
        ("-c host -S 256", "-S 256", TOS),
        ("-c host -S -1", "-S -1", TOS),
        ("-c host --dscp 64", "--dscp 64", DSCP),
        ("-c host --dscp af14", "--dscp af14", DSCP),
        ("-c host --dscp cs8", "--dscp cs8", DSCP),
        ("-c host -w -1", "-w -1", WINDOW),
        ("-c host -w 513M", "-w 513M", WINDOW_MAX),
        ("-c host -w 8G", "-w 8G", WINDOW_MAX),
        ("-c host -b -1", "-b -1", RATE),
        ("-c host -b 1e30", "-b 1e30", RATE),
        ("-c host -b 0.5pps", "-b 0.5pps", PACKET_RATE),
        ("-c host -b 1100Gpps", "-b 1100Gpps", PACKET_RATE),
        ("-c host -b 1kpps/1001", "-b 1kpps/1001", BURST),
        ("-c host -b 1M/0", "-b 1M/0", BURST),
        ("-c host -b 1M/1001", "-b 1M/1001", BURST),
        ("-c host -n -1", "-n -1", COUNT),
        ("-c host -k 1e30", "-k 1e30", COUNT),
        ("-c host --connect-timeout 0", "--connect-timeout 0", TIMEOUT),
        ("-c host --connect-timeout -1", "--connect-timeout -1", TIMEOUT),
        ("-c host --connect-timeout 3G", "--connect-timeout 3G", TIMEOUT),
        ("-c host -f q", "-f q", FORMAT),
        ("-c host -fq-rate 1M", "-f q-rate", FORMAT),
        ("-s --format=", "-f ''", FORMAT),
        ("-c host --cport 0", "--cport 0", PORT),
        ("-c host --cport 65536", "--cport 65536", PORT),
        ("-c host -A 1025", "-A 1025", CPU),
        ("-c host -A 0,1025", "-A 0,1025", CPU),
        ("-c host -A -1", "-A -1", CPU),
        ("-c host -A 0,", "-A 0,", CPU),
        ("-s -A x", "-A x", CPU),
        ("-c host -L 0", "-L 0", LABEL),
        ("-c host -L 1048576", "-L 1048576", LABEL),
        ("-c host -R --rcv-timeout 99", "--rcv-timeout 99", RECEIVE),
        ("-s --rcv-timeout 86400001", "--rcv-timeout 86400001", RECEIVE),
        ("-s --snd-timeout -1", "--snd-timeout -1", SEND),
        ("-c host --snd-timeout 86400001", "--snd-timeout 86400001", SEND),
        ("-s --cntl-ka=5/5/1", "--cntl-ka 5/5/1", KEEP_ALIVE),
        ("-s --cntl-ka=5/1/1/1", "--cntl-ka 5/1/1/1", KEEP_ALIVE_FORM),
        ("-s --cntl-ka=x", "--cntl-ka x", KEEP_ALIVE_FORM),
        ("-s --cntl-ka=32768", "--cntl-ka 32768", KEEP_ALIVE_FORM),
        ("-s --test-log xml", "--test-log xml", TEST_LOG),
        ("-s --idle-timeout 0", "--idle-timeout 0", IDLE),
        ("-s --idle-timeout 86401", "--idle-timeout 86401", IDLE),
        ("-s --server-bitrate-limit -1", "--server-bitrate-limit -1", RATE),
        ("-s --server-bitrate-limit 1M/0.05", "--server-bitrate-limit 1M/0.05", SPAN),
        ("-s --server-bitrate-limit 1M/61", "--server-bitrate-limit 1M/61", SPAN),
        ("-s --server-bitrate-limit 1M/x", "--server-bitrate-limit 1M/x", SPAN),
        ("-s --server-max-duration -1", "--server-max-duration -1", TIME),
        ("-s --server-max-duration 86401", "--server-max-duration 86401", TIME),
        ("-s --max-bitrate -1", "--max-bitrate -1", RATE),
        ("-s --max-test-bytes -1", "--max-test-bytes -1", COUNT),
        ("-s --max-streams 0", "--max-streams 0", STREAMS),
        ("-s --max-streams 129", "--max-streams 129", STREAMS),
        ("-s --max-tests 0", "--max-tests 0", "must be 1 to 10000 tests"),
        ("-s --max-tests 10001", "--max-tests 10001", "must be 1 to 10000 tests"),
        (
            "-s --max-tests-per-address 10001",
            "--max-tests-per-address 10001",
            "must be 0 to 10000 tests",
        ),
        ("-s --queue 1001", "--queue 1001", QUEUE),
        ("-s --queue 1/0", "--queue 1/0", QUEUE),
        ("-s --queue x", "--queue x", QUEUE),
        ("-s --exclusive --max-tests 2", "--exclusive --max-tests 2", "only one of them can be"),
        ("-s --queue 2 -1", "-1 --queue 2", "only one of them can be"),
        ("-c host --answer-timeout -1", "--answer-timeout -1", "must be 0 to 86400 seconds"),
        ("-c host --answer-timeout 86401", "--answer-timeout 86401", "must be 0 to 86400 seconds"),
        ("-s --time-skew-threshold 0", "--time-skew-threshold 0", SKEW),
        ("-s --time-skew-threshold -5", "--time-skew-threshold -5", SKEW),
        ("-c host --fq-rate -1", "--fq-rate -1", RATE),
        ("-c host --pacing-timer -1", "--pacing-timer -1", PACING),
        ("-c host --pacing-timer 2G", "--pacing-timer 2G", PACING),
        ("-c host --debug=x", "-d x", "must be 0 to 4"),
        ("-c host --nstreams 0", "--nstreams 0", "must be 1 to 65535 streams"),
        ("-c host%", "-c host%", DEVICE),
        ("-s -B %eth0", "-B %eth0", DEVICE),
        ("-c host --bind-dev=", "--bind-dev ''", "must be the name of a network device"),
        ("-c host --congestion=", "-C ''", "must be the name of a congestion control algorithm"),
    ]);
}

#[test]
fn a_block_fits_the_protocol_wherever_it_stands() {
    check(&[
        ("-c host -u -l 15", "-l 15", DATAGRAM),
        ("-c host -l 15 -u", "-l 15", DATAGRAM),
        ("-c host -l 65508 -u", "-l 65508", DATAGRAM),
        ("-c host -u -l -1", "-l -1", DATAGRAM),
        ("-c host -l 2M", "-l 2M", BLOCK),
        ("-c host -l 1048577", "-l 1048577", BLOCK),
        ("-c host -l -1", "-l -1", BLOCK),
        ("-c host -l 1e30", "-l 1e30", BLOCK),
        ("-c host -l 1048577 --sctp", "-l 1048577", BLOCK),
    ]);
}

#[test]
fn an_option_of_the_other_role_is_named() {
    check(&[
        ("-s -u", "-u", CLIENT_ONLY),
        ("-b 1G -s", "-b 1G", CLIENT_ONLY),
        ("-s -t 5", "-t 5", CLIENT_ONLY),
        ("-s -R", "-R", CLIENT_ONLY),
        ("-s -T x", "-T x", CLIENT_ONLY),
        ("-s --get-server-output", "--get-server-output", CLIENT_ONLY),
        ("-s --gsro", "--gsro", CLIENT_ONLY),
        ("-s --sctp", "--sctp", CLIENT_ONLY),
        ("-s --username u --cport 1", "--username u", CLIENT_ONLY),
        ("-s --cport 0 --username u", "--cport 0", PORT),
        ("-s -A 1,2", "-A 1,2", CLIENT_ONLY),
        ("-c host -D", "-D", SERVER_ONLY),
        ("-c host --test-log text", "--test-log text", SERVER_ONLY),
        ("-c host --idle-timeout 3", "--idle-timeout 3", SERVER_ONLY),
        ("-c host --server-bitrate-limit 1M", "--server-bitrate-limit 1M", SERVER_ONLY),
        ("-c host --server-max-duration 5", "--server-max-duration 5", SERVER_ONLY),
        ("-c host --authorized-users-path u", "--authorized-users-path u", SERVER_ONLY),
        ("-c host --exclusive", "--exclusive", SERVER_ONLY),
        ("-c host --queue 2", "--queue 2", SERVER_ONLY),
        ("-c host --policy a.toml", "--policy a.toml", SERVER_ONLY),
        ("-s --answer-timeout 5", "--answer-timeout 5", CLIENT_ONLY),
        ("-s --connect-timeout 5", "--connect-timeout 5", CLIENT_ONLY),
        ("-c host -1", "-1", SERVER_ONLY),
        ("--one-off -c host", "-1", SERVER_ONLY),
        // A value that is bad for any role comes first, as in iperf3.
        ("-s -t x", "-t x", TIME),
    ]);
}

#[test]
fn options_that_exclude_each_other_are_named_together() {
    let both = "cannot be both reverse and bidirectional";
    check(&[
        ("-c host -R --bidir", "-R --bidir", both),
        ("-c host --bidir -R", "-R --bidir", both),
        ("-c host -n 1M -t 5", "-t 5 -n 1M", ENDS),
        ("-c host -t 0 -k 5", "-t 0 -k 5", ENDS),
        ("-c host -n 1M -k 5", "-n 1M -k 5", ENDS),
        ("-c host -k 1 -t 5 -n 1", "-t 5 -n 1 -k 1", ENDS),
        ("-c host -F f -u", "-u -F f", UDP_FILE),
        ("-c host -u -F f -R", "-u -F f", UDP_FILE),
        ("-c host -m -u", "-u -m", TRANSPORTS),
        ("-c host --sctp -u", "-u --sctp", TRANSPORTS),
        ("-c host --sctp -m", "--sctp -m", TRANSPORTS),
    ]);
}

#[test]
fn an_option_that_needs_another_says_so() {
    let login = "you must specify a username, password, and path to a valid RSA public key";
    let server = "you must specify a path to a valid RSA private key and a user credential file";
    let sender = "client receive timeout is valid only in receiving mode";
    check(&[
        ("-c host --username mario", "--username mario", login),
        ("-c host --rsa-public-key-path k", "--rsa-public-key-path k", login),
        ("-s --rsa-private-key-path k", "--rsa-private-key-path k", server),
        ("-s --authorized-users-path u", "--authorized-users-path u", server),
        ("-c host --rcv-timeout 500", "--rcv-timeout 500", sender),
        ("-c host --nstreams 5", "--nstreams 5", "is for --sctp only"),
        ("-c host -X 192.0.2.1", "-X 192.0.2.1", "is for --sctp only"),
    ]);
}

#[test]
fn no_option_takes_the_next_one_as_its_value() {
    check(&[
        ("-c host -i -u", "-i", "needs a value (SECONDS)"),
        ("-c host -i", "-i", "needs a value (SECONDS)"),
        ("-c host --time --udp", "-t", "needs a value (SECONDS)"),
        ("-c -u", "-c", "needs a value (HOST)"),
        ("-c host -T -u", "-T", "needs a value (TEXT)"),
        ("-c host --extra-data", "--extra-data", "needs a value (TEXT)"),
        ("-c host --udp=1", "-u 1", "takes no value"),
    ]);
}

#[test]
fn a_word_that_is_no_option_is_refused() {
    let versions = "ambiguous option, could be --version4, --version6, --verbose, --version";
    check(&[
        ("-c host --tme 5", "--tme", "unknown option, did you mean --time?"),
        ("-c host --nonsense", "--nonsense", "unknown option"),
        ("-c host -x", "-x", "unknown option"),
        ("-c host -ux", "-x", "unknown option"),
        ("-c host --ver", "--ver", versions),
        (
            "-c host --bi",
            "--bi",
            "ambiguous option, could be --bind, --bind-dev, --bidir, --bitrate",
        ),
        ("-c host stray", "stray", "unexpected word, options begin with -"),
    ]);
}

#[test]
fn the_answer_is_one_line_whatever_was_typed() {
    let args = ["iperf3", "-c", "host", "-t", "1\n2\u{1b}[0m"];
    let stop = parse(args.into_iter().map(OsString::from)).expect_err("no number");
    let line = format!(r"iperf3: parameter error - -t 1\n2\u{{1b}}[0m: {TIME}");
    assert_eq!(stop, Stop::Usage(line));
}

#[test]
fn an_empty_word_is_visible() {
    let args = ["linerate", "-c", "host", ""];
    let stop = parse(args.into_iter().map(OsString::from)).expect_err("no option");
    let line = "linerate: parameter error - '': unexpected word, options begin with -";
    assert_eq!(stop, Stop::Usage(line.into()));
}

#[cfg(unix)]
#[test]
fn an_argument_that_is_not_utf8_is_refused() {
    use std::os::unix::ffi::OsStringExt;
    let args = ["linerate".into(), "-c".into(), OsString::from_vec(vec![b'h', 0xff])];
    let stop = parse(args.into_iter()).expect_err("not UTF-8");
    let line = "linerate: parameter error - h\u{fffd}: must be valid UTF-8";
    assert_eq!(stop, Stop::Usage(line.into()));
}
