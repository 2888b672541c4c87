//! Results in both directions, against what stock ends send.

extern crate std;
use std::format;
use std::string::String;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::protocol::frame::{Outgoing, PIECE_BYTES};
use crate::protocol::json::DocumentError;
use crate::protocol::recorded::RESULTS;
use crate::protocol::testing::{fed, written};
use crate::report::{
    CpuUse, Jitter3550, LossBursts, Percentiles, Reordering, SenderWaits, StreamDetail, ThreadUse,
};

fn read(body: &str) -> Result<ReceivedResults<4>, DocumentError> {
    fed(ResultsReader::<4>::new(), body.as_bytes(), &[4096])?.finish()
}

/// As a linerate end reads it, with the details in the order they came.
fn read_all(
    body: &str,
    sizes: &[usize],
) -> Result<(ReceivedResults<4>, Vec<(u32, StreamDetail)>), DocumentError> {
    let mut reader = ResultsReader::<4>::of_linerate();
    let mut all = Vec::new();
    let (output, details) =
        (&mut |_, _: &[u8]| (), &mut |number, detail| all.push((number, detail)));
    fed(ResultsDocument { reader: &mut reader, output, details }, body.as_bytes(), sizes)?;
    Ok((reader.finish()?, all))
}

const NO_DETAIL: Option<fn(usize) -> StreamDetail> = None;

/// A document that lacks nothing, with these members of its only stream in front of the others.
fn with_stream(members: &str) -> String {
    format!(
        "{{\"cpu_util_total\":1,\"cpu_util_user\":1,\"cpu_util_system\":0,\
         \"sender_has_retransmits\":1,\"streams\":[{{{members}\"id\":1,\"bytes\":2,\
         \"retransmits\":3,\"jitter\":0,\"errors\":4,\"packets\":5}}]}}"
    )
}

const STREAM: ResultsStream = ResultsStream {
    number: 1,
    bytes: 2,
    retransmits: Some(3),
    jitter_ns: 0,
    lost: 4,
    omitted_lost: None,
    packets: 5,
    omitted_packets: None,
    out_of_order: None,
    duplicates: None,
    too_late: None,
    start_ns: None,
    end_ns: None,
};

#[test]
fn recorded_documents_read_the_same_in_any_chunking() {
    for (name, body) in RESULTS {
        let whole = format!("{:?}", read(body).unwrap());
        for sizes in [vec![1], vec![2], vec![3, 1, 7], vec![5, 64, 1]] {
            let mut reader = fed(ResultsReader::<4>::new(), body.as_bytes(), &sizes).unwrap();
            assert_eq!(format!("{:?}", reader.finish().unwrap()), whole, "{name} {sizes:?}");
        }
    }
}

#[test]
fn serde_json_reads_the_same_values() {
    for (name, body) in RESULTS {
        let ours = read(body).unwrap();
        let value: Value = serde_json::from_str(body).unwrap();
        let close = |ours: u64, theirs: &Value, scale: f64| {
            let theirs = theirs.as_f64().unwrap() * scale;
            assert!((ours as f64 - theirs).abs() <= 0.5 + theirs * 1e-15, "{name} {ours} {theirs}");
        };
        close(ours.cpu.total_micropercent, &value["cpu_util_total"], 1e6);
        close(ours.cpu.user_micropercent, &value["cpu_util_user"], 1e6);
        close(ours.cpu.system_micropercent, &value["cpu_util_system"], 1e6);
        let has = value["sender_has_retransmits"].as_i64().unwrap();
        assert_eq!(ours.sender_has_retransmits, (has >= 0).then_some(has == 1), "{name}");
        assert_eq!(ours.congestion.as_deref(), value["congestion_used"].as_str(), "{name}");
        let streams = value["streams"].as_array().unwrap();
        assert_eq!(ours.streams.len(), streams.len(), "{name}");
        for (ours, theirs) in ours.streams.iter().zip(streams) {
            assert_eq!(Some(u64::from(ours.number)), theirs["id"].as_u64());
            assert_eq!(Some(ours.bytes), theirs["bytes"].as_u64());
            assert_eq!(ours.retransmits, theirs["retransmits"].as_u64());
            close(ours.jitter_ns, &theirs["jitter"], 1e9);
            assert_eq!(Some(ours.lost), theirs["errors"].as_u64());
            assert_eq!(ours.omitted_lost, theirs["omitted_errors"].as_u64());
            assert_eq!(Some(ours.packets), theirs["packets"].as_u64());
            assert_eq!(ours.omitted_packets, theirs["omitted_packets"].as_u64());
            assert_eq!(ours.start_ns.is_some(), theirs.get("start_time").is_some());
            assert_eq!(ours.end_ns.is_some(), theirs.get("end_time").is_some());
            if let Some(end_ns) = ours.end_ns {
                close(end_ns, &theirs["end_time"], 1e9);
            }
        }
    }
}

