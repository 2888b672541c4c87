//! What linerate tells beyond iperf3's numbers, between real programs: in lines after the summary with
//! `--explain` or on a terminal, and under the key `linerate` of documents, also where the other end is
//! stock iperf3.

use std::time::Duration;

use linerate_tests::both::{End, Outcome, Run};
use linerate_tests::client;
use linerate_tests::json::{Stream, fractional_keys, key_paths, strict};
use linerate_tests::process::Ended;
use linerate_tests::rows::run_all;
use linerate_tests::server::Server;
use linerate_tests::tool::Tool::{self, Iperf3, Linerate};
use serde_json::Value;

/// What a sender of datagrams says of itself, what their receiver does, and what a sender of bytes does.
const SENDER_UDP: &[&str] = &["Gaps of departure"];
const RECEIVER_UDP: &[&str] =
    &["Delay variation", "Between neighbours", "Jitter (RFC 3550)", "Lost"];
const SENDER_TCP: &[&str] = &["Round trip", "Sender waited", "Sent again"];

#[cfg(target_os = "linux")]
#[test]
fn lines_after_the_summary_explain_the_result() {
    run_all(
        &[
            ("-u -t 1 -b 2M -l 1000", SENDER_UDP, RECEIVER_UDP),
            ("-u -t 1 -b 2M -l 1000 -R", RECEIVER_UDP, SENDER_UDP),
            ("-t 1 -b 50M", SENDER_TCP, &[]),
            ("-t 1 -b 50M -R", &[], SENDER_TCP),
        ],
        |&(mode, by_client, by_server)| {
            let client = format!("{mode} --explain");
            let run = Run { client: &client, server: "--explain", stopped: None };
            let outcome = run.by(Linerate, "127.0.0.1")?;
            let done = "\niperf Done.\n";
            if !outcome.client.stdout.ends_with(done) {
                return Err(format!("{mode}: {}", outcome.client));
            }
            explains(&outcome.client, by_client)?;
            explains(&outcome.server, by_server)
        },
    );
}

#[test]
fn with_several_streams_or_directions_lines_say_whose_they_are() {
    let options = "-u -t 1 -b 1M -l 1000 -P 2 --bidir --explain";
    for (options, beginnings) in [
        (options.to_owned(), &["[TX-C] Gaps of departure", "[RX-C] Lost"][..]),
        (format!("{options} -V"), &["[TX-C] Gaps of departure", "[RX-C] Lost"]),
    ] {
        let run = Run { client: &options, server: "", stopped: None };
        let ended = run.by(Linerate, "127.0.0.1").expect("it ends").client;
        let of_each = options.ends_with("-V");
        for beginning in beginnings {
            let (tag, name) = beginning.split_once(' ').expect("two words");
            let count = ended
                .stdout
                .lines()
                .filter(|line| line.contains(&format!("{tag} {name}")))
                .filter(|line| line.starts_with(tag) != of_each)
                .count();
            assert_eq!(count, if of_each { 2 } else { 1 }, "{beginning}: {ended}");
        }
    }
}

#[test]
fn a_pipe_has_none_of_them_unless_asked_for() {
    let run = Run { client: "-u -t 1 -b 2M -l 1000", server: "", stopped: None };
    let outcome = run.by(Linerate, "127.0.0.1").expect("it ends");
    for end in [End::Client, End::Server] {
        let ended = outcome.of(end);
        for name in [SENDER_UDP, RECEIVER_UDP].concat() {
            assert!(!ended.stdout.lines().any(|line| line.starts_with(name)), "{ended}");
        }
    }
}

/// What is not a terminal is a pipe everywhere else in these tests.
#[cfg(target_os = "linux")]
#[test]
fn a_terminal_has_them_unless_the_program_is_called_iperf3() {
    use linerate_tests::scratch::Scratch;

    let server = Server::start(Linerate, &[]);
    let scratch = Scratch::new();
    let link = scratch.file("iperf3");
    let program = std::path::absolute(Linerate.command().get_program()).expect("a path");
    std::os::unix::fs::symlink(program, &link).expect("a link");
    let log = scratch.file("log");
    let to_file = ["--logfile", log.to_str().expect("a plain path")];
    for (mut command, more, is_explained) in [
        (Linerate.command(), &[][..], true),
        (Linerate.command(), &to_file[..], false),
        (std::process::Command::new(&link), &[], false),
    ] {
        let port = server.port().to_string();
        command.args(["-c", "127.0.0.1", "-p", &port, "-u", "-t", "1", "-b", "2M", "-l", "1000"]);
        let shown = on_a_terminal(command.args(more)) + &scratch.read("log");
        assert!(shown.contains("iperf Done."), "{shown}");
        assert_eq!(shown.contains("Gaps of departure"), is_explained, "{shown}");
    }
}

