//! Parameters in both directions, against what stock clients send.

extern crate std;
use std::format;
use std::string::{String, ToString};
use std::vec;

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::protocol::code::error_number as number;
use crate::protocol::extension::{Features, Offer};
use crate::protocol::json::DocumentError;
use crate::protocol::recorded::PARAMETERS;
use crate::protocol::testing::{fed, written};
use crate::test::{Direction, Limits, Offload, Protocol, TestSettings};
use crate::units::BitsPerSec;

fn read(body: &str) -> Result<ReceivedParameters<1024>, DocumentError> {
    fed(ParametersReader::<1024>::new(), body.as_bytes(), &[4096])?.finish()
}

fn settings(body: &str) -> TestSettings {
    read(body).unwrap_or_else(|error| panic!("{body}: {error}")).settings
}

/// What a client with these settings and texts would send.
fn sent_again(received: &ReceivedParameters<1024>) -> String {
    let text = &received.text;
    written(&OutgoingParameters {
        settings: &received.settings,
        text: &ClientText {
            title: text.title(),
            extra_data: text.extra_data(),
            congestion: text.congestion(),
            auth_token: text.auth_token(),
        },
        client_version: text.client_version().unwrap_or_default(),
        extension: received.extension,
    })
}

#[test]
fn recorded_documents_are_written_again_byte_for_byte() {
    for (name, body) in PARAMETERS {
        let received = read(body).unwrap();
        // Old clients leave keys out that are always there today.
        if !name.contains("old-client") {
            assert_eq!(sent_again(&received), *body, "{name}");
        }
    }
}

#[test]
fn recorded_documents_read_the_same_in_any_chunking() {
    for (name, body) in PARAMETERS {
        let whole = format!("{:?}", read(body).unwrap());
        for sizes in [vec![1], vec![2], vec![3, 1, 7], vec![5, 64, 1]] {
            let mut reader = fed(ParametersReader::<1024>::new(), body.as_bytes(), &sizes).unwrap();
            assert_eq!(format!("{:?}", reader.finish().unwrap()), whole, "{name} {sizes:?}");
        }
    }
}

#[test]
fn serde_json_reads_the_same_values() {
    for (name, body) in PARAMETERS {
        let received = read(body).unwrap();
        let (settings, text) = (received.settings, &received.text);
        let value: Value = serde_json::from_str(body).unwrap();
        let integer = |key: &str| value[key].as_u64().unwrap_or(0);
        let ours = [
            ("omit", settings.omit_secs.into()),
            ("time", settings.limits.seconds.unwrap_or(0).into()),
            ("num", settings.limits.bytes.unwrap_or(0)),
            ("blockcount", settings.limits.blocks.unwrap_or(0)),
            ("MSS", settings.mss_bytes.unwrap_or(0).into()),
            ("parallel", settings.parallel.into()),
            ("window", settings.window_bytes.unwrap_or(0).into()),
            ("len", settings.block_bytes.into()),
            ("bandwidth", settings.bitrate.map_or(0, |rate| rate.0)),
            ("fqrate", settings.fq_rate.map_or(0, |rate| rate.0)),
            ("TOS", settings.tos.into()),
            ("udp_counters_64bit", settings.counters_64bit.into()),
            ("repeating_payload", settings.repeating_payload.into()),
            ("get_server_output", settings.server_output.into()),
            ("gso", settings.offload.gso.into()),
        ];
        for (key, ours) in ours {
            assert_eq!(ours, integer(key), "{name} {key}");
        }
        assert_eq!(settings.protocol == Protocol::Udp, value.get("udp").is_some(), "{name}");
        let reverse = settings.direction == Direction::Reverse;
        assert_eq!(reverse, value.get("reverse").is_some(), "{name}");
        for (key, ours) in [
            ("title", text.title()),
            ("extra_data", text.extra_data()),
            ("congestion", text.congestion()),
            ("authtoken", text.auth_token()),
            ("client_version", text.client_version()),
        ] {
            assert_eq!(ours, value[key].as_str(), "{name} {key}");
        }
    }
}