#[test]
fn unknown_is_none_however_it_is_spelled() {
    for unknown in ["-1", "18446744073709551615", "1.8446744073709552e+19", "4294967295"] {
        let received = read(&with_stream(&format!("\"retransmits\":{unknown},"))).unwrap();
        assert_eq!(received.streams[0], ResultsStream { retransmits: None, ..STREAM }, "{unknown}");
    }
    let received = read(&with_stream("\"bytes\":-1,\"packets\":-1,\"errors\":-7,")).unwrap();
    let none = ResultsStream { bytes: 0, packets: 0, lost: 0, ..STREAM };
    assert_eq!(received.streams[0], none);
    let received = read(&with_stream("\"jitter\":null,\"end_time\":1e-05,")).unwrap();
    assert_eq!(received.streams[0], ResultsStream { end_ns: Some(10_000), ..STREAM });
}

#[test]
fn required_keys_must_be_there_and_be_numbers() {
    let whole = with_stream("");
    assert_eq!(read(&whole).unwrap().streams[0], STREAM);
    for key in [
        "cpu_util_total",
        "cpu_util_user",
        "cpu_util_system",
        "sender_has_retransmits",
        "streams",
        "id",
        "bytes",
        "retransmits",
        "jitter",
        "errors",
        "packets",
    ] {
        let quoted = format!("\"{key}\":");
        for broken in [
            whole.replace(&quoted, "\"x\":"),
            whole.replace(&quoted, &format!("{quoted}\"\",\"x\":")),
        ] {
            assert_eq!(read(&broken).unwrap_err(), DocumentError::Missing { key }, "{broken}");
        }
    }
    for (alone, key) in
        [("omitted_errors", "omitted_packets"), ("omitted_packets", "omitted_errors")]
    {
        let error = read(&with_stream(&format!("\"{alone}\":0,"))).unwrap_err();
        assert_eq!(error, DocumentError::Missing { key });
    }
    assert_eq!(read("[]").unwrap_err(), DocumentError::Missing { key: "cpu_util_total" });
}

#[test]
fn streams_beyond_the_room_are_refused() {
    let streams = |count| {
        let stream =
            "{\"id\":1,\"bytes\":2,\"retransmits\":3,\"jitter\":0,\"errors\":4,\"packets\":5}";
        let streams = vec![stream; count].join(",");
        with_stream("").replace("[{", &format!("[{streams},{{"))
    };
    assert_eq!(read(&streams(3)).unwrap().streams.len(), 4);
    assert_eq!(read(&streams(4)).unwrap_err(), DocumentError::TooManyStreams);
}

#[test]
fn long_congestion_names_are_left_out() {
    let named = |name: &str| {
        let body = with_stream("").replacen('{', &format!("{{\"congestion_used\":\"{name}\","), 1);
        read(&body).map(|results| results.congestion.as_deref().map(String::from))
    };
    assert_eq!(named("bbr"), Ok(Some("bbr".into())));
    assert_eq!(named("0123456789abcdef"), Ok(Some("0123456789abcdef".into())));
    assert_eq!(named("0123456789abcdefg"), Ok(None));
    assert_eq!(named(""), Ok(None));
}

