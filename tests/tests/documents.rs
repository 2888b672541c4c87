//! The documents of both roles against those of stock iperf3: the same test is run by each tool with
//! itself, and each key must stand at the same place with the same type. What the installed iperf3 is
//! too old for comes from the recorded documents. Streams of JSON are put together to a document and
//! compared with the same.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use linerate_tests::both::{End, Outcome, Run};
use linerate_tests::client;
use linerate_tests::json::{Stream, fractional_keys, key_paths, strict, strict_all};
use linerate_tests::process::Ended;
use linerate_tests::rows::run_all;
use linerate_tests::scratch::Scratch;
use linerate_tests::server::{Server, free_port};
use linerate_tests::tool::Tool;
use serde_json::Value;

/// The options of the clients; the servers have none.
const MODES: &[&str] = &[
    "-t 1 -b 50M",
    "-t 1 -b 50M -R",
    "-t 1 -b 50M --bidir",
    "-t 1 -b 50M -P 2",
    "-t 1 -b 50M -P 2 --bidir",
    "-t 1 -b 50M -O 1",
    "-t 1 -b 50M -O 1 -R",
    "-t 1 -b 50M -M 1000",
    "-t 1 -b 50M -w 100K",
    "-t 1 -b 50M -S 16",
    "-t 1 -b 50M -Z",
    "-t 1 -b 50M -i 0.5",
    "-t 1 -b 50M -i 0",
    "-t 1 --fq-rate 50M",
    "-n 1M -b 50M",
    "-k 20 -b 50M",
    "-t 1 -b 50M -T title --extra-data data",
    "-t 1 -b 50M --get-server-output",
    "-t 1 -b 50M -R --get-server-output",
    "-u -t 1 -b 5M",
    "-u -t 1 -b 5M -R",
    "-u -t 1 -b 5M --bidir",
    "-u -t 1 -b 5M -P 2",
    "-u -t 1 -b 5M -O 1",
    "-u -t 1 -b 5M --get-server-output",
    "-u -t 1 -b 5M -l 1400 --udp-counters-64bit",
];

/// Those of them that are also run with a stream of JSON.
const STREAMED: &[&str] = &[
    "-t 1 -b 50M",
    "-t 1 -b 50M -P 2 --bidir",
    "-t 1 -b 50M -O 1 -R",
    "-u -t 1 -b 5M",
    "-u -t 1 -b 5M --get-server-output",
];

#[test]
fn documents_have_the_keys_and_types_of_iperf3s() {
    if !Tool::Iperf3.is_here() {
        return;
    }
    run_all(MODES, |mode| {
        let client = format!("{mode} -J");
        let run = Run { client: &client, server: "-J", stopped: None };
        let (iperf3, linerate) = run.both("127.0.0.1")?;
        let streamed = STREAMED.contains(mode).then(|| {
            let client = format!("{mode} --json-stream");
            Run { client: &client, server: "--json-stream", stopped: None }
                .by(Tool::Linerate, "127.0.0.1")
        });
        let streamed = streamed.transpose()?;
        for end in [End::Client, End::Server] {
            let theirs = lenient(iperf3.of(end))?;
            let ours = strict(&linerate.of(end).stdout)?;
            compare(mode, end, &theirs, &ours)?;
            if let Some(streamed) = &streamed {
                let gathered = Stream::read(&streamed.of(end).stdout)?.document();
                compare(&format!("{mode} in lines"), end, &theirs, &gathered)?;
            }
        }
        nothing_else_is_printed(&linerate)
    });
}

#[test]
fn documents_of_files_have_the_keys_of_iperf3s() {
    if !Tool::Iperf3.is_here() {
        return;
    }
    let scratch = Scratch::new();
    std::fs::write(scratch.file("original"), vec![b'x'; 3_000_000]).expect("room for it");
    let path = |name: &str| scratch.file(name).to_str().expect("a plain path").to_owned();
    let client = format!("-F {} -b 50M -J", path("original"));
    let server = format!("-F {} -J", path("copy"));
    let by = |tool| Run { client: &client, server: &server, stopped: None }.by(tool, "127.0.0.1");
    let (iperf3, linerate) = (by(Tool::Iperf3).expect("ends"), by(Tool::Linerate).expect("ends"));
    for end in [End::Client, End::Server] {
        let theirs = lenient(iperf3.of(end)).expect("a document");
        let ours = strict(&linerate.of(end).stdout).expect("a document");
        compare("-F", end, &theirs, &ours).expect("the same");
    }
}