#[test]
fn documents_have_what_both_ends_know_of_each_stream() {
    run_all(
        &[
            ("-u -t 1 -b 2M -l 1000", UDP_RECEIVER, "udp"),
            ("-u -t 1 -b 2M -l 1000 -R", UDP_RECEIVER, "udp"),
            ("-t 1 -b 50M", TCP_SENDER, "tcp"),
            ("-t 1 -b 50M -R", TCP_SENDER, "tcp"),
        ],
        |&(mode, keys, protocol)| {
            let told_by = if protocol == "udp" { "receiver" } else { "sender" };
            let client = format!("{mode} -J");
            let run = Run { client: &client, server: "-J", stopped: None };
            let outcome = run.by(Linerate, "127.0.0.1")?;
            for end in [End::Client, End::Server] {
                let ended = outcome.of(end);
                let document = strict(&ended.stdout)?;
                let own = &document["linerate"];
                holds(own["streams"].as_array().map(Vec::len) == Some(1), "one stream", ended)?;
                holds(own["verdicts"].is_array(), "verdicts", ended)?;
                holds(fractional_keys(own).is_empty(), "whole numbers", ended)?;
                let stream = &own["streams"][0];
                let told_here = stream["role"] == told_by;
                let socket = &document["start"]["connected"][0]["socket"];
                holds(&stream["socket"] == socket, "its socket", ended)?;
                let whole = has_keys(&stream["local"], keys);
                holds(!told_here || !cfg!(target_os = "linux") || whole.is_ok(), &whole, ended)?;
                let interval = &document["intervals"][0]["linerate"]["streams"][0];
                holds(interval["role"] == stream["role"], "an interval's stream", ended)?;
                holds(interval["local"].is_object(), "an interval's figures", ended)?;
                let client_sends = protocol == "udp" && !mode.ends_with("-R");
                holds(stream["lost_at_end"].is_u64() == client_sends, "lost at the end", ended)?;
            }
            Ok(())
        },
    );
}

#[test]
fn lines_of_json_have_the_same() {
    let run = Run { client: "-u -t 1 -b 2M -l 1000 --json-stream", server: "", stopped: None };
    let ended = run.by(Linerate, "127.0.0.1").expect("it ends").client;
    let stream = Stream::read(&ended.stdout).expect("a stream");
    let interval = stream.lines.iter().find(|line| line["event"] == "interval").expect("one");
    assert!(interval["data"]["linerate"]["streams"][0]["local"].is_object(), "{ended}");
    let last = &stream.lines[stream.lines.len() - 1]["linerate"];
    assert_eq!(last["streams"][0]["role"], "sender", "{ended}");
    assert!(last["verdicts"].is_array(), "{ended}");
}

#[test]
fn with_stock_iperf3_this_end_tells_what_it_knows() {
    if !Iperf3.is_here() {
        return;
    }
    run_all(
        &[
            (Linerate, Iperf3, "-u -t 1 -b 2M -l 1000 -R", RECEIVER_UDP),
            (Linerate, Iperf3, "-u -t 1 -b 2M -l 1000", SENDER_UDP),
            (Linerate, Iperf3, "-t 1 -b 50M", SENDER_TCP),
            (Iperf3, Linerate, "-u -t 1 -b 2M -l 1000", RECEIVER_UDP),
            (Iperf3, Linerate, "-u -t 1 -b 2M -l 1000 -R", SENDER_UDP),
            (Iperf3, Linerate, "-t 1 -b 50M -R", SENDER_TCP),
        ],
        |&(client, server, mode, names)| {
            let of_us = |outcome: Outcome| match client {
                Linerate => outcome.client,
                _ => outcome.server,
            };
            let text = of_us(between(client, server, mode, "--explain")?);
            if cfg!(target_os = "linux") || names != SENDER_TCP {
                explains(&text, names)?;
            }
            let ended = of_us(between(client, server, mode, "-J")?);
            let stream = &strict(&ended.stdout)?["linerate"]["streams"][0];
            holds(stream["local"].is_object(), "figures of this end", &ended)?;
            holds(stream["remote"].get("thread").is_none(), "none of the other", &ended)?;
            Ok(())
        },
    );
}

