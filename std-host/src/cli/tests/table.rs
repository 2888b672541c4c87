//! The option table of iperf3, row by row: spellings, an example of a value, and who may use it.
//! Every row is tried in each place of a command line.

use super::*;

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Client,
    Server,
    Both,
}
use Side::{Both, Client, Server};

/// Spellings with a value after them, as iperf3 3.21 and its later master take them; the last column
/// is what must stand beside them.
const TABLE: &[(&[&str], Side, &str)] = &[
    (&["-p 5300", "-p5300", "--port 5300", "--port=5300"], Both, ""),
    (&["-f m", "-fm", "--format m", "--format=MBytes"], Both, ""),
    (&["-i 0.5", "-i0", "--interval 60", "--interval=.1"], Both, ""),
    (&["-I a.pid", "-Ia.pid", "--pidfile a.pid"], Both, ""),
    (&["-F a.iso", "-Fa.iso", "--file a.iso"], Both, ""),
    (&["-A 1", "-A1", "--affinity 0x1"], Both, ""),
    (&["-A 1,2", "-A1,2", "--affinity=1,2"], Client, ""),
    (&["-B 192.0.2.1", "--bind ::1", "-B 192.0.2.1%eth0", "-B fe80::1%eth0"], Both, ""),
    (&["--bind-dev eth0", "--bind-dev=eth0"], Both, ""),
    (&["-V", "--verbose"], Both, ""),
    (&["-J", "--json"], Both, ""),
    (&["--json-stream"], Both, ""),
    (&["--json-stream-full-output", "--json-stream-full"], Both, "--json-stream"),
    (&["--logfile a.log", "--logfile=a.log"], Both, ""),
    (&["--forceflush"], Both, ""),
    (&["--timestamps", "--timestamps=%s"], Both, ""),
    (&["--rcv-timeout 100", "--rcv-timeout=86400000"], Server, ""),
    (&["--rcv-timeout 100", "--rcv-timeout=86400000"], Client, "-R"),
    (&["--rcv-timeout 100"], Client, "--bidir"),
    (&["--snd-timeout 0", "--snd-timeout=86400000"], Both, ""),
    (&["--cntl-ka", "--cntl-ka=10/1/2", "--cntl-ka=10", "--cntl-ka=//2"], Both, ""),
    (&["-m", "--mptcp"], Both, ""),
    (&["-d", "--debug", "--debug=1", "--debug=4"], Both, ""),
    (&["-4", "--version4"], Both, ""),
    (&["-6", "--version6"], Both, ""),
    (&["-D", "--daemon"], Server, ""),
    (&["-1", "--one-off"], Server, ""),
    (&["--test-log text", "--test-log=json", "--test-log off"], Server, ""),
    (&["--idle-timeout 1", "--idle-timeout=86400"], Server, ""),
    (&["--server-bitrate-limit 1G", "--server-bitrate-limit=1M/0.1"], Server, ""),
    (&["--server-max-duration 0", "--server-max-duration=86400"], Server, ""),
    (&["--max-bitrate 1G", "--max-bitrate=0"], Server, ""),
    (&["--max-test-bytes 1G", "--max-test-bytes=0"], Server, ""),
    (&["--max-streams 1", "--max-streams=128"], Server, ""),
    (&["--max-tests 1", "--max-tests=10000"], Server, ""),
    (&["--max-tests-per-address 0", "--max-tests-per-address=10000"], Server, ""),
    (&["--exclusive"], Server, ""),
    (&["--queue 0", "--queue=1000", "--queue 4/86400"], Server, ""),
    (&["--policy a.toml", "--policy=a.toml"], Server, ""),
    (&["--answer-timeout 0", "--answer-timeout=86400"], Client, ""),
    (&["--rsa-private-key-path k"], Server, "--authorized-users-path u"),
    (&["--authorized-users-path u"], Server, "--rsa-private-key-path k"),
    (&["--time-skew-threshold 1"], Server, ""),
    (&["--use-pkcs1-padding"], Server, ""),
    (&["--udp-anywhere"], Server, ""),
    (&["-X 192.0.2.1", "--xbind ::1"], Server, ""),
    (&["-u", "--udp"], Client, ""),
    (&["--sctp"], Client, ""),
    (&["--nstreams 5", "--nstreams=65535", "-X 192.0.2.1", "--xbind ::1"], Client, "--sctp"),
    (&["--connect-timeout 1", "--connect-timeout=1K"], Client, ""),
    (&["-b 1M", "-b1M/10", "-b 1kpps/2", "--bitrate 0", "--bandwidth=2.5G"], Client, ""),
    (&["--pacing-timer 0", "--pacing-timer=1K"], Client, ""),
    (&["--fq-rate 1M", "--fq-rate=0"], Client, ""),
    (&["--no-fq-socket-pacing"], Client, ""),
    (&["-t 0", "-t86400", "--time 1", "--time=1"], Client, ""),
    (&["-n 1", "-n1M", "--bytes 1K", "--bytes=1g"], Client, ""),
    (&["-k 1", "-k1M", "--blockcount 1K", "--blockcount=1t"], Client, ""),
    (&["-l 1", "-l1M", "--length 0", "--length=8K"], Client, ""),
    (&["-l 16", "--length=65507"], Client, "-u"),
    (&["--cport 1", "--cport=65535"], Both, ""),
    (&["-P 1", "-P128", "--parallel 4", "--parallel=4"], Client, ""),
    (&["-R", "--reverse"], Client, ""),
    (&["--bidir"], Client, ""),
    (&["-w 0", "-w512M", "--window 256K", "--window=1M"], Client, ""),
    (&["-C cubic", "-Cbbr", "--congestion reno", "--linux-congestion=cubic"], Client, ""),
    (&["-M 0", "-M32767", "--set-mss 1400", "--set-mss=88"], Client, ""),
    (&["-N", "--no-delay"], Client, ""),
    (&["-S 0", "-S0xff", "-S 0377", "--tos 184", "--tos=255"], Client, ""),
    (
        &["--dscp 0", "--dscp 63", "--dscp=0x2e", "--dscp EF", "--dscp af11", "--dscp cs0"],
        Client,
        "",
    ),
    (&["-L 1", "-L0xfffff", "--flowlabel 1048575", "--flowlabel=07"], Client, ""),
    (&["-Z", "--zerocopy"], Client, ""),
    (&["--skip-rx-copy"], Client, ""),
    (&["-O 0", "-O600", "--omit 3", "--omit=3"], Client, ""),
    (&["-T x", "-Tx", "--title x", "--title=x"], Client, ""),
    (&["--extra-data x", "--extra-data=x"], Client, ""),
    (&["--get-server-output"], Client, ""),
    (&["--udp-counters-64bit"], Client, ""),
    (&["--gsro"], Client, ""),
    (&["--repeating-payload"], Client, ""),
    (&["--dont-fragment"], Client, ""),
    (&["--username u"], Client, "--rsa-public-key-path k"),
    (&["--rsa-public-key-path k"], Client, "--username u"),
];