#[test]
fn documents_of_tests_that_were_stopped_have_the_keys_of_iperf3s() {
    if !Tool::Iperf3.is_here() {
        return;
    }
    let rows = [
        ("-t 5 -b 5M -l 10K", End::Client),
        ("-t 5 -b 5M -l 10K", End::Server),
        ("-u -t 5 -b 5M -R", End::Client),
        ("-u -t 5 -b 5M -R", End::Server),
    ];
    run_all(&rows, |&(mode, stopped)| {
        let client = format!("{mode} -J");
        let run = Run { client: &client, server: "-J", stopped: Some((stopped, "INT")) };
        let (iperf3, linerate) = run.both("127.0.0.1")?;
        for end in [End::Client, End::Server] {
            let name = format!("{mode}, {stopped:?} stopped");
            let ours = strict(&linerate.of(end).stdout)?;
            if !ours["error"].is_string() {
                return Err(format!("{name}: the {end:?}'s document has no error: {ours}"));
            }
            compare(&name, end, &lenient(iperf3.of(end))?, &ours)?;
        }
        nothing_else_is_printed(&linerate)
    });
}

#[test]
fn documents_of_clients_without_a_server_have_the_keys_of_iperf3s() {
    if !Tool::Iperf3.is_here() {
        return;
    }
    let port = free_port();
    let limit = Duration::from_secs(10);
    let run = |tool, port, options: &[&str]| {
        client::run(tool, "127.0.0.1", port, options, limit).expect("it ends")
    };
    let theirs = run(Tool::Iperf3, port, &["-J"]);
    let ours = run(Tool::Linerate, port, &["-J"]);
    // iperf3's own code says success in some releases.
    assert_eq!(ours.code, Some(2));
    let their_document = lenient(&theirs).expect("a document");
    let document = strict(&ours.stdout).expect("a document");
    compare("refused", End::Client, &their_document, &document).expect("the same");
    assert_eq!(ours.stderr, "");

    // A server that is busy with another client, and one that does not allow so much.
    let busy = Server::start(Tool::Iperf3, &[]);
    let _first = client::start(Tool::Iperf3, "127.0.0.1", busy.port(), &["-t", "4"]);
    std::thread::sleep(Duration::from_millis(500));
    let limited = Server::start(Tool::Iperf3, &["--server-bitrate-limit", "1M"]);
    for (name, port, options) in [
        ("busy", busy.port(), &["-J"][..]),
        ("limited", limited.port(), &["-J", "-b", "10M", "-t", "1"]),
    ] {
        let theirs = lenient(&run(Tool::Iperf3, port, options)).expect("a document");
        let ours = strict(&run(Tool::Linerate, port, options).stdout).expect("a document");
        let error = |document: &Value| document["error"].as_str().unwrap_or_default().to_owned();
        // Where iperf3 says that a connection closed, ours goes on and says when.
        assert!(error(&ours).starts_with(&error(&theirs)), "{name}: {theirs} {ours}");
        // One that refuses may let the client connect its streams before, and then iperf3's document
        // holds sockets of a test that never began.
        if name == "busy" {
            compare(name, End::Client, &theirs, &ours).expect("the same");
        }
    }
}

/// The recorded documents of both ends are those of the release that linerate equals.
#[test]
fn a_test_that_a_server_refuses_has_one_document_at_each_end() {
    // A refused test is not the one that `-1` waits for.
    let server = Server::start(Tool::Linerate, &["-J", "--server-bitrate-limit", "1M"]);
    let options = ["-t", "1", "-b", "10M", "-J"];
    let limit = Duration::from_secs(10);
    let client = client::run(Tool::Linerate, "127.0.0.1", server.port(), &options, limit);
    let (client, server) = (client.expect("it ends"), server.stop("INT").expect("it ends"));
    let documents = strict_all(&server.stdout).expect("documents");
    for (end, recorded, ours) in [
        (
            End::Client,
            include_str!("../recorded/error-server-limit.client.json"),
            &strict(&client.stdout).expect("one document"),
        ),
        (End::Server, include_str!("../recorded/error-server-limit.server.json"), &documents[0]),
    ] {
        let mut theirs: Value = serde_json::from_str(recorded).expect("recorded JSON");
        if let (End::Server, Some(start)) = (end, theirs["start"].as_object_mut()) {
            // What a server refuses it has not agreed to.
            start.remove("target_bitrate");
        }
        let same = compare("refused by its limit", end, &theirs, ours);
        same.unwrap_or_else(|faults| panic!("{faults}\n{client}\n{server}"));
        let error = ours["error"].as_str().expect("a text");
        assert!(error.contains("total required bandwidth is larger than server limit"), "{error}");
    }
    assert_eq!((client.code, client.stderr.as_str()), (Some(3), ""));
    assert_eq!((server.code, server.stderr.as_str()), (Some(0), ""));
    assert_eq!(documents.len(), 2, "the other is of the server's own end");
}

