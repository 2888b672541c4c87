//! Data streams are numbered as their connections were accepted, and roles hang on the number. The
//! cookies by which a server tells whose they are may come in any order.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use linerate_tests::server::Server;
use linerate_tests::tool::Tool;

#[test]
fn streams_keep_the_order_of_acceptance_whatever_order_their_cookies_arrive_in() {
    let server = Server::start(Tool::Linerate, &[]);
    let connect = || {
        let stream = TcpStream::connect(("127.0.0.1", server.port())).expect("a server listens");
        stream.set_read_timeout(Some(LIMIT)).expect("a time limit");
        stream
    };
    let mut control = connect();
    control.write_all(COOKIE).expect("the cookie");
    expect(&mut control, PARAM_EXCHANGE);
    let length = u32::try_from(PARAMETERS.len()).expect("it is short");
    control.write_all(&length.to_be_bytes()).expect("a length");
    control.write_all(PARAMETERS.as_bytes()).expect("parameters");
    expect(&mut control, CREATE_STREAMS);

    let mut streams: [TcpStream; 4] = std::array::from_fn(|_| connect());
    for stream in streams.iter_mut().rev() {
        stream.write_all(COOKIE).expect("a cookie");
        // Long enough for the server to read it before the next one comes.
        std::thread::sleep(Duration::from_millis(50));
    }
    expect(&mut control, TEST_START);
    expect(&mut control, TEST_RUNNING);

    // With data both ways the client sends on the first half, and the server on the second.
    for (index, stream) in streams.iter_mut().enumerate() {
        let is_from_server = index >= 2;
        let limit = if is_from_server { LIMIT } else { Duration::from_millis(200) };
        stream.set_read_timeout(Some(limit)).expect("a time limit");
        match stream.read(&mut [0; 1]) {
            Ok(len) => assert!(is_from_server && len == 1, "stream {index} got {len} bytes"),
            Err(error) => {
                let is_silent = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
                assert!(is_silent && !is_from_server, "stream {index}: {error}");
            }
        }
    }
}

fn expect(control: &mut TcpStream, code: u8) {
    let mut byte = [0];
    control.read_exact(&mut byte).expect("a control code");
    assert_eq!(byte, [code]);
}

const COOKIE: &[u8; 37] = b"abcdefghijklmnopqrstuvwxyz2345672345\0";
const PARAMETERS: &str = r#"{"tcp":true,"omit":0,"time":9,"num":0,"blockcount":0,"parallel":2,"bidirectional":true,"len":4096,"bandwidth":1000000,"client_version":"3.12"}"#;
const LIMIT: Duration = Duration::from_secs(10);
const TEST_START: u8 = 1;
const TEST_RUNNING: u8 = 2;
const PARAM_EXCHANGE: u8 = 9;
const CREATE_STREAMS: u8 = 10;
