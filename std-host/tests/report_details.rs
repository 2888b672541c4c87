//! What both reports tell beyond iperf3's numbers, from records that have it.

#[allow(dead_code, reason = "others use the rest of it")]
#[path = "report_support/records.rs"]
mod records;

use std::sync::Arc;

use linerate::error::Error;
use linerate::report::json::{
    JsonOptions, JsonReport, JsonStream, StreamOptions, to_document_string,
};
use linerate::report::text::{TextOptions, TextReport};
use linerate::report::{
    Evidence, Hint, Jitter3550, Limit, LossBursts, Percentiles, Progress, Reordering, SenderWaits,
    ServerOutput, StreamDetail, StreamDetails, TestEnd, ThreadUse, Verdict,
};
use linerate_core::test::{Direction, End, Limits, Protocol, Role, TestSettings};
use serde_json::{Value, json};

#[test]
fn a_receiver_of_datagrams_has_its_lines() {
    let mut events = with_details(UDP, End::Client);
    edit_end(&mut events, |end| {
        let remote = end.streams[0].remote.as_mut().expect("the peer told");
        (remote.datagrams.duplicates, remote.datagrams.too_late) = (Some(1), Some(2));
        remote.datagrams.packets -= 3;
    });
    assert_eq!(
        explanation(&EXPLAIN, &events),
        "\
Delay variation     p50   0.012  p90   0.031  p99   0.120  p99.9   0.410  max   0.520 ms (against the fastest)
Between neighbours  p50   0.001  p90   0.002  p99   0.003  p99.9   0.004  max   0.005 ms
Jitter (RFC 3550)   0.015 ms, mean 0.013 ms
Lost                20 in 3 rows, longest 7; 3 at the very end; 10 messages had no room in the receiver's socket; 2 late by up to 5; 1 came twice; 2 too late to tell
Gaps of departure   p50   0.100  p90   0.200  p99   0.300  p99.9   0.400  max  12.000 ms
Refused             6 calls by the sending host, for want of buffers; nothing is lost by it
Limited by the rate that was asked for (1.05 Mbits/sec): try a higher -b
"
    );
}

#[test]
fn a_sender_of_bytes_has_its_lines() {
    // 1.44 s of 2, 60 ms of 2, and 5000 bytes of 25 million.
    assert_eq!(
        explanation(&EXPLAIN, &with_details(TCP, End::Client)),
        "\
Round trip          p50   0.310  p90   0.320  p99   0.330  p99.9   0.340  max   0.350 ms (idle 0.080 ms)
Sender waited       72 % for the receive window, 3 % for the send buffer
Sent again          0.02 % of the bytes
Limited by the rate that was asked for (1.05 Mbits/sec): try a higher -b
"
    );
}

#[test]
fn rates_have_the_unit_that_was_asked_for() {
    let options = TextOptions { format: "K".parse().ok(), ..EXPLAIN };
    let text = explanation(&options, &with_details(TCP, End::Client));
    assert!(text.contains("(128 KBytes/sec)"), "{text}");
}

#[test]
fn each_line_says_which_direction_where_there_are_two() {
    let settings = TestSettings { direction: Direction::Bidirectional, ..TCP };
    for (end, first, second) in
        [(End::Client, "[TX-C] ", "[RX-C] "), (End::Server, "[RX-S] ", "[TX-S] ")]
    {
        let text = explanation(&EXPLAIN, &with_details(settings, end));
        let begin = |tag: &str| text.lines().filter(|line| line.starts_with(tag)).count();
        assert_eq!((begin(first), begin(second)), (4, 4), "{text}");
        assert_eq!(text.lines().count(), 8, "{text}");
        assert!(text.starts_with(first), "{text}");
    }
}