#[test]
fn a_client_with_every_option_sends_every_key_in_order() {
    let settings = TestSettings {
        direction: Direction::Bidirectional,
        parallel: 128,
        omit_secs: 3,
        limits: Limits { seconds: None, bytes: Some(u64::MAX), blocks: Some(7) },
        block_bytes: 16,
        bitrate: Some(BitsPerSec(1_000_000)),
        burst: Some(10),
        fq_rate: Some(BitsPerSec(5)),
        window_bytes: Some(65_536),
        mss_bytes: Some(1400),
        no_delay: true,
        tos: 184,
        flow_label: Some(9),
        counters_64bit: true,
        repeating_payload: true,
        zero_copy: true,
        skip_rx_copy: true,
        dont_fragment: true,
        server_output: true,
        mptcp: true,
        server_affinity: Some(1),
        offload: Offload { gso: true, gro: true },
        ..TestSettings::new(Protocol::Udp)
    };
    let text = ClientText {
        title: Some("a \"b\""),
        extra_data: Some("\u{1}"),
        congestion: Some("cubic"),
        auth_token: Some("ab+/="),
    };
    let body = written(&OutgoingParameters {
        settings: &settings,
        text: &text,
        client_version: "3.21",
        extension: Some(Offer { version: 1, features: Features::from_bits(5) }),
    });
    // 65507 / 16 would be 4094 datagrams; a kernel cuts at most 128 of 16 bytes: 2048.
    let expected = r#"{"udp":true,"omit":3,"server_affinity":1,"time":0,"num":18446744073709551615,"blockcount":7,"MSS":1400,"nodelay":true,"parallel":128,"bidirectional":true,"mptcp":true,"window":65536,"len":16,"bandwidth":1000000,"fqrate":5,"pacing_timer":1000,"burst":10,"gso":1,"gso_dg_size":16,"gso_bf_size":2048,"gro":1,"gro_bf_size":65507,"TOS":184,"flowlabel":9,"title":"a \"b\"","extra_data":"\u0001","congestion":"cubic","get_server_output":1,"udp_counters_64bit":1,"repeating_payload":1,"zerocopy":1,"dont_fragment":1,"authtoken":"ab+/=","skip_rx_copy":1,"client_version":"3.21","linerate":{"version":1,"features":5}}"#;
    assert_eq!(body, expected);

    let received = read(&body).unwrap();
    // iperf3 keeps such numbers within 64 signed bits.
    let limits = Limits { bytes: Some(i64::MAX as u64), ..settings.limits };
    assert_eq!(received.settings, TestSettings { limits, ..settings });
    assert_eq!(received.extension, Some(Offer { version: 1, features: Features::from_bits(5) }));
    assert_eq!(received.text.title(), Some("a \"b\""));
    assert_eq!(received.text.extra_data(), Some("\u{1}"));
}

#[test]
fn absent_keys_have_meanings() {
    let tcp = TestSettings::new(Protocol::Tcp);
    for empty in ["{}", "[]", " [ {\"time\":5} ] "] {
        assert_eq!(settings(empty), tcp, "{empty}");
    }
    // A stock server runs a UDP test without a rate as fast as it can.
    let udp = TestSettings { bitrate: None, ..TestSettings::new(Protocol::Udp) };
    assert_eq!(settings("{\"udp\":false}"), udp);
    assert_eq!(settings("{\"tcp\":true,\"udp\":true}"), udp);
    assert_eq!(settings("{\"udp\":true,\"len\":0}"), udp);

    let limits = |body| {
        let Limits { seconds, bytes, blocks } = settings(body).limits;
        (seconds, bytes, blocks)
    };
    assert_eq!(limits("{\"num\":5}"), (None, Some(5), None));
    assert_eq!(limits("{\"blockcount\":5}"), (None, None, Some(5)));
    assert_eq!(limits("{\"num\":0,\"blockcount\":0}"), (Some(10), None, None));
    assert_eq!(limits("{\"time\":0,\"num\":0}"), (None, None, None));
    assert_eq!(limits("{\"time\":7,\"num\":9}"), (Some(7), Some(9), None));

    let zeros =
        "{\"window\":0,\"MSS\":0,\"bandwidth\":0,\"fqrate\":0,\"TOS\":0,\"gso\":0,\"gro\":0}";
    assert_eq!(settings(zeros), tcp);
}

#[test]
fn an_unfinished_document_has_no_defaults() {
    let nothing = ParametersReader::<8>::new().finish().map(|_| ());
    assert_eq!(nothing, Err(DocumentError::Syntax { offset: 0 }));
    let half = fed(ParametersReader::<8>::new(), b"{\"time\":5", &[3]).map(|_| ());
    assert_eq!(half, Err(DocumentError::Syntax { offset: 9 }));
}

#[test]
fn both_directions_at_once_beat_reverse() {
    let both = settings("{\"bidirectional\":true,\"reverse\":true}");
    assert_eq!(both.direction, Direction::Bidirectional);
    assert_eq!(settings("{\"reverse\":false}").direction, Direction::Reverse);
}

