//! Many connections at one server: what they send may come late, out of order or never, and honest
//! clients get what is theirs.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::thread::sleep;
use std::time::Duration;

use linerate_tests::client;
use linerate_tests::server::Server;
use linerate_tests::tool::Tool;

#[test]
fn streams_have_the_roles_of_their_connections_though_cookies_overtake_each_other() {
    let server = Server::start(Tool::Linerate, &[]);
    let mut control = connect(&server);
    control.write_all(COOKIE).expect("the server listens");
    assert_eq!(read(&mut control), [PARAM_EXCHANGE]);
    let length = u32::try_from(BIDIRECTIONAL.len()).expect("it is short");
    control.write_all(&length.to_be_bytes()).expect("the server listens");
    control.write_all(BIDIRECTIONAL.as_bytes()).expect("the server listens");
    assert_eq!(read(&mut control), [CREATE_STREAMS]);

    let (mut first, mut second) = (connect(&server), connect(&server));
    second.write_all(COOKIE).expect("the server listens");
    sleep(Duration::from_millis(200));
    first.write_all(COOKIE).expect("the server listens");

    assert_eq!(read::<2>(&mut control), [TEST_START, TEST_RUNNING]);
    assert_eq!(read::<1000>(&mut second).len(), 1000, "the server sends on the second");
    first.set_nonblocking(true).expect("a socket can be non-blocking");
    assert!(first.read(&mut [0]).is_err(), "and receives on the first");
}

#[test]
fn silent_connections_give_way_to_a_client() {
    let server = Server::start(Tool::Linerate, &[]);
    let _silent: Vec<_> = (0..1200).map(|_| connect(&server)).collect();
    let ended = client::run(Tool::Linerate, "127.0.0.1", server.port(), &["-n", "1M"], TIME_LIMIT)
        .expect("the client ends");
    assert_eq!(ended.code, Some(0), "{ended}");
}

#[test]
fn clients_that_ask_for_nothing_have_a_bound() {
    let server = Server::start(Tool::Linerate, &[]);
    let mut last = Vec::new();
    let _waiting: Vec<_> = (0..600)
        .map(|number| {
            let mut control = connect(&server);
            control.write_all(format!("{number:036}\0").as_bytes()).expect("the server listens");
            last = read::<1>(&mut control).to_vec();
            control
        })
        .collect();
    assert_eq!(last, [ACCESS_DENIED]);
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port())).expect("it listens");
    stream.set_read_timeout(Some(TIME_LIMIT)).expect("the limit is not zero");
    stream
}

fn read<const N: usize>(stream: &mut TcpStream) -> [u8; N] {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).expect("the server answers");
    bytes
}

const COOKIE: &[u8; 37] = b"abcdefghijklmnopqrstuvwxyz2345672345\0";
const BIDIRECTIONAL: &str =
    r#"{"tcp":true,"omit":0,"time":1,"parallel":1,"bidirectional":true,"len":1000}"#;
const PARAM_EXCHANGE: u8 = 9;
const CREATE_STREAMS: u8 = 10;
const TEST_START: u8 = 1;
const TEST_RUNNING: u8 = 2;
const ACCESS_DENIED: u8 = 0xff;
const TIME_LIMIT: Duration = Duration::from_secs(20);