#[test]
fn server_output_passes_through_as_it_came() {
    let text = r#""line\n\"quoted\" [}] \u00e9""#;
    let object = r#"{"start": {"a":[1,2,"}"]}, "end":{}}"#;
    let cases = [
        ("server_output_text", text, Some(OutputKind::Text)),
        ("SERVER_OUTPUT_JSON", object, Some(OutputKind::Json)),
        ("server_output_json", "{}", Some(OutputKind::Json)),
        ("server_output_text", "12", None),
        ("server_output_json", text, None),
    ];
    for (key, value, kind) in cases {
        let body = with_stream("").replacen('{', &format!("{{\"{key}\": {value} ,"), 1);
        for size in [1, 2, 7, 4096] {
            let mut reader = ResultsReader::<4>::new();
            let mut output = Vec::new();
            let mut kinds = Vec::new();
            let mut sink = |kind, bytes: &[u8]| {
                kinds.push(kind);
                output.extend_from_slice(bytes);
            };
            fed(
                ResultsDocument { reader: &mut reader, output: &mut sink, details: &mut |_, _| () },
                body.as_bytes(),
                &[size],
            )
            .map(|_| ())
            .unwrap();
            assert_eq!(reader.finish().unwrap().streams[0], STREAM);
            assert_eq!(output, if kind.is_some() { value.as_bytes() } else { b"" }, "{key} {size}");
            assert!(kinds.iter().all(|&seen| Some(seen) == kind));
        }
    }
}

#[test]
fn output_that_a_server_cut_inside_a_character_passes_through() {
    let body = with_stream("").replacen('{', "{\"server_output_text\":\"?\",", 1).into_bytes();
    let body: Vec<u8> = body.into_iter().map(|b| if b == b'?' { 0xc3 } else { b }).collect();
    let mut reader = ResultsReader::<4>::new();
    let mut output = Vec::new();
    let mut sink = |_, bytes: &[u8]| output.extend_from_slice(bytes);
    let details = &mut |_, _| ();
    let document = ResultsDocument { reader: &mut reader, output: &mut sink, details };
    let result = fed(document, &body, &[64]);
    assert!(result.is_ok() && reader.finish().is_ok());
    assert_eq!(output, b"\"\xc3\"");
}

#[test]
fn results_are_written_in_iperf3s_order() {
    let streams = [
        ResultsStream {
            number: 1,
            bytes: 30_000,
            retransmits: Some(0),
            omitted_lost: Some(0),
            omitted_packets: Some(0),
            start_ns: Some(0),
            end_ns: Some(1_000_559_000),
            ..ResultsStream::default()
        },
        ResultsStream {
            number: 3,
            jitter_ns: 22_628,
            lost: 1,
            packets: 11,
            out_of_order: Some(0),
            ..ResultsStream::default()
        },
    ];
    let mut outgoing = OutgoingResults {
        cpu: CpuUse {
            total_micropercent: 248_038,
            user_micropercent: 100_000_000,
            system_micropercent: 0,
        },
        sender_has_retransmits: -1,
        congestion: Some("bbr"),
        stream_count: 2,
        stream: |index: usize| streams[index],
        detail: NO_DETAIL,
        concurrent_tests: None,
        jitter_of_batches: false,
        server_output_bytes: None,
    };
    let head = r#"{"cpu_util_total":0.248038,"cpu_util_user":100,"cpu_util_system":0,"sender_has_retransmits":-1,"congestion_used":"bbr""#;
    let tail = r#","streams":[{"id":1,"bytes":30000,"retransmits":0,"jitter":0,"errors":0,"omitted_errors":0,"packets":0,"omitted_packets":0,"start_time":0,"end_time":1.000559},{"id":3,"bytes":0,"retransmits":-1,"jitter":0.000022628,"errors":1,"packets":11}]}"#;
    assert_eq!(written(&outgoing), format!("{head}{tail}"));

    // The caller's member goes between the first two pieces and counts.
    let member = r#""server_output_text":"abc""#;
    outgoing.server_output_bytes = Some(member.len() as u32);
    assert_eq!(outgoing.insert_before(), Some((1, member.len() as u32)));
    assert_eq!(written(&outgoing), format!("{head},{tail}"));
    let mut piece = [0; PIECE_BYTES];
    assert_eq!(outgoing.write_piece(0, &mut piece), Some(head.len() + 1));
    let whole = format!("{head},{member}{tail}");
    assert_eq!(outgoing.body_bytes(), Some(whole.len() as u32));
    assert!(serde_json::from_str::<Value>(&whole).is_ok());
}

