//! What the reports of an SCTP test look like: those of TCP under another name, without what only TCP
//! has. No machine of this project has SCTP, so the records are made up.

#[allow(dead_code, reason = "others use the rest of it")]
#[path = "report_support/records.rs"]
mod records;

use linerate::report::json::{JsonOptions, JsonReport};
use linerate::report::text::{TextOptions, TextReport};
use linerate_core::test::{End, Protocol, TestSettings};
use serde_json::Value;

const ENDS: [End; 2] = [End::Client, End::Server];

#[test]
fn text_has_plain_headers_and_names_the_protocol() {
    for end in ENDS {
        let events = records::complete(TestSettings::new(Protocol::Sctp), end);
        let options = TextOptions { verbose: true, ..TextOptions::default() };
        let mut report = TextReport::new(options);
        let text: String = events.iter().map(|event| report.handle(event)).collect();
        assert!(text.contains("protocol: SCTP, 1 streams, 65536 byte blocks"), "{text}");
        assert!(text.contains("[ ID] Interval           Transfer     Bitrate\n"), "{text}");
        for of_others in ["TCP MSS", "Jitter", "Datagrams", "Cwnd"] {
            assert!(!text.contains(of_others), "{of_others}: {text}");
        }
    }
}

#[test]
fn documents_name_the_protocol_and_count_bytes_as_tcp_does() {
    for end in ENDS {
        let events = records::complete(TestSettings::new(Protocol::Sctp), end);
        let mut report = JsonReport::new(JsonOptions::default());
        events.iter().for_each(|event| report.handle(event));
        let document = report.finish();
        let start = &document["start"];
        assert_eq!(start["test_start"]["protocol"], "SCTP");
        assert_eq!(start["test_start"]["blksize"], 65_536);
        assert_eq!(start["tcp_mss_default"], Value::Null, "{end:?}");
        let sum = &document["end"]["sum_received"];
        assert!(sum["bytes"].as_u64() > Some(0), "{document}");
        assert_eq!(sum["jitter_ms"], Value::Null, "{document}");
        assert!(document["end"]["streams"][0]["sender"].is_object(), "{document}");
    }
}
