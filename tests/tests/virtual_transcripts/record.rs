//! A recorded control connection: what each end said when, and when its data streams came and went.

use std::path::PathBuf;

use linerate_core::test::End;
use linerate_core::time::Instant;
use serde_json::Value;

/// One control connection of a record.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    /// Its file and connection, for messages.
    pub(crate) name: String,
    /// What happened, in order.
    pub(crate) steps: Vec<(Instant, Step)>,
    client_version: String,
    server_version: String,
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// This end said this on the control connection.
    Said(End, Said),
    /// This end closed the control connection.
    Closed(End),
    /// The client opened a data stream.
    StreamOpened,
    /// This end closed the data stream of this place.
    StreamClosed(End, usize),
}

/// Something that was said, with its bytes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Said {
    /// The cookie.
    Cookie(Vec<u8>),
    /// A control code.
    Code(u8),
    /// The numbers after an error.
    Error(Vec<u8>),
    /// A document with its length.
    Document(Vec<u8>, Value),
}

impl Said {
    /// The bytes on the wire.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Code(byte) => vec![*byte],
            Self::Cookie(bytes) | Self::Error(bytes) | Self::Document(bytes, _) => bytes.clone(),
        }
    }
}

impl Record {
    /// Everything that `end` said, in order.
    pub(crate) fn said(&self, end: End) -> impl Iterator<Item = &Said> {
        self.steps.iter().filter_map(move |(_, step)| match step {
            Step::Said(from, said) if *from == end => Some(said),
            _ => None,
        })
    }

    /// The client's parameters, with their length.
    pub(crate) fn parameters(&self) -> Option<&[u8]> {
        self.said(End::Client).find_map(|said| match said {
            Said::Document(bytes, _) => Some(&bytes[..]),
            _ => None,
        })
    }

    /// Whether `end` is a release from before most of the keys of the documents existed.
    pub(crate) fn is_old(&self, end: End) -> bool {
        let version = if end == End::Client { &self.client_version } else { &self.server_version };
        version.starts_with("3.1.")
    }
}

/// Every control connection of every recorded file.
pub(crate) fn all() -> Vec<Record> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("recorded");
    let entries = std::fs::read_dir(&folder).expect("the records are part of the repository");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
    files.sort();
    let is_control = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("control-") && name.ends_with(".json")
    };
    files.iter().filter(|path| is_control(path)).flat_map(read).collect()
}

fn read(path: &PathBuf) -> Vec<Record> {
    let text = std::fs::read_to_string(path).expect("a readable record");
    let file: Value = serde_json::from_str(&text).expect("a record is JSON");
    let events = file["events"].as_array().expect("a record has events");
    let of = |event: &Value, key: &str| event[key].as_str().unwrap_or_default().to_owned();
    let is_control = |event: &&Value| of(event, "kind") == "state" && of(event, "dir") == "S>C";
    let mut controls: Vec<String> =
        events.iter().filter(is_control).map(|event| of(event, "conn")).collect();
    controls.dedup();
    controls.sort();
    controls.dedup();
    let name = path.file_stem().expect("it has a name").to_string_lossy();
    controls
        .iter()
        .map(|control| Record {
            name: format!("{name} {control}"),
            steps: steps(events, control),
            client_version: of(&file, "client_version"),
            server_version: of(&file, "server_version"),
        })
        .collect()
}

fn steps(events: &[Value], control: &str) -> Vec<(Instant, Step)> {
    let text = |event: &Value, key: &str| event[key].as_str().unwrap_or_default().to_owned();
    let cookie = |event: &&Value| event["conn"] == control && event["kind"] == "cookie";
    let own_cookie = events.iter().find(cookie).map(|event| text(event, "hex"));
    let mut streams: Vec<String> = Vec::new();
    let mut steps = Vec::new();
    for event in events {
        let Some(t_ms) = event["t_ms"].as_f64() else { continue };
        let at = Instant::from_nanos(1_000_000_000 + (t_ms * 1e6) as u64);
        let end = if event["dir"] == "C>S" { End::Client } else { End::Server };
        let (kind, hex) = (text(event, "kind"), text(event, "hex"));
        let connection = text(event, "conn");
        let place = streams.iter().position(|stream| *stream == connection);
        let is_own = connection == control;
        let step = match kind.as_str() {
            "FIN" | "RST" if is_own => Step::Closed(end),
            _ if is_own => match said(&kind, &hex) {
                Some(said) => Step::Said(end, said),
                None => continue,
            },
            "cookie" if Some(&hex) == own_cookie.as_ref() => opened(&mut streams, connection),
            "udp-connect" => opened(&mut streams, connection),
            "FIN" | "RST" if place.is_some() => Step::StreamClosed(end, place.unwrap_or(0)),
            _ => continue,
        };
        steps.push((at, step));
    }
    steps
}

fn opened(streams: &mut Vec<String>, connection: String) -> Step {
    streams.push(connection);
    Step::StreamOpened
}

fn said(kind: &str, hex: &str) -> Option<Said> {
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Vec<u8> = hex.as_bytes().chunks(2).filter_map(byte).collect();
    Some(match kind {
        "cookie" => Said::Cookie(bytes),
        "state" => Said::Code(*bytes.first()?),
        "server-error-payload" => Said::Error(bytes),
        "json" => {
            let document = serde_json::from_slice(bytes.get(4..)?).expect("recorded JSON");
            Said::Document(bytes, document)
        }
        _ => return None,
    })
}