const WIDEST: StreamDetail = {
    const MOST: u64 = u64::MAX;
    const PERCENTILES: Option<Percentiles> = Some(Percentiles {
        count: MOST,
        p50_ns: MOST,
        p90_ns: MOST,
        p99_ns: MOST,
        p999_ns: MOST,
        max_ns: MOST,
    });
    StreamDetail {
        jitter: Some(Jitter3550 { smoothed_ns: MOST, mean_ns: MOST }),
        delay_variation: PERCENTILES,
        delay_differences: PERCENTILES,
        reordering: Some(Reordering { count: MOST, extent_sum: MOST, max_extent: MOST }),
        loss_bursts: Some(LossBursts { count: MOST, longest: MOST }),
        socket_drops: Some(MOST),
        refusals: Some(MOST),
        gaps: PERCENTILES,
        round_trips: PERCENTILES,
        idle_round_trip_us: Some(u32::MAX),
        waits: Some(SenderWaits { busy_us: MOST, receive_window_us: MOST, send_buffer_us: MOST }),
        resent_bytes: Some(MOST),
        delivery_bytes_per_sec: Some(MOST),
        window_bytes: Some(MOST),
        buffer_bytes: Some(MOST),
        thread: Some(ThreadUse { wall_ns: MOST, cpu_ns: MOST, queued_ns: Some(MOST) }),
    }
};

#[test]
fn the_widest_numbers_fit_and_totals_beyond_a_frame_are_none() {
    let most = u64::MAX;
    let widest = ResultsStream {
        number: u32::MAX,
        bytes: most,
        retransmits: Some(most),
        jitter_ns: most,
        lost: most,
        omitted_lost: Some(most),
        packets: most,
        omitted_packets: Some(most),
        out_of_order: Some(most),
        duplicates: Some(most),
        too_late: Some(most),
        start_ns: Some(most),
        end_ns: Some(most),
    };
    let control = "\u{1}".repeat(MAX_CONGESTION);
    let long = "x".repeat(MAX_CONGESTION + 1);
    let mut outgoing = OutgoingResults {
        cpu: CpuUse {
            total_micropercent: most,
            user_micropercent: most,
            system_micropercent: most,
        },
        sender_has_retransmits: i8::MIN,
        congestion: Some(&control),
        stream_count: 1,
        stream: |_| widest,
        detail: Some(|_| WIDEST),
        concurrent_tests: None,
        jitter_of_batches: false,
        server_output_bytes: Some(0),
    };
    assert!(written(&outgoing).contains("\\u0001"));
    outgoing.congestion = Some(&long);
    outgoing.stream_count = 0;
    outgoing.server_output_bytes = None;
    let body = written(&outgoing);
    assert!(body.ends_with(",\"streams\":[]}") && !body.contains("congestion"));
    outgoing.server_output_bytes = Some(u32::MAX);
    assert_eq!(outgoing.body_bytes(), None);
}

/// A document that lacks nothing, with these details.
fn with_details(details: &str) -> String {
    with_stream("").replacen('{', &format!("{{\"details\":[{details}],"), 1)
}

