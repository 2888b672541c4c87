//! The laws of the harness hold for what real iperf3 releases wrote, so a law that breaks in a live
//! test is not the harness' own mistake.

use std::path::Path;

use linerate_tests::case::Case;
use linerate_tests::check::{Report, check};
use linerate_tests::tool::Tool;
use serde_json::Value;

const PAIRS: &[(&str, &str)] = &[
    ("tcp", "-t 2"),
    ("tcp-reverse", "-t 2 -R"),
    ("tcp-p2", "-t 2 -P 2 -b 200M"),
    ("tcp-bidir-p2", "-t 2 --bidir -P 2 -b 200M"),
    ("tcp-omit", "-t 2 -O 1 -b 200M"),
    ("tcp-bytes", "-n 50M -b 400M"),
    ("tcp-blocks", "-k 100 -b 400M"),
    ("udp", "-t 2 -u -b 10M"),
    ("udp-reverse", "-t 2 -u -b 10M -R"),
    ("udp-bidir", "-t 2 -u -b 10M --bidir"),
    ("udp-p2", "-t 2 -u -b 10M -P 2"),
    ("udp-omit", "-t 2 -O 1 -u -b 10M"),
    ("udp-64bit", "-t 1 -u -b 10M -l 1400"),
    ("old/3.12-tcp", "-t 2 -b 100M"),
    ("old/3.12-tcp-reverse", "-t 2 -b 100M -R"),
    ("old/3.12-tcp-p2", "-t 2 -b 50M -P 2"),
    ("old/3.12-tcp-bidir", "-t 2 -b 50M --bidir"),
    ("old/3.12-udp", "-t 2 -u -b 10M -l 1400"),
    ("old/3.12-udp-reverse", "-t 2 -u -b 10M -l 1400 -R"),
    ("old/3.12-udp-bidir", "-t 2 -u -b 10M -l 1400 --bidir"),
    ("old/3.17.1-tcp", "-t 2 -b 100M"),
    ("old/3.17.1-tcp-bidir", "-t 2 -b 50M --bidir"),
    ("old/3.17.1-udp-bidir", "-t 2 -u -b 10M -l 1400 --bidir"),
    ("old/3.20-tcp-p2", "-t 2 -b 50M -P 2"),
    ("old/3.20-tcp-reverse", "-t 2 -b 100M -R"),
    ("old/3.20-udp", "-t 2 -u -b 10M -l 1400"),
    ("old/3.20-udp-reverse", "-t 2 -u -b 10M -l 1400 -R"),
];

#[test]
fn recorded_pairs_obey_every_law() {
    let faults: Vec<String> = PAIRS
        .iter()
        .flat_map(|(name, line)| {
            let [client, server] = ["client", "server"].map(|end| recorded(name, end));
            let [client, server] = [&client, &server].map(|document| Report {
                tool: Tool::Iperf3,
                code: Some(0),
                document,
            });
            let broken = check(&Case::new(line), &client, &server);
            broken.into_iter().map(move |law| format!("{name}: {law}"))
        })
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// A wrong number in either document is noticed.
#[test]
fn changed_numbers_break_a_law() {
    let spoil: [(&str, &str); 6] = [
        ("client", "/end/sum_sent/bytes"),
        ("client", "/end/sum_received/bytes"),
        ("client", "/intervals/0/sum/bytes"),
        ("server", "/end/sum_received/bytes"),
        ("server", "/end/sum_received/packets"),
        ("server", "/intervals/1/sum/bits_per_second"),
    ];
    for (end, path) in spoil {
        let mut documents = ["client", "server"].map(|end| recorded("old/3.12-udp", end));
        let document = &mut documents[usize::from(end == "server")];
        let number = document.pointer_mut(path).unwrap_or_else(|| panic!("no {path}"));
        *number = Value::from(number.as_f64().unwrap_or(0.0) as u64 / 2);
        let [client, server] = [&documents[0], &documents[1]].map(|document| Report {
            tool: Tool::Iperf3,
            code: Some(0),
            document,
        });
        let broken = check(&Case::new("-t 2 -u -b 10M -l 1400"), &client, &server);
        assert!(!broken.is_empty(), "half of {path} at the {end} is not noticed");
    }
}

fn recorded(name: &str, end: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("recorded/{name}.{end}.json"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}
