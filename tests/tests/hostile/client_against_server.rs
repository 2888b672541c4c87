//! Hostile clients. All of them meet the same server; after each, an honest stock client is served.

use std::net::SocketAddr;
use std::time::Duration;

use linerate_tests::client;
use linerate_tests::rows::run_all;
use linerate_tests::script::{Peer, Step, frame, honest_client};
use linerate_tests::server::Server;
use linerate_tests::tool::Tool;

/// What a script does once its steps are over.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Then {
    /// It goes away.
    Close,
    /// It stays, and the server has to end it.
    Stay,
}

struct Row {
    name: String,
    steps: Vec<Step>,
    then: Then,
}

#[test]
fn client_that_leaves_at_any_point_is_forgotten() {
    let whole = honest_client();
    let mut rows: Vec<Row> = (0..whole.len())
        .map(|kept| row(format!("closes after {kept} steps"), whole[..kept].to_vec(), Then::Close))
        .collect();
    rows.push(row(
        "closes within the cookie",
        vec![Step::Send(b"half of a cookie, no".to_vec())],
        Then::Close,
    ));
    rows.push(row("closes within a length", after_cookie(Step::Send(vec![0, 0])), Then::Close));
    let half = Step::Send([&[0, 0, 0, 90], &b"{\"tcp\":true,"[..]].concat());
    rows.push(row("closes within the parameters", after_cookie(half), Then::Close));
    meet(rows);
}

#[test]
fn client_that_sends_garbage_at_any_point_is_ended() {
    let whole = honest_client();
    // After the last step there is nothing left to end.
    let rows = (0..whole.len() - 1).map(|kept| {
        let steps = [&whole[..kept], &[Step::Send(vec![0xaa; 64])]].concat();
        row(format!("garbage after {kept} steps"), steps, Then::Stay)
    });
    meet(rows.collect());
}

#[test]
fn client_of_another_protocol_is_ended() {
    let http = b"GET / HTTP/1.1\r\nHost: example.net\r\nUser-Agent: curl/8\r\n\r\n";
    let tls = [&[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3][..], &[0x5c; 500]].concat();
    meet(vec![
        row("HTTP", vec![Step::Send(http.to_vec())], Then::Stay),
        row("TLS", vec![Step::Send(tls)], Then::Stay),
        row("zeros", vec![Step::Send(vec![0; 4096])], Then::Stay),
    ]);
}

#[test]
fn client_with_impossible_parameters_is_refused() {
    let documents = [
        ("nothing at all", String::new()),
        ("no JSON", "hello, I would like a test".into()),
        ("cut off", r#"{"tcp":true,"time":"#.into()),
        ("not UTF-8", String::from("{\"tcp\":true,\"title\":\"\u{fffd}\",")),
        ("nested too deeply", "[".repeat(8000)),
        ("nested too deeply within", format!(r#"{{"tcp":true,"x":{}"#, r#"{"x":"#.repeat(1000))),
        ("negative stream count", parameters(r#""parallel":-3"#)),
        ("no streams", parameters(r#""parallel":0"#)),
        ("too many streams", parameters(r#""parallel":100000"#)),
        ("not a number", parameters(r#""parallel":NaN"#)),
        ("time is not a number", parameters(r#""time":NaN"#)),
        ("negative time", parameters(r#""time":-1"#)),
        ("huge time", parameters(r#""time":1e300"#)),
        ("negative block", parameters(r#""len":-1"#)),
        ("huge block", parameters(r#""len":4294967296"#)),
        ("tiny datagrams", parameters(r#""udp":true,"len":1"#)),
        ("negative window", parameters(r#""window":-5"#)),
        ("negative rate", parameters(r#""bandwidth":-1"#)),
    ];
    let mut rows: Vec<Row> = documents
        .into_iter()
        .map(|(name, text)| row(name, after_cookie(frame(text)), Then::Stay))
        .collect();
    for (name, length) in [("over-long", 8193_u32), ("endless", u32::MAX), ("2 GiB", 1 << 31)] {
        let steps = after_cookie(Step::Send(length.to_be_bytes().to_vec()));
        rows.push(row(format!("{name} parameters"), steps, Then::Stay));
    }
    meet(rows);
}

/// All of them are silent at once, and an honest client is served meanwhile; no waiting adds up.
#[test]
fn client_that_falls_silent_is_ended() {
    if !Tool::Iperf3.is_here() {
        return;
    }
    let server = Server::start(Tool::Linerate, &[]);
    let whole = honest_client();
    let scripts = [
        ("from the start", Vec::new()),
        ("within the cookie", vec![Step::Send(b"half of a cookie, no".to_vec())]),
        ("before the parameters", whole[..2].to_vec()),
        ("before the streams", whole[..4].to_vec()),
        ("before the results", whole[..10].to_vec()),
    ];
    let mut peers = scripts.map(|(name, steps)| {
        let mut peer = connect(server.port()).expect(name);
        peer.follow(&steps).expect(name);
        (name, peer)
    });
    serves_an_honest_client(server.port()).expect("silent peers are in nobody's way");
    for (name, peer) in &mut peers {
        peer.until_closed()
            .unwrap_or_else(|e| panic!("silent {name}, and the server keeps it: {e}"));
    }
}

fn row(name: impl Into<String>, steps: Vec<Step>, then: Then) -> Row {
    Row { name: name.into(), steps, then }
}

fn after_cookie(step: Step) -> Vec<Step> {
    [&honest_client()[..2], &[step]].concat()
}

/// Parameters of an honest client, but for what stands before them: the first of two keys counts.
fn parameters(first: &str) -> String {
    format!(
        r#"{{{first},"tcp":true,"omit":0,"time":1,"num":0,"blockcount":0,"parallel":1,"len":4096,"client_version":"3.12"}}"#
    )
}

fn meet(rows: Vec<Row>) {
    if !Tool::Iperf3.is_here() {
        return;
    }
    let mut server = Server::start(Tool::Linerate, &[]);
    let port = server.port();
    run_all(&rows, |row| meet_one(row, port).map_err(|e| format!("{}: {e}", row.name)));
    assert!(server.is_running(), "the server outlives them all");
    let ended = server.stop("INT").expect("the server ends when it is told to");
    let spoken = format!("{}{}", ended.stdout, ended.stderr);
    assert!(!spoken.contains("panicked"), "{ended}");
}

fn meet_one(row: &Row, port: u16) -> Result<(), String> {
    let mut peer = connect(port).map_err(|e| e.to_string())?;
    let followed = peer.follow(&row.steps);
    match row.then {
        // A script that leaves is honest until then, so nothing may go wrong before.
        Then::Close => followed.map_err(|e| format!("before it could close: {e}"))?,
        Then::Stay => {
            peer.until_closed().map_err(|e| format!("the server keeps it: {e}"))?;
        }
    }
    drop(peer);
    serves_an_honest_client(port)
}

fn connect(port: u16) -> std::io::Result<Peer> {
    Peer::connect(SocketAddr::from(([127, 0, 0, 1], port)))
}

fn serves_an_honest_client(port: u16) -> Result<(), String> {
    let honest = ["-n", "128K", "-b", "50M"];
    let honest = client::run(Tool::Iperf3, "127.0.0.1", port, &honest, TIME_LIMIT)?;
    if honest.code == Some(0) { Ok(()) } else { Err(format!("afterwards {honest}")) }
}

const TIME_LIMIT: Duration = Duration::from_secs(20);
