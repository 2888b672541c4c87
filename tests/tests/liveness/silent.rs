//! Clients that are there and say nothing, at every step; and those that say nothing but on the control
//! connection, or on the data connections.

use std::io::Write;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use linerate_tests::client;
#[cfg(target_os = "linux")]
use linerate_tests::footprint::Footprint;
use linerate_tests::journal::LoggedServer;
use linerate_tests::script::{Peer, Step, frame, honest_client};
use linerate_tests::tool::Tool;

/// How many steps of an honest client are done before it falls silent, the event that ends the
/// waiting, why, and after how many seconds.
const SILENCES: [(usize, &str, &str, u64); 6] = [
    (0, "turned-away", "no cookie in time", 10),
    (1, "end", "did not answer on the control connection", 30),
    (4, "end", "not all data streams were connected", 30),
    // A second was agreed, and there is a grace of forty.
    (8, "end", "ran longer than agreed", 41),
    (10, "end", "did not answer on the control connection", 30),
    // All is said but the farewell.
    (11, "end", "", 10),
];

#[test]
fn a_silent_client_is_let_go_in_time_and_named_wherever_it_is() {
    std::thread::scope(|scope| {
        for (steps, event, reason, seconds) in SILENCES {
            scope.spawn(move || {
                let server = LoggedServer::start(&[]);
                let mut peer = Peer::connect(address(&server)).expect("the server listens");
                peer.follow(&honest_client()[..steps]).expect("an honest exchange so far");
                // A machine with much to do is late.
                let limit = Duration::from_secs(seconds + 3);
                let (line, took) = server.await_event(event, 0, limit).expect(reason);
                assert!(took > Duration::from_secs(seconds - 1), "{steps} steps: {took:?}, {line}");
                assert!(line["reason"].as_str().unwrap_or("").contains(reason), "{line}");
                assert_eq!(line["peer"], "127.0.0.1", "{line}");
                if event == "end" {
                    let outcome = if reason.is_empty() { "complete" } else { "timed-out" };
                    assert_eq!(line["outcome"], outcome, "{line}");
                }
                if steps >= 8 {
                    assert_eq!(line["received_bytes"], 4096, "{line}");
                }
                is_alone(&server);
            });
        }
    });
}

#[test]
fn no_data_for_twenty_seconds_is_no_reason_to_end_a_test() {
    let server = LoggedServer::start(&[]);
    let mut peer = Peer::connect(address(&server)).expect("the server listens");
    let mut steps = honest_client();
    steps.insert(7, Step::Pause(Duration::from_secs(21)));
    peer.follow(&steps).expect("an honest exchange to its end");
    drop(peer);
    let (end, _) = server.await_event("end", 0, AT_ONCE).expect("its end");
    assert_eq!(
        (&end["outcome"], &end["received_bytes"]),
        (&"complete".into(), &4096.into()),
        "{end}"
    );
}

/// A connection that takes no data keeps its sender waiting, but not longer than the client is there.
#[cfg(target_os = "linux")]
#[test]
fn a_sending_server_does_not_outlive_the_control_connection() {
    let server = LoggedServer::start(&[]);
    is_alone(&server);
    let before = Footprint::of(server.server.id());
    let from = server.lines().len();
    let mut control = TcpStream::connect(address(&server)).expect("the server listens");
    let cookie = format!("{:a<36}\0", "stuck");
    let say = |control: &mut TcpStream, bytes: &[u8]| control.write_all(bytes).expect("it is sent");
    let hear = |control: &mut TcpStream, code: u8| {
        let mut byte = [0];
        std::io::Read::read_exact(control, &mut byte).expect("the server answers");
        assert_eq!(byte, [code]);
    };
    say(&mut control, cookie.as_bytes());
    hear(&mut control, 9);
    let Step::Send(parameters) = frame(
        r#"{"tcp":true,"omit":0,"time":60,"num":0,"blockcount":0,"parallel":1,"reverse":true,"len":131072,"client_version":"3.12"}"#,
    ) else {
        unreachable!("a frame is sent");
    };
    say(&mut control, &parameters);
    hear(&mut control, 10);
    let mut data = TcpStream::connect(address(&server)).expect("the server listens");
    say(&mut data, cookie.as_bytes());
    hear(&mut control, 1);
    hear(&mut control, 2);
    // The buffers of both ends are full by then.
    std::thread::sleep(Duration::from_millis(700));
    control.shutdown(Shutdown::Both).expect("it is open");
    drop(control);
    let (end, _) = server.await_event("end", from, AT_ONCE).expect("at once");
    assert_eq!((&end["outcome"], &end["by"]), (&"lost".into(), &"client".into()), "{end}");
    assert!(end["sent_bytes"].as_u64() > Some(0), "{end}");
    is_alone(&server);
    let growth = before.growth(&Footprint::of(server.server.id()));
    assert!(growth.is_empty(), "{growth:?}");
    drop(data);
}

fn address(server: &LoggedServer) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, server.port()))
}

/// A test right after it is served, and no other runs beside it.
pub(super) fn is_alone(server: &LoggedServer) {
    let limit = Duration::from_secs(10);
    let from = server.lines().len();
    let options = ["-n", "64K"];
    let ended = client::run(Tool::Linerate, "127.0.0.1", server.port(), &options, limit);
    let ended = ended.expect("a test as any other");
    assert_eq!(ended.code, Some(0), "{ended}");
    let (end, _) = server.await_event("end", from, AT_ONCE).expect("as any other");
    assert_eq!(
        (&end["outcome"], &end["concurrent_tests"]),
        (&"complete".into(), &0.into()),
        "{end}"
    );
}

const AT_ONCE: Duration = Duration::from_secs(3);
