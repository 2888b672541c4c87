//! The JSON report against what iperf3 printed: every key of every recorded document stands in ours,
//! at the same place, in the same order and with the same type.

#[path = "report_support/records.rs"]
mod records;
#[path = "report_support/mod.rs"]
mod report_support;

use std::collections::BTreeSet;
use std::sync::Arc;

use linerate::error::Error;
use linerate::report::json::{
    JsonOptions, JsonReport, JsonStream, StreamOptions, server_output_member, to_document_string,
};
use linerate::report::{DiskFile, Progress, ServerOutput, TestEnd, Warning};
use linerate_core::protocol::code::ServerError;
use linerate_core::session::{Refusal, SessionError};
use linerate_core::test::{Direction, End, Offload, Protocol, TestSettings};
use linerate_core::units::BitsPerSec;
use report_support::{Recording, recordings, settings_by_name};
use serde_json::{Value, json};

#[test]
fn every_recorded_key_stands_in_our_document_with_its_type() {
    let mut compared = 0;
    let mut exceptions_met = BTreeSet::new();
    for recording in recordings("json") {
        let recorded: Value = serde_json::from_str(&recording.content).expect("recorded JSON");
        let ours = document(&events_of(&recording, &recorded));
        let (recorded, ours) = (key_paths(&recorded), key_paths(&ours));
        for missing in recorded.difference(&ours) {
            let end = if recording.end == End::Client { "client" } else { "server" };
            let exception = EXCEPTIONS.iter().position(|&(name, of, path, _)| {
                name == recording.name && of == end && missing.starts_with(path)
            });
            match exception {
                Some(index) => exceptions_met.insert(index),
                None => panic!("{} {end} lacks {missing}", recording.name),
            };
        }
        compared += 1;
    }
    assert_eq!(compared, 44, "documents compared");
    assert_eq!(exceptions_met.len(), EXCEPTIONS.len(), "an exception that is none");
}

#[test]
fn keys_stand_in_the_recorded_order() {
    for recording in recordings("json") {
        let recorded: Value = serde_json::from_str(&recording.content).expect("recorded JSON");
        let ours = document(&events_of(&recording, &recorded));
        assert_same_order(&recorded, &ours, &format!("{} {:?}", recording.name, recording.end));
    }
}

#[test]
fn printed_documents_read_back_and_hold_no_key_twice() {
    for recording in recordings("json") {
        let recorded: Value = serde_json::from_str(&recording.content).expect("recorded JSON");
        let ours = document(&events_of(&recording, &recorded));
        let printed = to_document_string(&ours);
        let read: Value = serde_json::from_str(&printed).expect("our JSON");
        assert_eq!(read, ours, "{}", recording.name);
        // Reading keeps one of two equal keys, so that one printed twice would be missing here.
        assert_eq!(printed.matches("\":\t").count(), count_keys(&read), "{}", recording.name);
        assert!(!printed.contains(".0,") && !printed.contains(".0\n"), "{}", recording.name);
    }
}

#[test]
fn recorded_documents_are_laid_out_again() {
    for recording in recordings("json") {
        if recording.end == End::Server || recording.content.contains("SERVER ERROR") {
            continue; // iperf3 repeats a key there, which a reader drops.
        }
        if recording.content.contains("server_output_json") {
            continue;
        }
        let recorded: Value = serde_json::from_str(&recording.content).expect("recorded JSON");
        let printed = to_document_string(&recorded);
        for (printed, recorded) in printed.lines().zip(recording.content.lines()) {
            if printed != recorded {
                // Only the last of 17 digits may differ.
                let [one, other] = [printed, recorded].map(|line| {
                    last_number(line).unwrap_or_else(|| panic!("{printed} {recorded}"))
                });
                assert!((one - other).abs() <= 1e-15 * other.abs(), "{printed} {recorded}");
            }
        }
        assert_eq!(printed.lines().count(), recording.content.lines().count());
    }
}

