//! `--get-server-output` both ways with stock iperf3: as text and as a document, in the first test of
//! a server and in later ones, for few streams and for the most there can be.

use std::time::Duration;

use linerate_tests::client;
use linerate_tests::rows::run_all;
use linerate_tests::server::Server;
use linerate_tests::tool::Tool;
use serde_json::Value;

const PAIRS: [(Tool, Tool); 3] = [
    (Tool::Iperf3, Tool::Linerate),
    (Tool::Linerate, Tool::Iperf3),
    (Tool::Linerate, Tool::Linerate),
];

/// Options, and how many streams there are.
const LINES: [(&str, usize); 5] = [
    ("-t 1 -b 20M --bidir -P 4", 8),
    ("-t 1 -b 20M --bidir -P 4 -l 0", 8),
    ("-t 1 -b 1M -P 128", 128),
    ("-u -t 1 -b 1M -l 1000 --bidir -P 2", 4),
    ("-t 1 -b 20M", 1),
];

#[test]
fn output_of_the_server_comes_with_the_results() {
    if !Tool::Iperf3.is_here() {
        return;
    }
    let rows: Vec<_> =
        PAIRS.iter().flat_map(|&pair| [false, true].map(|is_json| (pair, is_json))).collect();
    run_all(&rows, |&((client, server), is_json)| {
        // A server of its own for each line but the first, which is asked twice.
        let options: &[&str] = if is_json { &["-J"] } else { &[] };
        for (line, streams) in LINES {
            let server = Server::start(server, options);
            for _ in 0..if streams == 8 { 2 } else { 1 } {
                one(client, &server, line, streams, is_json)
                    .map_err(|e| format!("{client} {line}, {server:?}: {e}"))?;
            }
        }
        Ok(())
    });
}

fn one(
    tool: Tool,
    server: &Server,
    line: &str,
    streams: usize,
    is_json: bool,
) -> Result<(), String> {
    let mut options: Vec<_> = line.split(' ').collect();
    options.extend(["--get-server-output", "-J"]);
    let ended = client::run(tool, "127.0.0.1", server.port(), &options, TIME_LIMIT)?;
    let document = ended.document()?;
    if ended.code != Some(0) || document.get("error").is_some() {
        return Err(ended.to_string());
    }
    let (text, json) = (&document["server_output_text"], &document["server_output_json"]);
    let found = match (text.as_str(), json.as_object()) {
        (Some(text), None) if !is_json => {
            if !text.starts_with("Accepted connection") && !text.contains("\nAccepted connection") {
                return Err(format!("no text of a server: {text}"));
            }
            text.matches("connected to").count()
        }
        (None, Some(_)) if is_json => json["end"]["streams"].as_array().map_or(0, Vec::len),
        _ => return Err(format!("text: {text}, document: {}", json != &Value::Null)),
    };
    if found == streams { Ok(()) } else { Err(format!("{found} streams of {streams}")) }
}

const TIME_LIMIT: Duration = Duration::from_secs(30);

/// Both ends' documents show the same of both sides: the server's part that it did not measure comes
/// from the client's results.
#[test]
fn document_of_a_server_carries_the_clients_half() {
    if !Tool::Iperf3.is_here() {
        return;
    }
    let lines = [
        "-t 1 -b 50M",
        "-t 1 -b 50M -R",
        "-t 1 -b 50M --bidir -P 2",
        "-u -t 1 -b 10M",
        "-u -t 1 -b 10M -R",
        "-u -t 1 -b 10M --bidir -P 2",
    ];
    let rows: Vec<_> = lines
        .iter()
        .flat_map(|line| [Tool::Iperf3, Tool::Linerate].map(|tool| (line, tool)))
        .collect();
    run_all(&rows, |(line, tool)| {
        let server = Server::start(Tool::Linerate, &["-J", "-1"]);
        let mut options: Vec<_> = line.split(' ').collect();
        options.push("-J");
        let client = client::run(*tool, "127.0.0.1", server.port(), &options, TIME_LIMIT)?;
        let (own, servers) = (client.document()?, server.wait()?.document()?);
        let sums = own["end"].as_object().ok_or("no end")?.iter();
        for (key, value) in sums.filter(|(key, _)| key.starts_with("sum")) {
            for member in ["bytes", "packets", "lost_packets"] {
                let found = &servers["end"][key][member];
                if found != &value[member] || member == "bytes" && found == 0 {
                    return Err(format!(
                        "{tool} {line}: {member} of {key} is {found} there: {value}"
                    ));
                }
            }
        }
        let cpu = &servers["end"]["cpu_utilization_percent"]["remote_total"];
        if cpu.as_f64() > Some(0.0) { Ok(()) } else { Err(format!("{tool} {line}: {cpu}")) }
    });
}
