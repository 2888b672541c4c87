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
use crate::report::CpuUse;

fn read(body: &str) -> Result<ReceivedResults<4>, DocumentError> {
    fed(ResultsReader::<4>::new(), body.as_bytes(), &[4096])?.finish()
}

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
    start_ns: None,
    end_ns: None,
};

#[test]
fn recorded_documents_read_the_same_in_any_chunking() {
    for (name, body) in RESULTS {
        let whole = format!("{:?}", read(body).unwrap());
        for sizes in [vec![1], vec![2], vec![3, 1, 7], vec![5, 64, 1]] {
            let reader = fed(ResultsReader::<4>::new(), body.as_bytes(), &sizes).unwrap();
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
                ResultsWithOutput { reader: &mut reader, sink: &mut sink },
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
    let result = fed(ResultsWithOutput { reader: &mut reader, sink: &mut sink }, &body, &[64]);
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

proptest! {
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
            start_ns: known[2].then_some(0),
            end_ns: known[2].then_some(numbers[4]),
        };
        let body = written(&OutgoingResults {
            cpu,
            sender_has_retransmits: 1,
            congestion: None,
            stream_count: count,
            stream,
            concurrent_tests: None,
            jitter_of_batches: false,
            server_output_bytes: None,
        });
        prop_assert!(serde_json::from_str::<Value>(&body).is_ok());
        let reader = fed(ResultsReader::<4>::new(), body.as_bytes(), &sizes).unwrap();
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
        if let Ok(reader) = fed(ResultsReader::<4>::new(), &body, &[7]) {
            let _ = reader.finish();
        }
    }
}
