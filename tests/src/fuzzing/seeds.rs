//! The beginning of the corpus: the recorded control connections of real iperf3 ends, brought into
//! the form that each target reads. `cargo xtask fuzz --seed-corpus` writes them; the same
//! recordings always make the same files.

use std::fs;
use std::path::{Path, PathBuf};

use linerate_core::protocol::cookie::Cookie;
use linerate_core::protocol::greeting::NamedGreeting;
use serde_json::Value;

/// One file of the corpus.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seed {
    /// The target it is for.
    pub target: &'static str,
    /// Its name.
    pub name: String,
    /// What is in it.
    pub bytes: Vec<u8>,
}

/// The folder with a folder for each target.
pub fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// All seeds, sorted by target and name; of equal ones the first.
pub fn seeds() -> Vec<Seed> {
    let mut seeds: Vec<Seed> = recordings().iter().flat_map(Recording::seeds).collect();
    seeds.extend(pairs());
    seeds.push(window());
    seeds.extend(named_greetings());
    seeds.extend(details());
    seeds.sort();
    let mut known = std::collections::HashSet::new();
    seeds.retain(|seed| known.insert((seed.target, seed.bytes.clone())));
    seeds
}

/// One control connection and what belongs to it.
struct Recording {
    name: String,
    events: Vec<Event>,
}

struct Event {
    control: bool,
    from_client: bool,
    kind: String,
    bytes: Vec<u8>,
}

fn recordings() -> Vec<Recording> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("recorded");
    let entries = fs::read_dir(&folder).expect("the recordings are part of the source");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a file").path()).collect();
    paths.sort();
    paths.iter().filter_map(|path| recording(path)).collect()
}

fn recording(path: &Path) -> Option<Recording> {
    let stem = path.file_stem()?.to_str()?.strip_prefix("control-")?;
    let text = fs::read_to_string(path).expect("a recording can be read");
    let document: Value = serde_json::from_str(&text).expect("a recording is JSON");
    let events = document["events"].as_array()?.iter().map(|event| Event {
        control: event["conn"] == "tcp0",
        from_client: event["dir"] == "C>S",
        kind: event["kind"].as_str().unwrap_or_default().to_owned(),
        bytes: unhex(event["hex"].as_str().unwrap_or_default()),
    });
    Some(Recording { name: stem.to_owned(), events: events.collect() })
}

