//! Streams of JSON: one event a line, in iperf3's order, with exactly one ending whatever happens; and
//! lines of several tests at once that can be told apart.

use std::time::Duration;

use linerate_tests::both::{End, Run};
use linerate_tests::client;
use linerate_tests::json::{Stream, strict};
use linerate_tests::process::Process;
use linerate_tests::server::{Server, free_port};
use linerate_tests::tool::Tool;
use serde_json::{Value, json};

#[test]
fn a_stream_goes_before_a_document_in_any_order() {
    for options in ["-J --json-stream", "--json-stream -J", "--json-stream"] {
        let client = format!("-t 1 -b 10M {options}");
        let run = Run { client: &client, server: options, stopped: None };
        let outcome = run.by(Tool::Linerate, "127.0.0.1").expect("it ends");
        for end in [End::Client, End::Server] {
            let stream = Stream::read(&outcome.of(end).stdout).expect("a stream");
            assert_eq!(stream.events.first().map(String::as_str), Some("start"), "{options}");
            assert_eq!(stream.events.last().map(String::as_str), Some("end"), "{options}");
            let mut numbers = stream.lines.iter().map(|line| &line["linerate"]["test_number"]);
            assert!(numbers.all(Value::is_null), "{options}");
            let last = &stream.lines[stream.lines.len() - 1]["linerate"]["engine"];
            let direction = if end == End::Client { "sent" } else { "received" };
            assert_eq!(last, &json!({ direction: { "method": "copy" } }), "{options}");
            assert_eq!(stream.rest, "");
        }
    }
}

#[test]
fn a_client_without_a_server_ends_its_stream_as_iperf3_does() {
    let recorded = include_str!("../recorded/error-refused-stream.client.jsonl");
    let recorded = Stream::read(recorded).expect("a stream");
    let limit = Duration::from_secs(10);
    let ended = client::run(Tool::Linerate, "127.0.0.1", free_port(), &["--json-stream"], limit);
    let ended = ended.expect("it ends");
    let ours = Stream::read(&ended.stdout).expect("a stream");
    assert_eq!(ours.events, recorded.events);
    assert_eq!(ours.lines[1], recorded.lines[1]);
    let text = ours.lines[0]["data"].as_str().expect("a text");
    let words = recorded.lines[0]["data"].as_str().expect("a text");
    let (words, reason) = words.rsplit_once(": ").expect("iperf3 gives the reason");
    assert!(text.starts_with(words) && text.ends_with(reason), "{text}");
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(2), ""));
}

#[test]
fn a_server_without_its_port_ends_its_stream() {
    let taken = Server::start(Tool::Linerate, &[]);
    let mut command = Tool::Linerate.command();
    command.args(["-s", "--json-stream", "-p", &taken.port().to_string()]);
    let ended = Process::start(&mut command).wait(Duration::from_secs(10)).expect("it ends");
    let stream = Stream::read(&ended.stdout).expect("a stream");
    assert_eq!(stream.events, ["error", "end"]);
    let text = stream.lines[0]["data"].as_str().expect("a text");
    assert!(text.starts_with("error - unable to start listener for connections"), "{text}");
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(1), ""));
}

#[cfg(unix)]
#[test]
fn a_stream_that_is_stopped_ends_once() {
    for stopped in [End::Client, End::Server] {
        let run = Run {
            client: "-t 5 -b 5M -l 10K --json-stream",
            server: "--json-stream",
            stopped: Some((stopped, "TERM")),
        };
        let outcome = run.by(Tool::Linerate, "127.0.0.1").expect("it ends");
        for end in [End::Client, End::Server] {
            let stream = Stream::read(&outcome.of(end).stdout).expect("a stream");
            let (last, before) = stream.events.split_last().expect("some");
            assert_eq!(last, "end", "{stopped:?} stopped, {end:?}");
            assert!(!before.iter().any(|event| event == "end"), "{stopped:?} stopped, {end:?}");
            assert_eq!(before.iter().filter(|event| *event == "error").count(), 1);
            assert_ne!(stream.lines.last().expect("some")["data"], json!({}), "{end:?}");
        }
    }
}

#[cfg(unix)]
#[test]
fn a_document_of_a_test_that_was_stopped_is_one() {
    for stopped in [End::Client, End::Server] {
        let run =
            Run { client: "-t 5 -b 5M -l 10K -J", server: "-J", stopped: Some((stopped, "INT")) };
        let outcome = run.by(Tool::Linerate, "127.0.0.1").expect("it ends");
        for end in [End::Client, End::Server] {
            let document = strict(&outcome.of(end).stdout).expect("one document");
            assert!(document["error"].is_string(), "{document}");
            assert_eq!(outcome.of(end).stderr, "", "{stopped:?} stopped, {end:?}");
        }
    }
}

#[cfg(unix)]
#[test]
fn lines_of_several_tests_at_once_tell_their_test() {
    let server = Server::start(Tool::Linerate, &["--json-stream", "-i", "0.2"]);
    let limit = Duration::from_secs(15);
    let one = |seconds: &str| {
        let options = ["-t", seconds, "-b", "5M", "-l", "10K"];
        client::start(Tool::Linerate, "127.0.0.1", server.port(), &options)
    };
    assert_eq!(one("1").wait(limit).expect("alone").code, Some(0));
    let (long, short) = (one("2"), one("1"));
    assert_eq!(short.wait(limit).expect("beside").code, Some(0));
    assert_eq!(long.wait(limit).expect("beside").code, Some(0));
    let ended = server.stop("INT").expect("it ends");
    let stream = Stream::read(&ended.stdout).expect("a stream");

    let of = |number: u64| {
        let test = move |line: &&Value| line["linerate"]["test_number"] == number;
        let lines: Vec<_> = stream.lines.iter().filter(test).collect();
        lines.iter().map(|line| line["event"].as_str().expect("a name").to_owned()).collect()
    };
    for number in [2, 3] {
        let events: Vec<String> = of(number);
        assert!(events.len() > 3, "{number}: {events:?}");
        assert_eq!(events.iter().filter(|event| *event == "end").count(), 1, "{events:?}");
        assert_eq!(events.last().map(String::as_str), Some("end"), "{events:?}");
    }
    // The test that was alone needs no number; nor does the ending of the server itself.
    let unnumbered: Vec<_> = stream
        .lines
        .iter()
        .filter(|line| line["linerate"]["test_number"].is_null())
        .filter_map(|line| line["event"].as_str())
        .collect();
    assert_eq!((unnumbered[0], unnumbered.last()), ("start", Some(&"end")));
    assert_eq!(unnumbered.iter().filter(|event| **event == "error").count(), 1, "{unnumbered:?}");
}

/// 128 streams and ten intervals are more than iperf3's own limits let through.
#[test]
fn a_servers_large_document_comes_whole_to_its_client() {
    let run = Run {
        client: "-P 128 -t 1 -b 200K -l 1K -J --get-server-output",
        server: "-J -i 0.1",
        stopped: None,
    };
    let outcome = run.by(Tool::Linerate, "127.0.0.1").expect("it ends");
    let document = strict(&outcome.client.stdout).expect("one document");
    assert!(document["error"].is_null(), "{}", document["error"]);
    let output = &document["server_output_json"];
    let intervals = output["intervals"].as_array().expect("an array");
    assert!(intervals.len() >= 9, "{}", intervals.len());
    for interval in &intervals[..9] {
        assert_eq!(interval["streams"].as_array().map(Vec::len), Some(128));
    }
    assert!(output.to_string().len() > 200_000, "{}", output.to_string().len());
    assert_eq!(output["end"]["streams"].as_array().map(Vec::len), Some(128));
}