#[test]
fn of_several_streams_the_worst_counts_and_counts_are_sums() {
    let settings = TestSettings { parallel: 2, ..UDP };
    let mut events = with_details(settings, End::Server);
    edit_end(&mut events, |end| {
        let other = &mut end.details[1].local;
        let variation = other.delay_variation.as_mut().expect("it is known");
        (variation.p50_ns, variation.p90_ns) = (11_000, 99_000);
        other.loss_bursts = Some(LossBursts { count: 1, longest: 8 });
        other.reordering = Some(Reordering { count: 1, extent_sum: 1, max_extent: 1 });
    });
    let text = explanation(&EXPLAIN, &events);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(
        lines[0],
        "Delay variation     p50   0.012  p90   0.099  p99   0.120  p99.9   0.410  max   0.520 ms \
         (against the fastest; worst of 2 streams)"
    );
    assert_eq!(lines[2], "Jitter (RFC 3550)   0.015 ms, mean 0.013 ms (worst of 2 streams)");
    assert_eq!(
        lines[3],
        "Lost                40 in 4 rows, longest 8; 20 messages had no room in the receiver's \
         socket; 3 late by up to 5"
    );
    let text = explanation(&TextOptions { verbose: true, ..EXPLAIN }, &events);
    let of_each =
        ["[  5] Lost                20 in 3 rows", "[  7] Lost                20 in 1 row;"];
    assert!(of_each.iter().all(|part| text.contains(part)), "{text}");
    assert!(!text.contains("worst of"), "{text}");
}