#[test]
fn a_server_shows_what_its_client_told_it() {
    for protocol in [Protocol::Tcp, Protocol::Udp] {
        for direction in [Direction::Forward, Direction::Reverse, Direction::Bidirectional] {
            let settings = TestSettings { direction, ..TestSettings::new(protocol) };
            let end = &document(&records::complete(settings, End::Server))["end"];
            let place = format!("{protocol:?} {direction:?}");
            for sum in ["sum_sent", "sum_received"] {
                assert_eq!(end[sum]["bytes"], json!(2 * records::BYTES_PER_SECOND), "{place}");
            }
            assert_eq!(end["cpu_utilization_percent"]["remote_total"], json!(3.5), "{place}");
        }
    }
}

#[test]
fn what_is_not_known_is_zero_and_present() {
    let settings = TestSettings::new(Protocol::Udp);
    let error = Error::Interrupted { by: None };
    let end = &document(&records::broken(settings, End::Server, error))["end"];
    assert_eq!(end["sum_sent"]["bytes"], json!(0));
    assert_eq!(end["sum_sent"]["packets"], json!(0));
    assert_eq!(end["sum"]["packets"], json!(2 * records::PACKETS_PER_SECOND));
    // 20 lost of the 200 that this end knows of.
    assert_eq!(end["sum_received"]["lost_percent"], json!(10));
}

#[test]
fn an_interval_without_datagrams_has_a_finite_loss() {
    let settings = TestSettings::new(Protocol::Udp);
    let mut events = records::complete(settings, End::Server);
    for event in &mut events {
        if let Progress::Interval(interval) = event {
            let stream = &mut Arc::make_mut(interval).streams[0];
            stream.bytes = 0;
            stream.datagrams.packets = 0;
            stream.datagrams.lost = None;
        }
    }
    let document = document(&events);
    assert_eq!(document["intervals"][0]["sum"]["lost_percent"], json!(0));
    assert_eq!(document["intervals"][0]["sum"]["bits_per_second"], json!(0));
}

#[test]
fn a_receivers_seconds_are_its_own() {
    let settings = TestSettings::new(Protocol::Tcp);
    let mut events = records::complete(settings, End::Client);
    edit_end(&mut events, |end| {
        let remote = end.streams[0].remote.as_mut().expect("told");
        remote.duration_ns = Some(2_500_000_000);
    });
    let receiver = &document(&events)["end"]["streams"][0]["receiver"];
    assert_eq!(receiver["seconds"], json!(2.5));
    assert_eq!(receiver["end"], json!(2.5));
    // 25 000 000 bytes in 2.5 s.
    assert_eq!(receiver["bits_per_second"], json!(80_000_000));
}

#[test]
fn an_error_stands_in_the_document_once_whatever_was_reached() {
    let refused = || {
        let error = ServerError { number: 27, errno: 0 };
        Error::Session(SessionError::Refused(Refusal::Error(error)))
    };
    let settings = TestSettings::new(Protocol::Tcp);
    for events in [
        vec![records::failed(refused())],
        vec![records::connected(settings, End::Client), records::failed(refused())],
        records::broken(settings, End::Client, refused()),
    ] {
        let document = document(&events);
        let keys: Vec<_> = document.as_object().expect("object").keys().collect();
        assert_eq!(keys, ["start", "intervals", "end", "error", "linerate"]);
        assert_eq!(document["error"], "total required bandwidth is larger than server limit");
    }
}