#[test]
fn details_are_one_object_a_stream_behind_the_streams() {
    let percentiles = |count| {
        let (p50_ns, p90_ns, p99_ns, p999_ns, max_ns) = (1, 2, 3, 4, 5);
        Some(Percentiles { count, p50_ns, p90_ns, p99_ns, p999_ns, max_ns })
    };
    let details = [
        StreamDetail {
            jitter: Some(Jitter3550 { smoothed_ns: 6, mean_ns: 7 }),
            delay_variation: percentiles(8),
            delay_differences: percentiles(9),
            reordering: Some(Reordering { count: 10, extent_sum: 12, max_extent: 11 }),
            loss_bursts: Some(LossBursts { count: 13, longest: 14 }),
            socket_drops: Some(15),
            ..StreamDetail::default()
        },
        StreamDetail::default(),
        StreamDetail {
            refusals: Some(16),
            gaps: percentiles(17),
            round_trips: percentiles(18),
            idle_round_trip_us: Some(19),
            waits: Some(SenderWaits { busy_us: 22, receive_window_us: 20, send_buffer_us: 21 }),
            resent_bytes: Some(23),
            delivery_bytes_per_sec: Some(24),
            window_bytes: Some(25),
            buffer_bytes: Some(26),
            thread: Some(ThreadUse { wall_ns: 29, cpu_ns: 27, queued_ns: Some(28) }),
            ..StreamDetail::default()
        },
    ];
    let numbers = [1, 3, 4];
    let body = written(&OutgoingResults {
        cpu: CpuUse::default(),
        sender_has_retransmits: -1,
        congestion: None,
        stream_count: 3,
        stream: |index: usize| ResultsStream {
            number: numbers[index],
            duplicates: Some(0),
            too_late: Some(2),
            ..ResultsStream::default()
        },
        detail: Some(|index: usize| details[index]),
        concurrent_tests: None,
        jitter_of_batches: false,
        server_output_bytes: None,
    });
    let last_stream = r#"{"id":4,"bytes":0,"retransmits":-1,"jitter":0,"errors":0,"packets":0,"duplicates":0,"too_late":2}],"#;
    let told = [
        r#"{"id":1,"jitter_ns":6,"jitter_mean_ns":7,"#,
        r#""pdv_count":8,"pdv_p50_ns":1,"pdv_p90_ns":2,"pdv_p99_ns":3,"pdv_p999_ns":4,"pdv_max_ns":5,"#,
        r#""ipdv_count":9,"ipdv_p50_ns":1,"ipdv_p90_ns":2,"ipdv_p99_ns":3,"ipdv_p999_ns":4,"ipdv_max_ns":5,"#,
        r#""reordered":10,"extent_sum":12,"extent_max":11,"loss_bursts":13,"loss_burst_max":14,"#,
        r#""socket_drops":15},{"id":3},{"id":4,"refusals":16,"#,
        r#""gap_count":17,"gap_p50_ns":1,"gap_p90_ns":2,"gap_p99_ns":3,"gap_p999_ns":4,"gap_max_ns":5,"#,
        r#""rtt_count":18,"rtt_p50_ns":1,"rtt_p90_ns":2,"rtt_p99_ns":3,"rtt_p999_ns":4,"rtt_max_ns":5,"#,
        r#""rtt_idle_us":19,"busy_us":22,"rwnd_us":20,"sndbuf_us":21,"resent_bytes":23,"#,
        r#""delivery_bytes_per_sec":24,"window_bytes":25,"buffer_bytes":26,"#,
        r#""wall_ns":29,"cpu_ns":27,"queued_ns":28}]}"#,
    ];
    let expected = format!("{last_stream}\"details\":[{}", told.concat());
    assert!(body.ends_with(&expected), "{body}");
    let (_, told) = read_all(&body, &[7]).unwrap();
    assert_eq!(told, [(1, details[0]), (3, details[1]), (4, details[2])]);
}

