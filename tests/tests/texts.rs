//! The texts of both roles against those of stock iperf3, line by line: the same test is run by each
//! tool with itself, numbers are masked, and what is left must be equal, blanks included.

use std::time::Duration;

use linerate_tests::both::{End, Run};
use linerate_tests::client;
use linerate_tests::rows::run_all;
use linerate_tests::scratch::Scratch;
use linerate_tests::server::free_port;
use linerate_tests::text::masked;
use linerate_tests::tool::Tool;

/// The options of the client and of the server.
const MODES: &[(&str, &str)] = &[
    ("-t 1 -b 50M", ""),
    ("-t 1 -b 50M -V", "-V"),
    ("-t 2 -b 50M -R", ""),
    ("-t 2 -b 50M -R -V", "-V"),
    ("-t 1 -b 50M --bidir", ""),
    ("-t 1 -b 50M --bidir -V", "-V"),
    ("-t 2 -b 50M -P 2", ""),
    ("-t 1 -b 50M -P 2 -V", "-V"),
    ("-t 1 -b 50M -P 2 --bidir", ""),
    ("-t 1 -b 50M -O 1", ""),
    ("-t 1 -b 50M -M 1000 -V", "-V"),
    ("-t 1 -b 50M -i 0 -V", "-i 0 -V"),
    ("-t 1 -b 50M -f k", "-f K"),
    ("-t 1 -b 50M -f M", "-f G"),
    ("-t 1 -b 50M -f t", "-f T"),
    ("-t 1 -b 50M -T title --timestamps=%Y|", "--timestamps=%F_"),
    ("-t 1 -b 50M --get-server-output", ""),
    ("-t 2 -b 50M -R --get-server-output", ""),
    ("-u -t 1 -b 5M", ""),
    ("-u -t 1 -b 5M -V", "-V"),
    ("-u -t 1 -b 5M -R", ""),
    ("-u -t 1 -b 5M -R -V", "-V"),
    ("-u -t 1 -b 5M --bidir", ""),
    ("-u -t 1 -b 5M -P 2", ""),
    ("-u -t 1 -b 5M -P 2 -R -V", "-V"),
    ("-u -t 1 -b 5M -O 1", ""),
    ("-u -t 1 -b 5M -l 1400 -V", "-V"),
    ("-u -t 1 -b 5M --get-server-output", ""),
];

#[test]
fn texts_are_those_of_iperf3() {
    if !Tool::Iperf3.is_here() {
        return;
    }
    // On a machine that is busy elsewhere an interval comes late and is cut in two: then once more.
    run_all(MODES, |mode| one_mode(mode).or_else(|_| one_mode(mode)));
}

#[test]
fn texts_of_files_are_those_of_iperf3() {
    if !Tool::Iperf3.is_here() {
        return;
    }
    let scratch = Scratch::new();
    std::fs::write(scratch.file("original"), vec![b'x'; 20_000_000]).expect("room for it");
    let path = |name: &str| scratch.file(name).to_str().expect("a plain path").to_owned();
    let (client, server) = (format!("-F {} -b 20M -t 1", path("original")), String::new());
    one_mode(&(&client, &server)).expect("the same");
}

fn one_mode(&(client, server): &(&str, &str)) -> Result<(), String> {
    let run = Run { client, server, stopped: None };
    let (iperf3, linerate) = run.both("127.0.0.1")?;
    for end in [End::Client, End::Server] {
        let (theirs, ours) = (iperf3.of(end), linerate.of(end));
        let name = format!("`{client}` with `{server}`, {end:?}");
        compare(&name, &theirs.stdout, &ours.stdout)?;
        compare(&format!("{name}, error stream"), &theirs.stderr, &ours.stderr)?;
        if theirs.code != ours.code {
            return Err(format!("{name}: exit codes {:?} and {:?}", theirs.code, ours.code));
        }
    }
    Ok(())
}

