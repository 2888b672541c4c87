//! A cable that is pulled out in the middle of a test, with and without being put back: tests live on
//! as long as their control connection does, whatever their data does; where it is gone for good, both
//! ends end on time, with an error and what was measured.

use std::time::Duration;

use linerate_tests::client;
use linerate_tests::journal::LoggedServer;
use linerate_tests::namespace::may_make_namespaces;
use linerate_tests::process::{Ended, Process};
use linerate_tests::rows::run_all;
use linerate_tests::tool::Tool;
use linerate_tests::veth::{Cable, DEVICE, FAR};

/// Connections that are given up after six seconds, control connections instead of after twenty.
const SHORT: [&str; 4] = ["--cntl-ka=4/1/2", "--snd-timeout", "6000", "-J"];

struct Link {
    cable: Cable,
    server: LoggedServer,
}

impl Link {
    fn new(options: &[&str]) -> Self {
        let cable = Cable::new();
        let server = LoggedServer::start_in(&cable.far, options);
        Self { cable, server }
    }

    fn client(&self, tool: Tool, options: &[&str]) -> Result<Process, String> {
        let client = client::start_in(&self.cable.near, tool, FAR.v4, self.server.port(), options);
        self.server.await_event("begin", 0, SOON)?;
        Ok(client)
    }

    fn pull(&self) {
        self.cable.near.ip(&format!("link set {DEVICE} down"));
    }

    fn put_back(&self) {
        self.cable.near.ip(&format!("link set {DEVICE} up"));
    }
}

/// A cable that stays out.
const LOST: [&str; 5] = ["", "-R", "--bidir -P 2", "-u -l 1000", "-u -l 1000 -R"];

#[test]
fn both_ends_end_on_time_when_the_link_is_lost() {
    if !may_make_namespaces() {
        return;
    }
    run_all(&LOST, |options| {
        let link = Link::new(&SHORT[..3]);
        let words: Vec<_> = ["-t", "60", "-b", "8M"].into_iter().chain(SHORT).collect();
        let words: Vec<_> = words.into_iter().chain(options.split_whitespace()).collect();
        let client = link.client(Tool::Linerate, &words)?;
        std::thread::sleep(Duration::from_millis(1500));
        link.pull();
        // Six seconds after the last sign of life of the control connection, which was at most four
        // seconds old, or after the first data that nobody acknowledged.
        let end = ends_after(&link, 1, 9).map_err(|e| format!("{options}: {e}"))?;
        let ended = client.wait(Duration::from_secs(5))?;
        let document = ended.document()?;
        let line = format!("{options}: {end}\n{ended}");
        if ended.code != Some(6) || !document["error"].is_string() {
            return Err(line);
        }
        let moved = |key| end[key].as_u64().unwrap_or(0) > 500_000;
        if moved("sent_bytes") || moved("received_bytes") { Ok(()) } else { Err(line) }
    });
}

/// The same with the times of every server, and a stock client, which notices nothing itself.
#[test]
fn an_unplugged_client_frees_its_place_within_twenty_seconds() {
    if !may_make_namespaces() || !Tool::Iperf3.is_here() {
        return;
    }
    let link = Link::new(&[]);
    let _client = link.client(Tool::Iperf3, &["-t", "60", "-b", "8M"]).expect("it runs");
    std::thread::sleep(Duration::from_millis(500));
    link.pull();
    ends_after(&link, 14, 21).expect("the server notices");
}

/// Waits for the end of the server's test, which is to come so many seconds from here.
fn ends_after(link: &Link, least: u64, most: u64) -> Result<serde_json::Value, String> {
    let (end, took) = link.server.await_event("end", 0, Duration::from_secs(most))?;
    let reason = end["reason"].as_str().unwrap_or_default();
    if end["outcome"] != "lost" || end["by"] != "client" || took < Duration::from_secs(least) {
        return Err(format!("after {took:?}: {end}"));
    }
    // With the system's words: timed out, or no route.
    if reason.contains("broke") && reason.contains(": ") { Ok(end) } else { Err(end.to_string()) }
}

/// A cable that comes back: the control connection has not been given up by then.
const OUTAGES: [&str; 3] = ["", "--bidir", "-u -l 1000 -R"];

#[test]
fn a_test_that_meets_an_outage_lives_on() {
    if !may_make_namespaces() {
        return;
    }
    run_all(&OUTAGES, |options| {
        let link = Link::new(&[]);
        let words = ["-t", "14", "-b", "8M", "-J"].into_iter().chain(options.split_whitespace());
        let client = link.client(Tool::Linerate, &words.collect::<Vec<_>>())?;
        std::thread::sleep(Duration::from_secs(1));
        link.pull();
        std::thread::sleep(Duration::from_secs(8));
        link.put_back();
        let ended = client.wait(Duration::from_secs(30))?;
        is_complete(&link, &ended).map_err(|e| format!("{options}: {e}"))
    });
}

#[test]
fn a_test_of_one_packet_a_second_is_not_taken_for_dead() {
    if !may_make_namespaces() {
        return;
    }
    run_all(&["", "-R"], |options| {
        // A control connection that is given up six seconds after the last sign of life has signs of
        // life, whatever little the test moves.
        let link = Link::new(&SHORT[..3]);
        let words = ["-u", "-l", "100", "-b", "800", "-t", "9"].into_iter().chain(SHORT);
        let words: Vec<_> = words.chain(options.split_whitespace()).collect();
        let client = link.client(Tool::Linerate, &words)?;
        let ended = client.wait(Duration::from_secs(20))?;
        is_complete(&link, &ended).map_err(|e| format!("{options}: {e}"))
    });
}

fn is_complete(link: &Link, ended: &Ended) -> Result<(), String> {
    let (end, _) = link.server.await_event("end", 0, SOON)?;
    if ended.code == Some(0) && end["outcome"] == "complete" {
        Ok(())
    } else {
        Err(format!("{end}\n{ended}"))
    }
}

const SOON: Duration = Duration::from_secs(5);