#[test]
fn the_document_follows_a_stream_that_asks_for_it() {
    let scratch = Scratch::new();
    let log = scratch.file("log");
    let log = log.to_str().expect("a plain path");
    let client = format!("-t 1 -b 50M --json-stream --json-stream-full-output --logfile {log}");
    let run =
        Run { client: &client, server: "--json-stream --json-stream-full-output", stopped: None };
    let outcome = run.by(Tool::Linerate, "127.0.0.1").expect("it ends");
    assert_eq!(outcome.client.stdout, "");
    for (end, text) in
        [(End::Client, scratch.read("log")), (End::Server, outcome.server.stdout.clone())]
    {
        let stream = Stream::read(&text).expect("a stream");
        let document = strict(&stream.rest).expect("a document after it");
        assert_eq!(stream.events.first().map(String::as_str), Some("start"), "{end:?}");
        assert_eq!(stream.events.last().map(String::as_str), Some("end"), "{end:?}");
        let mut gathered = stream.document();
        gathered["linerate"] = document["linerate"].clone();
        assert_eq!(gathered, document, "{end:?}");
    }
    nothing_else_is_printed(&outcome).expect("nothing else");
}

/// Holds our keys against theirs.
fn compare(name: &str, end: End, theirs: &Value, ours: &Value) -> Result<(), String> {
    let (their_paths, our_paths) = (key_paths(theirs), key_paths(ours));
    let is_known = |path: &str| {
        KNOWN.iter().any(|&(of, part, _)| of.is_none_or(|of| of == end) && path.starts_with(part))
    };
    let recorded = recorded();
    let mut faults: Vec<String> = Vec::new();
    faults.extend(
        their_paths
            .difference(&our_paths)
            .filter(|path| !is_known(path))
            .map(|path| format!("lacks {path}")),
    );
    faults.extend(
        our_paths
            .difference(&their_paths)
            .filter(|path| !is_known(path) && !recorded.has(end, path))
            .map(|path| format!("has {path}, which iperf3 has not")),
    );
    let theirs_too = fractional_keys(theirs);
    let own = |key: &String| {
        !recorded.fractional.contains(key) && !theirs_too.contains(key) && key != LATE_FRACTION
    };
    let mut shared = ours.clone();
    if let Some(document) = shared.as_object_mut() {
        document.remove("linerate");
    }
    faults.extend(
        fractional_keys(&shared)
            .into_iter()
            .filter(own)
            .map(|key| format!("has a fraction in {key}, which is an integer in iperf3")),
    );
    if faults.is_empty() {
        Ok(())
    } else {
        Err(format!("`{name}`: the {end:?}'s document {}", faults.join("\n  ")))
    }
}

fn nothing_else_is_printed(outcome: &Outcome) -> Result<(), String> {
    for end in [End::Client, End::Server] {
        let ended = outcome.of(end);
        if !ended.stderr.is_empty() {
            return Err(format!("something on the error stream: {ended}"));
        }
    }
    Ok(())
}

/// A document of iperf3, which may hold a key twice.
fn lenient(ended: &Ended) -> Result<Value, String> {
    ended.document()
}

/// What is different and shall be: whose document, beginning of the place, reason.
const KNOWN: &[(Option<End>, &str, &str)] = &[
    (None, "linerate", "what only linerate tells, in one place of its own"),
    (None, "intervals[].linerate", "likewise, of an interval"),
    (
        Some(End::Server),
        "end.sender_tcp_congestion",
        "a server tells its client's half too, which came with the results",
    ),
    (Some(End::Server), "end.receiver_tcp_congestion", "likewise"),
    (Some(End::Server), "end.sum_sent.retransmits", "likewise"),
    (Some(End::Server), "end.streams[].sender.retransmits", "likewise"),
];

/// A key that the installed iperf3 may lack and that no recorded document has with a fraction; it is
/// one with `-i 0.5`.
const LATE_FRACTION: &str = "interval";

/// What the recorded documents of the newest iperf3 hold.
#[derive(Default)]
struct Recorded {
    client: BTreeSet<String>,
    server: BTreeSet<String>,
    fractional: BTreeSet<String>,
}

impl Recorded {
    fn has(&self, end: End, path: &str) -> bool {
        let in_output = path.strip_prefix("server_output_json.");
        match end {
            End::Client => {
                self.client.contains(path)
                    || in_output.is_some_and(|path| self.server.contains(path))
            }
            End::Server => self.server.contains(path),
        }
    }
}

fn recorded() -> &'static Recorded {
    static RECORDED: OnceLock<Recorded> = OnceLock::new();
    RECORDED.get_or_init(|| {
        let folder: PathBuf = concat!(env!("CARGO_MANIFEST_DIR"), "/recorded").into();
        let mut recorded = Recorded::default();
        for entry in std::fs::read_dir(folder).expect("recordings are in the repository") {
            let path = entry.expect("a directory entry").path();
            let name = path.to_string_lossy().into_owned();
            let paths = match (name.ends_with(".client.json"), name.ends_with(".server.json")) {
                (true, _) => &mut recorded.client,
                (_, true) => &mut recorded.server,
                _ => continue,
            };
            let text = std::fs::read_to_string(&path).expect("text");
            let document = serde_json::from_str(&text).expect("recorded JSON");
            paths.extend(key_paths(&document));
            recorded.fractional.extend(fractional_keys(&document));
        }
        recorded
    })
}