#[test]
fn nothing_of_ours_stands_in_a_plain_document() {
    let settings = TestSettings::new(Protocol::Tcp);
    let mut events = records::complete(settings, End::Client);
    events.insert(2, Progress::Warning(Warning::DefaultUdpRate));
    let own = &document(&events)["linerate"];
    assert_eq!(own["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!((&own["test_number"], &own["concurrent_tests"]), (&json!(3), &json!(0)));
    assert!(own["warnings"][0].as_str().is_some_and(|text| text.contains("-b")));

    let mut report = JsonReport::new(JsonOptions { plain: true, ..JsonOptions::default() });
    events.iter().for_each(|event| report.handle(event));
    assert!(report.finish().get("linerate").is_none());
}

#[test]
fn a_servers_output_for_its_client_is_what_it_has_measured() {
    let settings = TestSettings { server_output: true, ..TestSettings::new(Protocol::Tcp) };
    let mut events = records::complete(settings, End::Server);
    events.pop();
    let mut report = JsonReport::new(JsonOptions::default());
    events.iter().for_each(|event| report.handle(event));
    let (key, value) = server_output_member(&report.server_output());
    assert_eq!(key, "server_output_json");
    let keys: Vec<_> = value.as_object().expect("object").keys().collect();
    assert_eq!(keys, ["start", "intervals", "end"]);
    assert_eq!(value["end"]["sum_sent"]["bytes"], json!(0));
}

#[test]
fn a_stream_has_iperf3s_events_in_order_and_one_end() {
    let settings = TestSettings::new(Protocol::Tcp);
    let error = Error::Session(SessionError::Terminated(End::Server));
    let busy = Error::Session(SessionError::Refused(Refusal::Busy));
    for (events, names) in [
        (records::complete(settings, End::Client), &["start", "interval", "interval", "end"][..]),
        (
            records::broken(settings, End::Client, error),
            &["start", "interval", "interval", "error", "end"],
        ),
        (vec![records::failed(busy)], &["error", "end"]),
    ] {
        let mut stream = JsonStream::new(StreamOptions::default());
        let text: String = events.iter().map(|event| stream.handle(event)).collect();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let printed: Vec<_> = lines.map(|line| line["event"].clone()).collect();
        assert_eq!(printed, names);
    }
}

#[test]
fn the_full_document_follows_a_stream_when_asked_for() {
    let settings = TestSettings::new(Protocol::Tcp);
    let events = records::complete(settings, End::Client);
    let mut stream =
        JsonStream::new(StreamOptions { full_output: true, ..StreamOptions::default() });
    let text: String = events.iter().map(|event| stream.handle(event)).collect();
    let (_, document) = text.split_once("\n{\n").expect("a document");
    let document: Value = serde_json::from_str(&format!("{{{document}")).expect("JSON");
    assert_eq!(document["intervals"].as_array().map(Vec::len), Some(2));
}

/// The events of a test like the recorded one.
fn events_of(recording: &Recording, recorded: &Value) -> Vec<Progress> {
    let (end, settings) = (recording.end, settings_of(recording, recorded));
    let interrupted = Error::Interrupted { by: None };
    let terminated = |end| Error::Session(SessionError::Terminated(end));
    let limit = ServerError { number: 27, errno: 0 };
    let mut events = match (recording.name.as_str(), end) {
        ("error-busy" | "error-refused", _) => {
            vec![records::failed(Error::Session(SessionError::Refused(Refusal::Busy)))]
        }
        ("error-server-limit", End::Client) => {
            let error = Error::Session(SessionError::Refused(Refusal::Error(limit)));
            vec![records::connected(settings, end), records::failed(error)]
        }
        ("error-server-limit", End::Server) => {
            let error = Error::Session(SessionError::Denied(limit));
            vec![records::connected(settings, end), records::failed(error)]
        }
        ("interrupt-client", End::Client) | ("interrupt-server", End::Server) => {
            records::broken(settings, end, interrupted)
        }
        ("interrupt-client", End::Server) => {
            records::broken(settings, end, terminated(End::Client))
        }
        ("interrupt-server", End::Client) => {
            records::broken(settings, end, terminated(End::Server))
        }
        _ => records::complete(settings, end),
    };
    for event in &mut events {
        if let Progress::Started(start) = event {
            let connection = &mut Arc::make_mut(start).connection;
            connection.title = recorded.get("title").map(|_| "title".into());
            connection.extra_data = recorded.get("extra_data").map(|_| "data".into());
        }
    }
    edit_end(&mut events, |end| {
        if recording.name == "tcp-file" {
            let (name, role) = ("payload.bin".into(), end.streams[0].role);
            end.file = Some(DiskFile { name, size_bytes: 1 << 20, role });
        }
        end.server_output =
            match (recorded.get("server_output_json"), recorded.get("server_output_text")) {
                (Some(document), _) => Some(ServerOutput::Json(document.clone())),
                (_, Some(_)) => Some(ServerOutput::Text("lines\n".into())),
                _ => None,
            };
    });
    events
}

fn settings_of(recording: &Recording, recorded: &Value) -> TestSettings {
    let settings = settings_by_name(&recording.name);
    let start = &recorded["start"]["test_start"];
    let rate = start["target_bitrate"].as_u64().filter(|&rate| rate > 0);
    let is_set = |key: &str| start[key] == json!(1);
    TestSettings {
        bitrate: rate.map(BitsPerSec),
        offload: Offload { gso: is_set("gso"), gro: is_set("gro") },
        ..settings
    }
}

fn edit_end(events: &mut [Progress], edit: impl Fn(&mut TestEnd)) {
    if let Some(Progress::Ended(end)) = events.last_mut() {
        edit(Arc::make_mut(end));
    }
}

fn document(events: &[Progress]) -> Value {
    let mut report = JsonReport::new(JsonOptions::default());
    events.iter().for_each(|event| report.handle(event));
    report.finish()
}

/// Every key with its place and type, such as `end.streams[].udp.bytes: number`.
fn key_paths(document: &Value) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    collect_paths(document, "", &mut paths);
    paths
}

fn collect_paths(value: &Value, place: &str, paths: &mut BTreeSet<String>) {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(elements) => {
            elements
                .iter()
                .for_each(|element| collect_paths(element, &format!("{place}[]"), paths));
            "array"
        }
        Value::Object(members) => {
            for (key, value) in members {
                collect_paths(value, &format!("{place}.{key}"), paths);
            }
            "object"
        }
    };
    paths.insert(format!("{}: {kind}", place.trim_start_matches('.')));
}