#[test]
fn details_of_a_peer_are_whole_and_possible_or_unknown() {
    let none = StreamDetail::default();
    let percentiles = |p50_ns, p999_ns, max_ns| {
        Some(Percentiles { count: 1, p50_ns, p90_ns: p50_ns, p99_ns: p50_ns, p999_ns, max_ns })
    };
    let waits = SenderWaits { busy_us: 5, receive_window_us: 5, send_buffer_us: 5 };
    let cases = [
        ("", none),
        (r#""new":1,"new_object":{"jitter_ns":2},"jitter_ns":"1","jitter_mean_ns":2"#, none),
        (r#""jitter_ns":1"#, none),
        (r#""jitter_ns":1,"jitter_mean_ns":-1"#, none),
        (r#""JITTER_NS":1.9,"jitter_mean_ns":2e0,"jitter_ns":3"#, {
            let jitter = Some(Jitter3550 { smoothed_ns: 1, mean_ns: 2 });
            StreamDetail { jitter, ..none }
        }),
        (r#""pdv_count":1,"pdv_p50_ns":1,"pdv_p90_ns":1,"pdv_p99_ns":1,"pdv_max_ns":1"#, none),
        (
            r#""gap_count":0,"gap_p50_ns":1,"gap_p90_ns":1,"gap_p99_ns":1,"gap_p999_ns":1,"gap_max_ns":1"#,
            none,
        ),
        (
            r#""gap_count":1,"gap_p50_ns":9,"gap_p90_ns":8,"gap_p99_ns":7,"gap_p999_ns":9,"gap_max_ns":8"#,
            StreamDetail { gaps: percentiles(7, 8, 8), ..none },
        ),
        (r#""reordered":1,"extent_sum":2,"extent_max":3"#, {
            let reordering = Some(Reordering { count: 1, extent_sum: 2, max_extent: 2 });
            StreamDetail { reordering, ..none }
        }),
        (r#""busy_us":5,"rwnd_us":6,"sndbuf_us":7"#, StreamDetail { waits: Some(waits), ..none }),
        (r#""rtt_idle_us":4294967296"#, none),
        (r#""delivery_bytes_per_sec":9007199254740993"#, none),
        (
            r#""window_bytes":9007199254740992"#,
            StreamDetail { window_bytes: Some(1 << 53), ..none },
        ),
        (r#""queued_ns":1"#, none),
        (r#""wall_ns":3,"cpu_ns":4,"queued_ns":5"#, {
            let thread = Some(ThreadUse { wall_ns: 3, cpu_ns: 3, queued_ns: Some(3) });
            StreamDetail { thread, ..none }
        }),
    ];
    for (members, detail) in cases {
        let members = if members.is_empty() { "" } else { &format!(",{members}") };
        let (_, read) = read_all(&with_details(&format!("{{\"id\":3{members}}}")), &[5]).unwrap();
        assert_eq!(read, [(3, detail)], "{members}");
    }
}

#[test]
fn details_name_their_stream() {
    let numbers = |details: &str| {
        let (_, details) = read_all(&with_details(details), &[64])?;
        Ok(details.iter().map(|(number, _)| *number).collect::<Vec<_>>())
    };
    assert_eq!(
        numbers(r#"{"id":-1},{"id":99},{"id":1e99},{"id":99}"#),
        Ok(vec![0, 99, u32::MAX, 99])
    );
    let missing = Err(DocumentError::Missing { key: "id" });
    assert_eq!(numbers(r#"{"id":1},{"wall_ns":1}"#), missing);
    assert_eq!(numbers(r#"{"id":"1"}"#), missing);
    assert_eq!(numbers("1"), Err(DocumentError::WrongType { key: "details" }));
    // To a stock end the key says nothing, and what it says to us under it is no business of ours.
    assert_eq!(read(&with_details("1")).unwrap().streams, [STREAM]);
}

proptest! {
    #[test]
    fn details_survive_the_wire(
        numbers in prop::collection::vec(0..=(1_u64 << 53), 38),
        known in any::<u32>(),
        sizes in prop::collection::vec(1..50_usize, 1..5),
    ) {
        let mut numbers = numbers.into_iter();
        let mut next = || numbers.next().expect("enough of them");
        let known = |place: u32| known & 1 << place != 0;
        let mut percentiles = |place| {
            let mut ns = [next(), next(), next(), next(), next()];
            ns.sort_unstable();
            let [p50_ns, p90_ns, p99_ns, p999_ns, max_ns] = ns;
            let count = next().max(1);
            known(place).then_some(Percentiles { count, p50_ns, p90_ns, p99_ns, p999_ns, max_ns })
        };
        let (delay_variation, delay_differences) = (percentiles(0), percentiles(1));
        let (gaps, round_trips) = (percentiles(2), percentiles(3));
        let most = next();
        let detail = StreamDetail {
            jitter: known(4).then(|| Jitter3550 { smoothed_ns: next(), mean_ns: most }),
            delay_variation,
            delay_differences,
            reordering: known(5).then_some(Reordering {
                count: most,
                extent_sum: most,
                max_extent: most / 2,
            }),
            loss_bursts: known(6).then(|| LossBursts { count: next(), longest: most }),
            socket_drops: known(7).then(&mut next),
            refusals: known(8).then(&mut next),
            gaps,
            round_trips,
            idle_round_trip_us: known(9).then(|| next() as u32),
            waits: known(10).then_some(SenderWaits {
                busy_us: most,
                receive_window_us: most / 2,
                send_buffer_us: most / 3,
            }),
            resent_bytes: known(11).then(&mut next),
            delivery_bytes_per_sec: known(12).then(&mut next),
            window_bytes: known(13).then(&mut next),
            buffer_bytes: known(14).then(&mut next),
            thread: known(15).then_some(ThreadUse {
                wall_ns: most,
                cpu_ns: most / 3,
                queued_ns: known(16).then_some(most / 7),
            }),
        };
        let body = written(&OutgoingResults {
            cpu: CpuUse::default(),
            sender_has_retransmits: -1,
            congestion: None,
            stream_count: 2,
            stream: |index: usize| ResultsStream {
                number: index as u32 * 2 + 1,
                ..ResultsStream::default()
            },
            detail: Some(|index: usize| [detail, StreamDetail::default()][index]),
            concurrent_tests: None,
            jitter_of_batches: false,
            server_output_bytes: None,
        });
        prop_assert!(serde_json::from_str::<Value>(&body).is_ok());
        let (_, read) = read_all(&body, &sizes).unwrap();
        prop_assert_eq!(read, [(1, detail), (3, StreamDetail::default())]);
    }

    #[test]
    fn results_survive_the_wire(
        numbers in prop::collection::vec(0..(1_u64 << 62), 7),
        known in any::<[bool; 3]>(),
        cpu in any::<[u32; 3]>(),
        count in 1..=4_usize,
        sizes in prop::collection::vec(1..50_usize, 1..5),
    ) {
        let cpu = CpuUse {
            total_micropercent: cpu[0].into(),
            user_micropercent: cpu[1].into(),
            system_micropercent: cpu[2].into(),
        };
        let stream = |index: usize| ResultsStream {
            number: index as u32 + 1,
            bytes: numbers[0],
            retransmits: known[0].then_some(numbers[1] >> 31),
            jitter_ns: numbers[2],
            lost: numbers[3],
            omitted_lost: known[1].then_some(numbers[4]),
            packets: numbers[5],
            omitted_packets: known[1].then_some(numbers[6]),
            out_of_order: known[0].then_some(numbers[6].max(1)),
            duplicates: known[2].then_some(numbers[3]),
            too_late: known[1].then_some(numbers[4]),
            start_ns: known[2].then_some(0),
            end_ns: known[2].then_some(numbers[4]),
        };
        let body = written(&OutgoingResults {
            cpu,
            sender_has_retransmits: 1,
            congestion: None,
            stream_count: count,
            stream,
            detail: NO_DETAIL,
            concurrent_tests: None,
            jitter_of_batches: false,
            server_output_bytes: None,
        });
        prop_assert!(serde_json::from_str::<Value>(&body).is_ok());
        let mut reader = fed(ResultsReader::<4>::new(), body.as_bytes(), &sizes).unwrap();
        let received = reader.finish().unwrap();
        prop_assert_eq!(received.cpu, cpu);
        prop_assert_eq!(received.streams.len(), count);
        for (index, received) in received.streams.iter().enumerate() {
            prop_assert_eq!(*received, stream(index));
        }
    }

    #[test]
    fn damaged_documents_are_survived(
        which in 0..RESULTS.len(),
        (at, byte, cut) in (any::<prop::sample::Index>(), any::<u8>(), any::<prop::sample::Index>()),
    ) {
        let mut body = RESULTS[which].1.as_bytes().to_vec();
        let at = at.index(body.len());
        body[at] = byte;
        body.truncate(cut.index(body.len()) + 1);
        if let Ok(mut reader) = fed(ResultsReader::<4>::new(), &body, &[7]) {
            let _ = reader.finish();
        }
    }
}