fn unhex(text: &str) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).expect("a hexadecimal digit") as u8;
    text.as_bytes().chunks_exact(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

impl Recording {
    fn seeds(&self) -> Vec<Seed> {
        let mut seeds = self.documents();
        seeds.extend(self.greetings());
        seeds.push(self.seed("datagrams", "received", self.datagrams()));
        for from_client in [true, false] {
            let way = if from_client { "to-server" } else { "to-client" };
            seeds.push(self.seed("frames", way, self.frames(from_client)));
        }
        seeds.extend(self.sessions());
        seeds.retain(|seed| seed.bytes.len() > 1);
        seeds
    }

    fn seed(&self, target: &'static str, part: &str, bytes: Vec<u8>) -> Seed {
        Seed { target, name: format!("recorded-{}-{part}", self.name), bytes }
    }

    fn of_kind(&self, kind: &str) -> impl Iterator<Item = &Event> {
        self.events.iter().filter(move |event| event.kind == kind)
    }

    /// The first document of a connection is the client's parameters.
    fn documents(&self) -> Vec<Seed> {
        let documents = self.of_kind("json").enumerate();
        documents
            .map(|(index, event)| {
                let target = if index == 0 { "parameters" } else { "results" };
                let end = if event.from_client { "client" } else { "server" };
                self.seed(target, &format!("{end}-{index}"), event.bytes[4..].to_vec())
            })
            .collect()
    }

    fn greetings(&self) -> Vec<Seed> {
        let kinds = ["cookie", "udp-connect", "udp-connect-reply"];
        let of_kind = |kind| self.of_kind(kind).next().map(|event| event.bytes.clone());
        kinds
            .iter()
            .filter_map(|&kind| Some(self.seed("greetings", kind, of_kind(kind)?)))
            .collect()
    }

    /// The kind of stream, then for each datagram the time since the last, its first 16 bytes and
    /// that it was longer.
    fn datagrams(&self) -> Vec<u8> {
        if self.of_kind("udp-connect").next().is_none() {
            return Vec::new();
        }
        let mut bytes = vec![u8::from(self.name.contains("64bit")), 0, 0];
        for event in self.of_kind("data") {
            bytes.extend([3, 232, 16 << 2]);
            bytes.extend(&event.bytes[..event.bytes.len().min(16)]);
            bytes.push(1);
        }
        bytes
    }

    fn frames(&self, from_client: bool) -> Vec<u8> {
        let frames = self.of_kind("json").filter(|event| event.from_client == from_client);
        [0].into_iter().chain(frames.flat_map(|event| event.bytes.clone())).collect()
    }

    /// What each end said to the other; for two recordings also cut off after each message, and with
    /// each message twice.
    fn sessions(&self) -> Vec<Seed> {
        let mut seeds = Vec::new();
        for (end, from_client) in [("client", false), ("server", true)] {
            let said: Vec<&[u8]> =
                self.control(from_client).map(|event| &event.bytes[..]).collect();
            let session = |said: &[&[u8]]| match end {
                "client" => self.client_session(said),
                _ => server_session(said),
            };
            seeds.push(self.seed("sessions", end, session(&said)));
            if !VARIED.contains(&self.name.as_str()) {
                continue;
            }
            for at in 0..said.len() {
                let twice = [&said[..=at], &said[at..]].concat();
                seeds.push(self.seed(
                    "sessions",
                    &format!("{end}-until-{at}"),
                    session(&said[..at]),
                ));
                seeds.push(self.seed("sessions", &format!("{end}-twice-{at}"), session(&twice)));
            }
        }
        seeds
    }

    /// What the server said to the client, with the adapter's answers in between.
    fn client_session(&self, said: &[&[u8]]) -> Vec<u8> {
        let direction = match &self.name {
            name if name.contains("reverse") => 2,
            name if name.contains("bidir") => 4,
            _ => 0,
        };
        let parallel = if self.name.contains("p2") { 8 } else { 0 };
        let udp = u8::from(self.name.contains("udp"));
        let mut bytes = vec![0, udp | direction | parallel, 0, 1];
        for message in said {
            bytes.extend(raw(message));
            match message {
                [CREATE_STREAMS] => bytes.extend([CONNECTED; 4]),
                [TEST_RUNNING] => bytes.extend([5, 0, 0, 0, 0, 8, 5, 0, 0, 1, 0, 8, 5, 0, 0, 2, 0]),
                _ => {}
            }
        }
        bytes
    }

    fn control(&self, from_client: bool) -> impl Iterator<Item = &Event> {
        let said = |event: &&Event| !event.bytes.is_empty() && event.kind != "cookie";
        let way = move |event: &&Event| event.control && event.from_client == from_client;
        self.events.iter().filter(way).filter(said)
    }
}

/// What the client said to the server, with the adapter's answers in between.
fn server_session(said: &[&[u8]]) -> Vec<u8> {
    let mut bytes = vec![1, 1, 0];
    for (index, message) in said.iter().enumerate() {
        bytes.extend(raw(message));
        match (index, message) {
            (0, _) => bytes.extend([5, 2, 4, 4, 4, 4, 7, 0, 0, 0, 0]),
            // Asked for the last sample, and for its output.
            (_, [TEST_END]) if said.get(index + 1) != Some(message) => {
                bytes.extend([7, 0, 0, 1, 0, 6, 0, 0]);
            }
            _ => {}
        }
    }
    bytes
}

/// The recordings whose exchange is the longest, of either protocol.
const VARIED: [&str; 2] = ["tcp-getoutput", "udp-bidir-p2"];

const CREATE_STREAMS: u8 = 10;
const TEST_RUNNING: u8 = 2;
const TEST_END: u8 = 4;
/// The client's adapter has connected a stream.
const CONNECTED: u8 = 4;

/// The operation that feeds these bytes as they are.
fn raw(bytes: &[u8]) -> Vec<u8> {
    let parts = bytes.chunks(1023).map(|part| {
        let length = (part.len() as u16).to_be_bytes();
        [&[0xc0], &length[..], part].concat()
    });
    parts.collect::<Vec<_>>().concat()
}

/// Two ends wired to each other, in both kinds of weather, with every operation once.
fn pairs() -> Vec<Seed> {
    let mut seeds = Vec::new();
    for (weather, name) in [(2, "faulty"), (3, "fair")] {
        for (flags, test) in [(0, "tcp"), (0x53, "udp-reverse"), (0x6c, "tcp-bidir-omit")] {
            let head = [weather, flags, 0, 1, 0];
            let steps = [4, 8, 4, 5, 6, 4, 7, 8, 9, 1, 0];
            let bytes = [&head[..], &steps, &steps].concat();
            seeds.push(Seed { target: "sessions", name: format!("pair-{name}-{test}"), bytes });
        }
    }
    seeds
}

/// What linerate ends say of their streams, and what no honest end says of them.
fn details() -> Vec<Seed> {
    let received = r#"{"id":1,"jitter_ns":9130,"jitter_mean_ns":8211,"pdv_count":900,"pdv_p50_ns":7200,
        "pdv_p90_ns":14000,"pdv_p99_ns":30000,"pdv_p999_ns":81000,"pdv_max_ns":90001,"ipdv_count":899,
        "ipdv_p50_ns":5100,"ipdv_p90_ns":9000,"ipdv_p99_ns":21000,"ipdv_p999_ns":60000,"ipdv_max_ns":70001,
        "reordered":3,"extent_sum":7,"extent_max":4,"loss_bursts":2,"loss_burst_max":5,"socket_drops":6,
        "buffer_bytes":212992,"wall_ns":1000400100,"cpu_ns":31000200,"queued_ns":50100}"#;
    let sent = r#"{"id":3,"refusals":1,"gap_count":900,"gap_p50_ns":1000000,"gap_p90_ns":1010000,
        "gap_p99_ns":1100000,"gap_p999_ns":1200000,"gap_max_ns":1300001,"rtt_count":40,"rtt_p50_ns":52000,
        "rtt_p90_ns":61000,"rtt_p99_ns":70000,"rtt_p999_ns":70000,"rtt_max_ns":71000,"rtt_idle_us":40,
        "busy_us":1000000,"rwnd_us":12000,"sndbuf_us":4000,"resent_bytes":2896,
        "delivery_bytes_per_sec":117000000,"window_bytes":3145728,"buffer_bytes":2626560,
        "wall_ns":1000400100,"cpu_ns":31000200}"#;
    let impossible = r#"{"id":1,"gap_count":1,"gap_p50_ns":9,"gap_p90_ns":8,"gap_p99_ns":7,"gap_p999_ns":6,
        "gap_max_ns":5,"reordered":1,"extent_sum":1,"extent_max":1e30,"busy_us":1,"rwnd_us":2,"sndbuf_us":-3,
        "rtt_idle_us":1e10,"wall_ns":1,"cpu_ns":2,"queued_ns":3,"JITTER_NS":null,"jitter_mean_ns":"1"}"#;
    let stream = |id: u32| {
        format!(
            r#"{{"id":{id},"bytes":2,"retransmits":-1,"jitter":0,"errors":4,"packets":5,"duplicates":1,"too_late":0}}"#
        )
    };
    [
        ("details", format!("[{received},{sent}]")),
        ("details-impossible", format!(r#"[{impossible},{{"id":99}},{{"id":-1,"new":[{{}}]}}]"#)),
        ("details-without-id", r#"[{"wall_ns":1}]"#.into()),
        ("details-no-objects", "[1]".into()),
        ("details-no-array", r#"{"id":1}"#.into()),
    ]
    .map(|(name, details)| {
        let streams = [stream(1), stream(3)].join(",");
        let text = format!(
            r#"{{"cpu_util_total":1,"cpu_util_user":1,"cpu_util_system":0,"sender_has_retransmits":-1,
            "streams":[{streams}],"details":{details}}}"#
        );
        Seed { target: "results", name: name.into(), bytes: text.into_bytes() }
    })
    .to_vec()
}

/// What ends say that acknowledge greetings, whole, cut and too long, and copies of it among data.
fn named_greetings() -> Vec<Seed> {
    let cookie = Cookie::from_random([7; Cookie::LEN - 1]);
    let greeting = NamedGreeting { cookie, index: 258 };
    let (hello, reply) = (greeting.hello().to_vec(), greeting.reply().to_vec());
    let datagram = |bytes: &[u8]| [&[0, 1, (bytes.len() as u8) << 2], bytes, &[0]].concat();
    let next = [0, 1, 1, 0, 0, 0, 0, 0];
    let among = [&[0, 0, 0][..], &next, &datagram(&hello), &next, &datagram(&reply)].concat();
    [
        ("greetings", "named-hello", hello.clone()),
        ("greetings", "named-reply", reply.clone()),
        ("greetings", "named-cut", hello[..hello.len() - 1].to_vec()),
        ("greetings", "named-long", [&reply[..], &[0]].concat()),
        ("datagrams", "named-greetings-among-data", among),
    ]
    .map(|(target, name, bytes)| Seed { target, name: name.into(), bytes })
    .to_vec()
}

/// Datagrams at the edges of the window in which late ones are told from doubled ones.
fn window() -> Seed {
    let ahead_by_99 = [0, 1, 2, 99, 0, 0, 0, 0, 0];
    let back_by = |back: u8| [0, 1, 2, back.wrapping_neg(), 0, 0, 0, 0, 0];
    let steps = [ahead_by_99, back_by(64), back_by(63), back_by(63), back_by(65), back_by(0)];
    let bytes = [&[1, 0, 0][..], &steps.concat()].concat();
    Seed { target: "datagrams", name: "window-edges".into(), bytes }
}