#[test]
fn values_out_of_range_have_iperf3s_numbers() {
    let cases = [
        ("omit", "-1", number::OMIT),
        ("omit", "601", number::OMIT),
        ("server_affinity", "1025", number::AFFINITY),
        ("time", "-1", number::DURATION),
        ("time", "86401", number::DURATION),
        ("time", "4294967295", number::DURATION),
        ("time", "1e12", number::DURATION),
        ("num", "-1", number::RECV_PARAMS),
        ("blockcount", "-5", number::RECV_PARAMS),
        ("MSS", "32768", number::MSS),
        ("parallel", "0", number::STREAM_COUNT),
        ("parallel", "129", number::STREAM_COUNT),
        ("parallel", "-3", number::STREAM_COUNT),
        ("parallel", "65537", number::STREAM_COUNT),
        ("parallel", "4294967297", number::STREAM_COUNT),
        ("parallel", "-4294967295", number::STREAM_COUNT),
        ("window", "536870913", number::WINDOW),
        ("window", "-1", number::WINDOW),
        ("len", "0", number::BLOCK_SIZE),
        ("len", "1048577", number::BLOCK_SIZE),
        ("bandwidth", "-1", number::RECV_PARAMS),
        ("fqrate", "-1", number::RECV_PARAMS),
        ("pacing_timer", "-1", number::RECV_PARAMS),
        ("burst", "0", number::BURST),
        ("burst", "1001", number::BURST),
        ("gso", "-1", number::RECV_PARAMS),
        ("gso_dg_size", "-1", number::RECV_PARAMS),
        ("gso_bf_size", "-1", number::RECV_PARAMS),
        ("gro", "2", number::RECV_PARAMS),
        ("gro_bf_size", "-1", number::RECV_PARAMS),
        ("TOS", "256", number::TOS),
        ("flowlabel", "0", number::FLOW_LABEL),
        ("flowlabel", "1048576", number::FLOW_LABEL),
    ];
    for (key, value, number) in cases {
        let error = read(&format!("{{\"{key}\":{value}}}")).unwrap_err();
        let value = value.parse::<f64>().unwrap() as i64;
        assert_eq!(error, DocumentError::OutOfRange { key, value, number });
    }
    for value in [15, 65_508, -1] {
        let error = read(&format!("{{\"udp\":true,\"len\":{value}}}")).unwrap_err();
        let number = number::UDP_BLOCK_SIZE;
        assert_eq!(error, DocumentError::OutOfRange { key: "len", value, number });
    }
    for value in [0, 1_048_577] {
        let error = read(&format!("{{\"sctp\":true,\"len\":{value}}}")).unwrap_err();
        let number = number::BLOCK_SIZE;
        assert_eq!(error, DocumentError::OutOfRange { key: "len", value, number });
    }
}