#[test]
fn ends_that_were_stopped_say_so_as_iperf3_does() {
    if !Tool::Iperf3.is_here() {
        return;
    }
    let signals = [("INT", "Interrupt(2)"), ("TERM", "Terminated(15)"), ("HUP", "Hangup(1)")];
    let rows: Vec<_> = [End::Client, End::Server]
        .into_iter()
        .flat_map(|end| signals.map(|(signal, spelled)| (end, signal, spelled)))
        .collect();
    run_all(&rows, |&(stopped, signal, spelled)| {
        let run = Run { client: "-t 5 -b 5M", server: "", stopped: Some((stopped, signal)) };
        let (iperf3, linerate) = run.both("127.0.0.1")?;
        for end in [End::Client, End::Server] {
            let name = format!("{stopped:?} stopped by {signal}, {end:?}");
            // Which signal it was, iperf3 tells since 3.19.
            let ours = linerate.of(end).stderr.replace(&format!(" by signal {spelled}"), "");
            let theirs = iperf3.of(end).stderr.replace(&format!(" by signal {spelled}"), "");
            compare(&name, &theirs, &ours)?;
        }
        Ok(())
    });
}

#[test]
fn a_server_that_cannot_be_reached_is_told_as_by_iperf3() {
    if !Tool::Iperf3.is_here() {
        return;
    }
    let port = free_port();
    let limit = Duration::from_secs(10);
    let [theirs, ours] = [Tool::Iperf3, Tool::Linerate]
        .map(|tool| client::run(tool, "127.0.0.1", port, &[], limit).expect("it ends"));
    assert_eq!((theirs.stdout.as_str(), ours.stdout.as_str()), ("", ""));
    let words = "error - unable to connect to server";
    assert!(theirs.stderr.starts_with(&format!("iperf3: {words}")), "{theirs}");
    assert!(ours.stderr.starts_with(&format!("linerate: {words}")), "{ours}");
    for ended in [theirs, ours] {
        assert!(ended.stderr.ends_with(": Connection refused\n"), "{ended}");
        assert_eq!(ended.stderr.lines().count(), 1, "{ended}");
    }
}

fn compare(name: &str, theirs: &str, ours: &str) -> Result<(), String> {
    let theirs: Vec<_> = masked(theirs, "iperf3").iter().map(|line| as_now(line)).collect();
    let ours: Vec<_> =
        masked(ours, "linerate").into_iter().filter(|line| !is_of_engine(line)).collect();
    if theirs == ours {
        return Ok(());
    }
    let first = theirs.iter().zip(&ours).position(|(theirs, ours)| theirs != ours);
    let first = first.unwrap_or(theirs.len().min(ours.len()));
    Err(format!(
        "{name}: line {} is different\niperf3:\n{}\nlinerate:\n{}",
        first + 1,
        theirs.join("\n"),
        ours.join("\n")
    ))
}

/// What only linerate tells with `-V`.
fn is_of_engine(line: &str) -> bool {
    let beginnings = ["Datagrams sent: ", "Datagrams received", "Bytes sent: ", "Bytes received: "];
    beginnings.iter().any(|beginning| line.contains(beginning))
}

/// A line of the installed iperf3, masked, as the release prints it that linerate equals.
fn as_now(line: &str) -> String {
    let change = CHANGED.iter().find(|change| {
        line.ends_with(change.then) && change.but_not.is_none_or(|part| !line.contains(part))
    });
    match change {
        Some(Changed { then, now, .. }) => line.replace(then, now),
        None => line.into(),
    }
}

/// The end of a line that is another since some release, but where the line has a certain part.
struct Changed {
    then: &'static str,
    now: &'static str,
    but_not: Option<&'static str>,
}

const CHANGED: &[Changed] = &[
    // 3.18 took a blank away.
    Changed {
        then: "sec #             sender",
        now: "sec #            sender",
        but_not: Some("[SUM]"),
    },
];