/// The keys that both have stand in the same order.
fn assert_same_order(recorded: &Value, ours: &Value, place: &str) {
    match (recorded, ours) {
        (Value::Object(recorded), Value::Object(ours)) => {
            // A server's start holds this key twice; ours stands where the second does.
            let is_shared = |key: &&String| {
                recorded.contains_key(*key) && ours.contains_key(*key) && *key != "target_bitrate"
            };
            let recorded_keys: Vec<_> = recorded.keys().filter(is_shared).collect();
            let is_missing = |key: &&String| !ours.contains_key(*key);
            let missing: Vec<_> = recorded.keys().filter(is_missing).collect();
            assert!(missing.is_empty() || missing == ["target_bitrate"], "{place}: {missing:?}");
            let our_keys: Vec<_> = ours.keys().filter(is_shared).collect();
            assert_eq!(our_keys, recorded_keys, "{place}");
            for key in recorded_keys {
                assert_same_order(&recorded[key], &ours[key], &format!("{place}.{key}"));
            }
        }
        (Value::Array(recorded), Value::Array(ours)) => {
            for (recorded, ours) in recorded.iter().zip(ours) {
                assert_same_order(recorded, ours, &format!("{place}[]"));
            }
        }
        _ => {}
    }
}

fn count_keys(value: &Value) -> usize {
    match value {
        Value::Array(elements) => elements.iter().map(count_keys).sum(),
        Value::Object(members) => members.len() + members.values().map(count_keys).sum::<usize>(),
        _ => 0,
    }
}

fn last_number(line: &str) -> Option<f64> {
    line.rsplit('\t').next()?.trim_end_matches(',').parse().ok()
}

/// What iperf3 has and we do not: file, end, beginning of the place, reason.
const EXCEPTIONS: &[(&str, &str, &str, &str)] = &[(
    "error-server-limit",
    "server",
    "start.target_bitrate",
    "the settings of a test that this server refuses are never agreed",
)];
