//! Sessions share nothing: what one test asked for, suffered or was told is in no other, neither in
//! those beside it nor in those after it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::*;

/// Contrasts: each asks for something that the others do not.
const LINES: [&str; 8] = [
    "-t 1 -b 5M -l 4K",
    "-t 1 -b 1M -P 3 -R -l 8K -T reverse",
    "-u -t 1 -b 2M -l 500 --bidir",
    "-n 256K -b 8M -l 16K --get-server-output",
    "-t 1 -O 1 -b 3M -l 4K --extra-data x",
    "-u -k 50 -b 1M -l 1000 -R --udp-counters-64bit",
    // Refused, and ended by a limit.
    "-t 1 -P 5",
    "-b 0 -t 9 -l 64K",
];

const LIMITS: [&str; 5] = ["-J", "--max-streams", "4", "--max-test-bytes", "2G"];

/// What of a document hangs on the test alone: what was asked for, and which keys there are.
fn essence(document: &Value) -> BTreeMap<String, String> {
    let mut parts = BTreeMap::new();
    let mut put = |key: &str, value: String| _ = parts.insert(key.to_owned(), value);
    for key in ["title", "extra_data"] {
        put(key, document[key].to_string());
    }
    // The values of a limit that was met while the test ran differ.
    let error = document["error"].as_str().unwrap_or_default();
    put("error", error.split(": moved").next().unwrap_or_default().to_owned());
    put("test_start", document["start"]["test_start"].to_string());
    put("streams", document["start"]["connected"].as_array().map_or(0, Vec::len).to_string());
    let mut keys = BTreeSet::new();
    paths(&document["start"], "start", &mut keys);
    if error.is_empty() {
        // How far a test came that was ended is a matter of time.
        paths(&document["end"], "end", &mut keys);
        paths(&document["intervals"][0], "interval", &mut keys);
    }
    put("keys", format!("{keys:?}"));
    put("output", document["server_output_json"]["start"]["test_start"].to_string());
    parts
}

fn paths(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            members.iter().for_each(|(key, value)| paths(value, &format!("{path}.{key}"), found));
        }
        Value::Array(elements) => {
            elements.iter().for_each(|value| paths(value, &format!("{path}[]"), found));
        }
        _ => _ = found.insert(path.to_owned()),
    }
}

/// What each of these tests left behind on both sides, side by side or one after the other.
fn documents(tool: Tool, server: Server, lines: &[&str], at_once: bool) -> Vec<[Value; 2]> {
    let begin = |line: &&str| start(tool, &server, &format!("{line} -J"));
    let wait = |client: Process| client.wait(TIME_LIMIT).expect("it ends in time");
    let clients: Vec<_> = if at_once {
        let running: Vec<_> = lines.iter().map(begin).collect();
        running.into_iter().map(wait).collect()
    } else {
        lines.iter().map(|line| wait(begin(line))).collect()
    };
    let ended = server.stop("INT").expect("the server ends when it is told to");
    let servers = ended.documents().expect("one document for each test");
    let of_server = |own: &Value| {
        let cookie = &own["start"]["cookie"];
        let of_test = servers.iter().find(|document| &document["start"]["cookie"] == cookie);
        of_test.cloned().unwrap_or_else(|| panic!("no document of the server for {own}"))
    };
    let both = clients.iter().map(|client| {
        let own = client.document().expect("a document");
        let of_server = of_server(&own);
        [own, of_server]
    });
    both.collect()
}

fn assert_same(label: &str, found: &[[Value; 2]], lone: &[[Value; 2]]) {
    for (index, (found, lone)) in found.iter().zip(lone).enumerate() {
        for (found, lone, whose) in
            [(&found[0], &lone[0], "client"), (&found[1], &lone[1], "server")]
        {
            let (found_parts, lone_parts) = (essence(found), essence(lone));
            for (key, value) in &lone_parts {
                let line = LINES[index];
                assert_eq!(&found_parts[key], value, "{label}, {line}: {whose}'s {key}");
            }
        }
    }
}

#[test]
fn nothing_of_a_session_is_in_another() {
    if !Tool::Iperf3.is_here() {
        return;
    }
    for tool in TOOLS {
        let run =
            |lines: &[&str]| documents(tool, Server::start(Tool::Linerate, &LIMITS), lines, false);
        let reversed: Vec<_> = LINES.iter().rev().copied().collect();
        // Each on a server of its own.
        let (lone, in_a_row, back) = std::thread::scope(|scope| {
            let lone = LINES.map(|line| scope.spawn(move || run(&[line])));
            let in_a_row = scope.spawn(|| run(&LINES));
            let back = scope.spawn(|| run(&reversed));
            let lone = lone.into_iter().flat_map(|lone| lone.join().expect("it runs"));
            let lone: Vec<_> = lone.collect();
            (lone, in_a_row.join().expect("it runs"), back.join().expect("it runs"))
        });
        let refused = lone.iter().filter(|both| both[1]["error"].is_string()).count();
        assert_eq!(refused, 2, "the last two fail");
        assert_same("in a row", &in_a_row, &lone);
        // Each follows another than before.
        let back: Vec<_> = back.into_iter().rev().collect();
        assert_same("the other way round", &back, &lone);
        let at_once = documents(tool, Server::start(Tool::Linerate, &LIMITS), &LINES, true);
        assert_same("side by side", &at_once, &lone);
        for both in &at_once[..6] {
            let count = both[1]["linerate"]["concurrent_tests"].as_u64();
            assert!(count >= Some(1), "others ran beside it: {}", both[1]["linerate"]);
            if tool == Tool::Linerate {
                let own = both[0]["linerate"]["concurrent_tests"].as_u64();
                assert!(own >= Some(1), "the client is told: {}", both[0]["linerate"]);
            }
        }
    }
}

#[test]
fn client_of_a_linerate_server_learns_of_other_tests() {
    let server = Server::start(Tool::Linerate, &[]);
    let alone = run(Tool::Linerate, &server, "-t 1 -b 1M --explain");
    assert!(!alone.stderr.contains("beside"), "{alone}");
    let other = start_running(Tool::Linerate, &server, "-t 3 -b 1M");
    let ended = run(Tool::Linerate, &server, "-t 1 -b 1M --explain");
    assert!(ended.stderr.contains("another test ran on the server beside this one"), "{ended}");
    let other = ends_well(other);
    assert!(!other.stdout.contains("beside"), "iperf3's lines stay as they are: {other}");
    let text = server.stop("INT").expect("the server ends when it is told to").stdout;
    assert!(text.contains("#2 ") && text.contains("#3 "), "lines say whose they are: {text}");
}