/// The two tools against each other; `ours` are more options of whichever is linerate.
fn between(client: Tool, server: Tool, mode: &str, ours: &str) -> Result<Outcome, String> {
    let of = |tool: Tool| if tool == Linerate { Some(ours) } else { None };
    let server_options: Vec<_> = ["-1"].into_iter().chain(of(server)).collect();
    let server = Server::start(server, &server_options);
    let options: Vec<_> = mode.split(' ').chain(of(client)).collect();
    let client = client::run(client, "127.0.0.1", server.port(), &options, LIMIT)?;
    Ok(Outcome { client, server: server.wait()? })
}

/// The lines with these names are there, in this order, after all of iperf3's and once.
fn explains(ended: &Ended, names: &[&str]) -> Result<(), String> {
    let is_of_iperf3 = |line: &&str| line.starts_with('[');
    let after: Vec<_> = ended.stdout.lines().rev().take_while(|line| !is_of_iperf3(line)).collect();
    let found: Vec<_> = after
        .iter()
        .rev()
        .filter_map(|line| names.iter().find(|name| line.starts_with(**name)))
        .copied()
        .collect();
    holds(found == names, format!("{names:?} after the summary, not {found:?}"), ended)
}

fn has_keys(object: &Value, keys: &[&str]) -> Result<(), String> {
    let paths = key_paths(object);
    let missing: Vec<_> = keys.iter().filter(|key| !paths.contains(**key)).collect();
    if missing.is_empty() { Ok(()) } else { Err(format!("lacks {missing:?}")) }
}

fn holds(is_true: bool, what: impl std::fmt::Debug, ended: &Ended) -> Result<(), String> {
    if is_true { Ok(()) } else { Err(format!("{what:?}: {ended}")) }
}

/// Runs a command with its standard output on a terminal of its own, and gives back what it printed.
#[cfg(target_os = "linux")]
fn on_a_terminal(command: &mut std::process::Command) -> String {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use std::fs::{File, OpenOptions};
    use std::io::Read;
    use std::os::unix::ffi::OsStrExt;

    let near = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&near).and_then(|()| unlockpt(&near)).expect("it is ours");
    let name = ptsname(&near, Vec::new()).expect("it has a name");
    let name = std::ffi::OsStr::from_bytes(name.as_bytes());
    let far = OpenOptions::new().read(true).write(true).open(name).expect("it opens");
    let mut child = command.stdout(far).spawn().expect("it starts");
    // Else this process would hold the far end, and the near one would never end.
    command.stdout(std::process::Stdio::null());
    let (mut near, mut shown, mut piece) = (File::from(near), Vec::new(), [0; 4096]);
    // Its end is an error of input and output.
    while let Ok(read @ 1..) = near.read(&mut piece) {
        shown.extend_from_slice(&piece[..read]);
    }
    assert!(child.wait().expect("it is ours").success());
    String::from_utf8(shown).expect("text").replace("\r\n", "\n")
}

const UDP_RECEIVER: &[&str] = &[
    "datagrams.packets: number",
    "datagrams.lost: number",
    "datagrams.out_of_order: number",
    "datagrams.duplicates: number",
    "datagrams.too_late: number",
    "jitter.smoothed_ns: number",
    "jitter.mean_ns: number",
    "delay_variation.count: number",
    "delay_variation.p50_ns: number",
    "delay_variation.p90_ns: number",
    "delay_variation.p99_ns: number",
    "delay_variation.p999_ns: number",
    "delay_variation.max_ns: number",
    "delay_differences.p50_ns: number",
    "reordering.count: number",
    "reordering.extent_sum: number",
    "reordering.max_extent: number",
    "loss_bursts.count: number",
    "loss_bursts.longest: number",
    "socket_drops: number",
    "buffer_bytes: number",
    "thread.wall_ns: number",
    "thread.cpu_ns: number",
];
const TCP_SENDER: &[&str] = &[
    "round_trips.p50_ns: number",
    "idle_round_trip_us: number",
    "waits.busy_us: number",
    "waits.receive_window_us: number",
    "waits.send_buffer_us: number",
    "resent_bytes: number",
    "delivery_bytes_per_second: number",
    "window_bytes: number",
    "buffer_bytes: number",
    "thread.wall_ns: number",
    "thread.cpu_ns: number",
];
const LIMIT: Duration = Duration::from_secs(20);
