//! A crowd does its worst on one server, all at once and for as long as honest tests run there: those
//! have their rate and their right results, the server's memory is bounded, and nothing is left of
//! the crowd when it is gone.
#![cfg(target_os = "linux")]

mod hostile_crowd {
    pub(crate) mod members;
}

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use linerate_tests::client;
use linerate_tests::footprint::Footprint;
use linerate_tests::journal::LoggedServer;
use linerate_tests::process::Process;
use linerate_tests::tool::Tool::{self, Iperf3, Linerate};
use serde_json::Value;

use self::hostile_crowd::members::MEMBERS;

/// An honest test beside the crowd.
struct Honest {
    tool: Tool,
    line: &'static str,
    /// Bytes that it moves when nothing disturbs it.
    bytes: f64,
}

const HONEST: [Honest; 4] = [
    Honest { tool: Iperf3, line: "-t 10 -b 20M -l 16K", bytes: 25e6 },
    Honest { tool: Linerate, line: "-t 10 -b 20M -l 16K -R", bytes: 25e6 },
    Honest { tool: Iperf3, line: "-u -t 10 -b 2M -l 1000", bytes: 2.5e6 },
    Honest { tool: Linerate, line: "-u -t 10 -b 2M -l 1000 -R", bytes: 2.5e6 },
];

#[test]
fn honest_tests_stay_right_while_a_crowd_does_its_worst() {
    if !Iperf3.is_here() {
        return;
    }
    let mut server = LoggedServer::start(&[]);
    serve_honest_clients(server.port());
    let before = Footprint::of(server.server.id());

    let mut honest: Vec<_> = HONEST.iter().map(|test| start(&server, test)).collect();
    let (port, is_over) = (server.port(), &AtomicBool::new(false));
    let peak = thread::scope(|scope| {
        for member in MEMBERS {
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    // What the server does to it, whoever deserves it bears.
                    let _ = member(port, is_over);
                    thread::sleep(BREATH);
                }
            });
        }
        scope.spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                serve(Linerate, "-n 128K", port);
                serve(Iperf3, "-n 128K -R", port);
                serve(Linerate, "-u -n 64K -l 1000 -b 20M", port);
                serve(Iperf3, "-u -n 64K -l 1000 -b 20M", port);
            }
        });
        let _over = Over(is_over);
        let mut peak = Footprint::default();
        while honest.iter_mut().any(|(_, client)| client.is_running()) {
            let found = Footprint::of(server.server.id());
            peak.rss_kib = peak.rss_kib.max(found.rss_kib);
            peak.descriptors = peak.descriptors.max(found.descriptors);
            peak.threads = peak.threads.max(found.threads);
            thread::sleep(BREATH);
        }
        peak
    });

    let mut faults = Vec::new();
    for (test, (number, client)) in HONEST.iter().zip(honest) {
        if let Err(fault) = check(&server, test, number, client) {
            faults.push(format!("{} `{}`: {fault}", test.tool, test.line));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(server.server.is_running(), "{}", server.text());
    serve_honest_clients(server.port());
    let after = until_the_crowd_is_forgotten(&server, &before);
    println!("before {before}\n  peak {peak}\n after {after}");
    assert!(peak.rss_kib < MOST_RSS_KIB, "{peak}");
    assert!(after.rss_kib < before.rss_kib + MOST_RSS_KEPT_KIB, "from {before} to {after}");
    let ended = server.server.stop("INT").expect("it ends when it is told to");
    assert_eq!(ended.code, Some(0), "{ended}");
}

/// Sends the crowd home when it is dropped, whatever happened.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Starts an honest test and waits until the server says that it runs, and as which number.
fn start(server: &LoggedServer, test: &Honest) -> (Value, Process) {
    let from = server.lines().len();
    let options: Vec<_> = test.line.split(' ').chain(["-J"]).collect();
    let client = client::start(test.tool, "127.0.0.1", server.port(), &options);
    let (begin, _) = server.await_event("begin", from, TIME_LIMIT).expect("the test begins");
    (begin["test"].clone(), client)
}

/// Both ends say the same, and it is what was asked for.
fn check(
    server: &LoggedServer,
    test: &Honest,
    number: Value,
    client: Process,
) -> Result<(), String> {
    let client = client.wait(TIME_LIMIT)?;
    let document = client.document()?;
    if client.code != Some(0) || document["error"].is_string() {
        return Err(client.to_string());
    }
    let lines = server.lines();
    let end = lines.iter().find(|line| line["event"] == "end" && line["test"] == number);
    let end = end.ok_or("the server's log has no end of it")?;
    let bytes = |key: &str| document["end"][key]["bytes"].as_f64().unwrap_or(0.0);
    let (sent, received) = (bytes("sum_sent"), bytes("sum_received"));
    let (key, shown) = match test.line.contains("-R") {
        true => ("sent_bytes", sent),
        false => ("received_bytes", received),
    };
    let lost = document["end"]["sum"]["lost_percent"].as_f64().unwrap_or(0.0);
    let laws = [
        ("the log knows it as complete", end["outcome"] == "complete"),
        ("both ends have the same bytes", end[key].as_f64() == Some(shown)),
        ("the rate is kept", (0.8..1.1).contains(&(received / test.bytes))),
        ("nothing is received that was not sent", received <= sent),
        ("hardly anything is lost", lost < 1.0),
    ];
    let broken: Vec<_> = laws.iter().filter(|(_, holds)| !holds).map(|(law, _)| *law).collect();
    if broken.is_empty() {
        return Ok(());
    }
    let broken = broken.join(", ");
    Err(format!("not so: {broken}; sent {sent}, received {received}, {lost} % lost; {end}"))
}

fn serve_honest_clients(port: u16) {
    serve(Iperf3, "-n 128K", port);
    serve(Linerate, "-u -n 64K -l 1000 -b 20M -R", port);
}

fn serve(tool: Tool, line: &str, port: u16) {
    let options: Vec<_> = line.split(' ').collect();
    let ended = client::run(tool, "127.0.0.1", port, &options, TIME_LIMIT).expect("it ends");
    assert_eq!(ended.code, Some(0), "{ended}");
}

/// Waits until the server holds no more descriptors than before the crowd, and no thread of a test.
fn until_the_crowd_is_forgotten(server: &LoggedServer, before: &Footprint) -> Footprint {
    let deadline = Instant::now() + TIME_LIMIT;
    loop {
        let found = Footprint::of(server.server.id());
        let threads = before.threads + IDLE_THREADS;
        if found.descriptors <= before.descriptors && found.threads <= threads {
            return found;
        }
        assert!(Instant::now() < deadline, "from {before} to {found}");
        thread::sleep(BREATH);
    }
}

/// What the documentation promises for all tests that there can be.
const MOST_RSS_KIB: u64 = 100 << 10;
/// What an allocator may keep of the threads that it has seen.
const MOST_RSS_KEPT_KIB: u64 = 32 << 10;
/// Threads that wait for something to do before they end.
const IDLE_THREADS: u64 = 4;
/// A small machine has to play the crowd and the honest clients, too.
const BREATH: Duration = Duration::from_millis(20);
const TIME_LIMIT: Duration = Duration::from_secs(60);