#[test]
fn every_spelling_is_taken_by_its_roles_wherever_it_stands() {
    for (spellings, side, beside) in TABLE {
        for spelling in *spellings {
            for (role, is_own) in [("-c host", *side != Server), ("-s", *side != Client)] {
                if !is_own {
                    continue;
                }
                for line in [
                    format!("linerate {role} {spelling} {beside}"),
                    format!("linerate {spelling} {role} {beside}"),
                    format!("linerate {beside} {spelling} {role}"),
                ] {
                    assert!(parse_line(&line).is_ok(), "{line}: {:?}", parse_line(&line));
                }
            }
        }
    }
}

#[test]
fn the_other_role_is_told_whose_option_it_is() {
    for (spellings, side, beside) in TABLE {
        // These two serve both roles, with another meaning or under another condition.
        let shared = ["--rcv-timeout", "--use-pkcs1-padding", "-X"];
        if shared.iter().any(|shared| spellings[0].starts_with(shared)) {
            continue;
        }
        let (role, text) = match side {
            Both => continue,
            Client => ("-s", "client only"),
            Server => ("-c host", "server only"),
        };
        for spelling in *spellings {
            for line in [
                format!("linerate {role} {spelling} {beside}"),
                format!("linerate {beside} {spelling} {role}"),
            ] {
                let stop = parse_line(&line).expect_err(&line);
                assert!(stop.to_string().ends_with(text), "{line}: {stop}");
            }
        }
    }
}

#[test]
fn the_table_leaves_no_option_out() {
    let own = ["server", "client", "version", "help", "explain"];
    for arg in args::command("linerate").get_arguments() {
        let long = arg.get_long().expect("every option has a long name");
        let is_listed = TABLE.iter().flat_map(|(spellings, ..)| *spellings).any(|spelling| {
            let name = spelling.split([' ', '=']).next().unwrap_or_default();
            name.strip_prefix("--") == Some(long)
        });
        assert!(is_listed || own.contains(&long), "--{long}");
    }
}

/// Options that iperf3 does not have.
const OURS: [&str; 11] = [
    "answer-timeout",
    "exclusive",
    "max-bitrate",
    "max-streams",
    "max-test-bytes",
    "max-tests",
    "max-tests-per-address",
    "policy",
    "queue",
    "test-log",
    "udp-anywhere",
];

/// What this command has beside iperf3's options makes none of their beginnings ambiguous.
#[test]
fn every_beginning_that_iperf3_takes_is_taken() {
    let spellings = || TABLE.iter().flat_map(|(spellings, ..)| *spellings);
    let long = |spelling: &'static str| spelling.split([' ', '=']).next()?.strip_prefix("--");
    let mut names: Vec<_> = spellings().filter_map(|&spelling| long(spelling)).collect();
    names.retain(|name| *name != "json-stream-full" && !OURS.contains(name));
    names.extend(["server", "client", "version", "help"]);
    names.sort_unstable();
    names.dedup();
    for (spellings, side, beside) in TABLE {
        let role = if *side == Server { "-s" } else { "-c host" };
        for &spelling in *spellings {
            let Some(name) = long(spelling).filter(|name| names.contains(name)) else { continue };
            for end in 1..name.len() {
                let cut = &name[..end];
                if names.iter().filter(|name| name.starts_with(cut)).count() > 1 {
                    continue;
                }
                let [whole, cut] = [spelling, &spelling.replacen(name, cut, 1)]
                    .map(|option| parse_line(&format!("linerate {role} {option} {beside}")));
                assert_eq!(cut, whole, "{spelling} {end}");
            }
        }
    }
}

#[test]
fn any_unique_beginning_of_a_long_option_is_enough() {
    for line in ["-c host --rev", "-c host --par 4", "-s --one", "-c host --len 1K", "-s --verb"] {
        let line = format!("linerate {line}");
        assert!(parse_line(&line).is_ok(), "{line}: {:?}", parse_line(&line));
    }
}