#[test]
fn sctp_beats_udp_which_beats_tcp() {
    for (keys, protocol, block_bytes) in [
        (r#"{"tcp":true,"udp":true,"sctp":true}"#, Protocol::Sctp, 65_536),
        (r#"{"sctp":false}"#, Protocol::Sctp, 65_536),
        (r#"{"tcp":true,"udp":true}"#, Protocol::Udp, 1460),
        (r#"{"tcp":true}"#, Protocol::Tcp, 131_072),
        ("{}", Protocol::Tcp, 131_072),
    ] {
        let settings = settings(keys);
        assert_eq!((settings.protocol, settings.block_bytes), (protocol, block_bytes), "{keys}");
        assert_eq!(settings.bitrate, None, "{keys}");
    }
}

#[test]
fn an_sctp_client_says_so_in_the_place_of_the_protocol() {
    let document = sent_again(&read(r#"{"sctp":true,"len":1000,"time":3}"#).unwrap());
    let start = r#"{"sctp":true,"omit":0,"time":3,"num":0,"blockcount":0,"parallel":1,"len":1000,"#;
    assert!(document.starts_with(start), "{document}");
}

#[test]
fn texts_that_do_not_fit_are_left_out() {
    let body = "{\"title\":\"0123456789\",\"extra_data\":\"0123456\",\"client_version\":\"3.9\"}";
    let mut reader = fed(ParametersReader::<12>::new(), body.as_bytes(), &[3]).unwrap();
    let text = reader.finish().unwrap().text;
    assert_eq!(text.title(), Some("0123456789"));
    assert_eq!((text.extra_data(), text.client_version()), (None, None));
    assert!(text.did_not_fit());

    let mut reader = fed(ParametersReader::<8>::new(), body.as_bytes(), &[3]).unwrap();
    let text = reader.finish().unwrap().text;
    assert_eq!((text.title(), text.extra_data()), (None, Some("0123456")));
    assert!(text.did_not_fit());
    assert!(!read(body).unwrap().text.did_not_fit());
}

#[test]
fn texts_longer_than_a_piece_span_pieces() {
    let settings = TestSettings::new(Protocol::Tcp);
    let title = "\"\\é\n".repeat(700);
    let text = ClientText { title: Some(&title), ..ClientText::default() };
    let outgoing = OutgoingParameters {
        settings: &settings,
        text: &text,
        client_version: "3.21",
        extension: None,
    };
    let body = written(&outgoing);
    let value: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(value["title"].as_str(), Some(&title[..]));
    let mut reader = fed(ParametersReader::<4096>::new(), body.as_bytes(), &[1]).unwrap();
    assert_eq!(reader.finish().unwrap().text.title(), Some(&title[..]));
}

#[test]
fn text_that_is_no_utf8_is_refused_where_it_is_kept() {
    let fed = |body: &[u8]| fed(ParametersReader::<64>::new(), body, &[2]).map(|_| ());
    assert_eq!(fed(b"{\"title\":\"\xe9\"}"), Err(DocumentError::Syntax { offset: 11 }));
    assert_eq!(fed(b"{\"other\":\"\xe9\",\"\xff\":1}"), Ok(()));
}

#[test]
fn an_offer_that_cannot_be_spoken_is_none() {
    let offer = |value: &str| read(&format!("{{\"linerate\":{value}}}")).map(|r| r.extension);
    assert_eq!(offer("{}"), Ok(None));
    assert_eq!(offer("{\"version\":0,\"features\":1}"), Ok(None));
    assert_eq!(offer("{\"version\":-1}"), Ok(None));
    let offered = |version, bits| Some(Offer { version, features: Features::from_bits(bits) });
    assert_eq!(offer("{\"version\":3,\"later\":{\"a\":[]}}"), Ok(offered(3, 0)));
    assert_eq!(
        offer("{\"features\":4294967295,\"version\":1e20}"),
        Ok(offered(u32::MAX, u32::MAX))
    );
    assert_eq!(offer("true"), Err(DocumentError::WrongType { key: "linerate" }));
}

proptest! {
    #[test]
    fn settings_in_range_survive_the_wire(
        (udp, reverse, parallel, omit) in (any::<bool>(), any::<bool>(), 1..=128_u16, 0..=600_u32),
        (bytes, block, rate) in (any::<Option<u32>>(), 16..=65_507_u32, 1..u64::from(u32::MAX)),
        (burst, tos, flow) in (prop::option::of(1..=1000_u16), any::<u8>(), 1..=1_048_575_u32),
        (title, sizes) in (any::<String>(), prop::collection::vec(1..50_usize, 1..5)),
    ) {
        let settings = TestSettings {
            direction: if reverse { Direction::Reverse } else { Direction::Bidirectional },
            parallel,
            omit_secs: omit,
            limits: Limits {
                seconds: None,
                bytes: bytes.filter(|&bytes| bytes != 0).map(u64::from),
                blocks: None,
            },
            block_bytes: block,
            bitrate: Some(BitsPerSec(rate)),
            burst,
            tos,
            flow_label: Some(flow),
            ..TestSettings::new(if udp { Protocol::Udp } else { Protocol::Tcp })
        };
        let text = ClientText { title: Some(&title), ..ClientText::default() };
        let client_version = "3.21";
        let outgoing = OutgoingParameters {
            settings: &settings, text: &text, client_version, extension: None,
        };
        let body = written(&outgoing);
        let mut reader = fed(ParametersReader::<8192>::new(), body.as_bytes(), &sizes).unwrap();
        let received = reader.finish().unwrap();
        prop_assert_eq!(received.settings, settings);
        prop_assert_eq!(received.text.title().map(ToString::to_string), Some(title));
    }

    #[test]
    fn damaged_documents_are_survived(
        which in 0..PARAMETERS.len(),
        (at, byte, cut) in (any::<prop::sample::Index>(), any::<u8>(), any::<prop::sample::Index>()),
    ) {
        let mut body = PARAMETERS[which].1.as_bytes().to_vec();
        let at = at.index(body.len());
        body[at] = byte;
        body.truncate(cut.index(body.len()) + 1);
        if let Ok(mut reader) = fed(ParametersReader::<64>::new(), &body, &[7]) {
            let _ = reader.finish();
        }
    }
}