#[test]
fn waits_of_several_streams_are_shares_of_the_time_of_all() {
    let settings = TestSettings { parallel: 2, ..TCP };
    let mut events = with_details(settings, End::Client);
    edit_end(&mut events, |end| end.details[1].local.waits = Some(SenderWaits::default()));
    let text = explanation(&EXPLAIN, &events);
    let expected = "Sender waited       36 % for the receive window, 1.5 % for the send buffer\n";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn nothing_is_explained_unless_asked_for_nor_under_the_name_of_iperf3() {
    let events = with_details(UDP, End::Client);
    let bare = records::complete(UDP, End::Client);
    for options in [TextOptions::default(), TextOptions { plain: true, ..EXPLAIN }] {
        assert_eq!(print(&options, &events), print(&options, &bare));
    }
    assert_eq!(print(&EXPLAIN, &bare), print(&TextOptions::default(), &bare), "nothing is known");
}

#[test]
fn a_stock_peers_numbers_are_explained_as_far_as_this_end_knows_them() {
    let mut events = with_details(UDP, End::Client);
    edit_end(&mut events, |end| {
        end.details[0].remote = None;
        let remote = end.streams[0].remote.as_mut().expect("the peer told");
        (remote.datagrams.duplicates, remote.datagrams.too_late) = (None, None);
        end.verdicts[0].is_one_sided = true;
    });
    let text = explanation(&EXPLAIN, &events);
    let names: Vec<_> = text.lines().map(|line| line[..9].trim()).collect();
    assert_eq!(names, ["Gaps of d", "Refused", "Limited b"], "{text}");
    assert!(text.contains(", as far as this end can tell: try"), "{text}");
}

#[test]
fn a_server_explains_at_the_end_and_its_clients_copy_is_without() {
    let settings = TestSettings { server_output: true, ..UDP };
    let mut events = with_details(settings, End::Server);
    let ended = events.pop().expect("the last event");
    let mut report = TextReport::new(EXPLAIN);
    events.iter().for_each(|event| drop(report.handle(event)));
    let ServerOutput::Text(output) = report.server_output() else { panic!("not a text") };
    assert!(output.ends_with("receiver\n"), "{output}");
    assert!(report.handle(&ended).starts_with("Delay variation "));
}

#[test]
fn a_document_has_both_ends_of_each_stream() {
    let own = &document(&with_details(UDP, End::Client))["linerate"];
    let stream = &own["streams"][0];
    assert_eq!(
        (&stream["id"], &stream["socket"], &stream["role"]),
        (&json!(1), &json!(4), &json!("sender"))
    );
    assert_eq!(
        stream["local"],
        json!({
            "refusals": 6,
            "gaps": {
                "count": 200, "p50_ns": 100_000, "p90_ns": 200_000, "p99_ns": 300_000,
                "p999_ns": 400_000, "max_ns": 12_000_000
            },
            "buffer_bytes": 65_536,
            "thread": { "wall_ns": 2_000_000_000, "cpu_ns": 500_000_000, "queued_ns": 7 },
        })
    );
    assert_eq!(
        stream["remote"]["datagrams"],
        json!({ "packets": 200, "lost": 20, "out_of_order": 0, "duplicates": 0, "too_late": 0 })
    );
    assert_eq!(stream["remote"]["jitter"], json!({ "smoothed_ns": 15_000, "mean_ns": 13_000 }));
    assert_eq!(stream["remote"]["loss_bursts"], json!({ "count": 3, "longest": 7 }));
    assert_eq!(stream["remote"]["socket_drops"], 10);
    assert_eq!(stream["lost_at_end"], 0);
    assert_eq!(
        own["verdicts"],
        json!([{
            "role": "sender",
            "limit": "requested_rate",
            "one_sided": false,
            "evidence": { "bits_per_second": 1_000_000, "requested_bits_per_second": 1_050_000 },
            "hint": { "try": "higher_rate" },
            "text": "Limited by the rate that was asked for (1.05 Mbits/sec): try a higher -b",
        }])
    );
}

#[test]
fn a_document_of_bytes_has_what_its_sender_knows() {
    let own = &document(&with_details(TCP, End::Server))["linerate"];
    let remote = &own["streams"][0]["remote"];
    assert_eq!(own["streams"][0]["role"], "receiver");
    assert!(own["streams"][0].get("lost_at_end").is_none());
    let waits =
        json!({ "busy_us": 1_900_000, "receive_window_us": 1_440_000, "send_buffer_us": 60_000 });
    assert_eq!(remote["waits"], waits);
    for (key, number) in [
        ("idle_round_trip_us", 80),
        ("resent_bytes", 5000),
        ("delivery_bytes_per_second", 13_000_000),
        ("window_bytes", 3_000_000),
    ] {
        assert_eq!(remote[key], number, "{key}");
    }
    assert_eq!(remote["round_trips"]["p50_ns"], 310_000);
}

#[test]
fn intervals_have_this_ends_streams_in_documents_and_in_lines() {
    let settings = TestSettings { parallel: 2, ..UDP };
    let mut events = with_details(settings, End::Server);
    let nothing_known = |progress: &mut Progress| {
        if let Progress::Interval(interval) = progress {
            Arc::make_mut(interval).details[1] = StreamDetail::default();
        }
    };
    nothing_known(&mut events[2]);
    let mut stream = JsonStream::new(StreamOptions::default());
    let lines: String = events.iter().map(|event| stream.handle(event)).collect();
    let lines: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let document = document(&events);
    let intervals = document["intervals"].as_array().expect("an array");
    for (interval, line, streams) in [(&intervals[0], &lines[1], 1), (&intervals[1], &lines[2], 2)]
    {
        assert_eq!(&line["data"], interval);
        let own = interval["linerate"]["streams"].as_array().expect("an array");
        assert_eq!(own.len(), streams);
        assert_eq!((&own[0]["socket"], &own[0]["role"]), (&json!(5), &json!("receiver")));
        let counts = json!({ "out_of_order": 0, "duplicates": 0, "too_late": 0 });
        assert_eq!(own[0]["local"]["datagrams"], counts);
        assert_eq!(own[0]["local"]["delay_variation"]["p50_ns"], 12_000);
        assert!(own[0].get("remote").is_none());
    }
    let last = &lines[lines.len() - 1]["linerate"];
    assert_eq!(last["streams"], document["linerate"]["streams"]);
    assert_eq!(last["verdicts"], document["linerate"]["verdicts"]);
}

#[test]
fn nothing_of_ours_stands_where_only_iperf3s_keys_are_wanted() {
    let settings = TestSettings { server_output: true, ..UDP };
    let events = with_details(settings, End::Server);
    let plain = JsonOptions { plain: true, ..JsonOptions::default() };
    let mut report = JsonReport::new(plain.clone());
    events.iter().for_each(|event| report.handle(event));
    assert!(!to_document_string(&report.finish()).contains("linerate\""));

    let mut stream = JsonStream::new(StreamOptions { json: plain, full_output: true });
    let text: String = events.iter().map(|event| stream.handle(event)).collect();
    assert!(!text.contains("linerate\""), "{text}");

    let mut report = JsonReport::new(JsonOptions::default());
    events[..events.len() - 1].iter().for_each(|event| report.handle(event));
    let ServerOutput::Json(output) = report.server_output() else { panic!("not a document") };
    assert!(!output.to_string().contains("linerate\""), "{output}");
}

#[test]
fn a_document_without_details_names_its_streams_and_no_more() {
    let document = document(&records::complete(TCP, End::Client));
    let streams = json!([{ "id": 1, "socket": 4, "role": "sender" }]);
    assert_eq!(document["linerate"]["streams"], streams);
    assert_eq!(document["linerate"]["verdicts"], json!([]));
    assert!(document["intervals"][0].get("linerate").is_none());
}

#[test]
fn what_is_lost_at_the_very_end_is_known_where_both_ends_counted_the_same() {
    let bytes = Limits { bytes: Some(1000), ..Limits::default() };
    let error = || Some(Error::Interrupted { by: None });
    let reverse = TestSettings { direction: Direction::Reverse, ..UDP };
    for (settings, end, error, is_known) in [
        (UDP, End::Client, None, true),
        (UDP, End::Server, None, true),
        (UDP, End::Client, error(), false),
        (TestSettings { limits: bytes, ..UDP }, End::Client, None, false),
        (TestSettings { omit_secs: 1, ..UDP }, End::Client, None, false),
        // Its sender goes on until it hears that the test is over.
        (reverse, End::Client, None, false),
        (reverse, End::Server, None, false),
        (TCP, End::Client, None, false),
    ] {
        let mut events = records::complete(settings, end);
        edit_end(&mut events, |end| {
            let stream = &mut end.streams[0];
            let remote = stream.remote.as_mut().expect("the peer told");
            let received = if stream.role == Role::Receiver { &mut stream.local } else { remote };
            received.datagrams.packets = received.datagrams.packets.saturating_sub(4);
            end.error.clone_from(&error);
        });
        let told = &document(&events)["linerate"]["streams"][0]["lost_at_end"];
        assert_eq!(told.as_u64(), is_known.then_some(4), "{settings:?} {end:?}");
        let text = print(&EXPLAIN, &events);
        assert_eq!(text.contains("4 at the very end"), is_known, "{text}");
    }
}

/// What the option adds to the text.
fn explanation(options: &TextOptions, events: &[Progress]) -> String {
    let without = print(&TextOptions { explain: false, ..options.clone() }, events);
    let with = print(options, events);
    let done = "\niperf Done.\n";
    let before = without.strip_suffix(done).unwrap_or(&without);
    let added = with.strip_prefix(before).expect("iperf3's lines come first");
    added.strip_suffix(done).unwrap_or(added).to_owned()
}

fn print(options: &TextOptions, events: &[Progress]) -> String {
    let mut report = TextReport::new(options.clone());
    events.iter().map(|event| report.handle(event)).collect()
}

fn document(events: &[Progress]) -> Value {
    let mut report = JsonReport::new(JsonOptions::default());
    events.iter().for_each(|event| report.handle(event));
    let document = report.finish();
    let printed = to_document_string(&document);
    assert_eq!(serde_json::from_str::<Value>(&printed).expect("our JSON"), document);
    document
}

/// A whole test of two linerate ends.
fn with_details(settings: TestSettings, end: End) -> Vec<Progress> {
    let mut events = records::complete(settings, end);
    for event in &mut events {
        match event {
            Progress::Interval(interval) => {
                let roles = interval.streams.iter().map(|stream| stream.role);
                let details = roles.map(|role| detail(settings, role)).collect();
                Arc::make_mut(interval).details = details;
            }
            Progress::Ended(end) => {
                let roles: Vec<_> = end.streams.iter().map(|stream| stream.role).collect();
                let both = |&role: &Role| StreamDetails {
                    local: detail(settings, role),
                    remote: Some(detail(settings, role.opposite())),
                };
                let edited = Arc::make_mut(end);
                edited.details = roles.iter().map(both).collect();
                edited.verdicts = vec![verdict(roles[0])];
                if settings.direction == Direction::Bidirectional {
                    edited.verdicts.push(verdict(roles[0].opposite()));
                }
            }
            _ => {}
        }
    }
    events
}

fn edit_end(events: &mut [Progress], edit: impl Fn(&mut TestEnd)) {
    if let Some(Progress::Ended(end)) = events.last_mut() {
        edit(Arc::make_mut(end));
    }
}

fn detail(settings: TestSettings, role: Role) -> StreamDetail {
    let (buffer_bytes, thread) = (Some(65_536), Some(THREAD));
    match (settings.protocol, role) {
        (Protocol::Udp, Role::Sender) => StreamDetail {
            refusals: Some(6),
            gaps: Some(percentiles([100, 200, 300, 400, 12_000])),
            buffer_bytes,
            thread,
            ..StreamDetail::default()
        },
        (Protocol::Udp, Role::Receiver) => StreamDetail {
            jitter: Some(Jitter3550 { smoothed_ns: 15_000, mean_ns: 13_000 }),
            delay_variation: Some(percentiles([12, 31, 120, 410, 520])),
            delay_differences: Some(percentiles([1, 2, 3, 4, 5])),
            reordering: Some(Reordering { count: 2, extent_sum: 6, max_extent: 5 }),
            loss_bursts: Some(LossBursts { count: 3, longest: 7 }),
            socket_drops: Some(10),
            buffer_bytes,
            thread,
            ..StreamDetail::default()
        },
        (_, Role::Sender) => StreamDetail {
            round_trips: Some(percentiles([310, 320, 330, 340, 350])),
            idle_round_trip_us: Some(80),
            waits: Some(SenderWaits {
                busy_us: 1_900_000,
                receive_window_us: 1_440_000,
                send_buffer_us: 60_000,
            }),
            resent_bytes: Some(5000),
            delivery_bytes_per_sec: Some(13_000_000),
            window_bytes: Some(3_000_000),
            buffer_bytes,
            thread,
            ..StreamDetail::default()
        },
        (_, Role::Receiver) => StreamDetail { buffer_bytes, thread, ..StreamDetail::default() },
    }
}

fn percentiles(micros: [u64; 5]) -> Percentiles {
    let [p50_ns, p90_ns, p99_ns, p999_ns, max_ns] = micros.map(|micros| micros * 1000);
    Percentiles { count: 200, p50_ns, p90_ns, p99_ns, p999_ns, max_ns }
}

fn verdict(role: Role) -> Verdict {
    Verdict {
        role,
        limit: Limit::RequestedRate,
        is_one_sided: false,
        evidence: Evidence {
            rate: 1_000_000,
            requested_rate: Some(1_050_000),
            ..Evidence::default()
        },
        hint: Some(Hint::HigherRate),
    }
}

const TCP: TestSettings = TestSettings::new(Protocol::Tcp);
const UDP: TestSettings = TestSettings::new(Protocol::Udp);
const THREAD: ThreadUse =
    ThreadUse { wall_ns: 2_000_000_000, cpu_ns: 500_000_000, queued_ns: Some(7) };
const EXPLAIN: TextOptions = TextOptions {
    format: None,
    verbose: false,
    explain: true,
    title: None,
    system_info: String::new(),
    stamps: None,
    plain: false,
};
