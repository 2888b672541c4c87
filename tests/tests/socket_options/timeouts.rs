//! Every connection of a client has its limit of time, not only the first.

use std::net::{TcpListener, UdpSocket};
use std::time::Duration;

use linerate_tests::client;
use linerate_tests::script::{Peer, honest_server};
use linerate_tests::tool::Tool;

#[test]
fn a_stream_that_nobody_answers_ends_by_the_connect_timeout() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    // It takes greetings and does not answer them.
    let _udp = UdpSocket::bind(("127.0.0.1", port)).expect("the same port for UDP");
    let server = std::thread::spawn(move || {
        let mut peer = Peer::accept(listener)?;
        // Up to the word that streams can come.
        peer.follow(&honest_server()[..4])?;
        std::thread::sleep(Duration::from_secs(3));
        std::io::Result::Ok(())
    });
    let options = ["-u", "--connect-timeout", "700", "-t", "1"];
    let ended = client::run(Tool::Linerate, "127.0.0.1", port, &options, Duration::from_secs(20));
    let ended = ended.unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(ended.code, Some(2), "{ended}");
    assert!(ended.stderr.contains("unable to connect stream 1"), "{ended}");
    assert!(ended.stderr.contains("no answer in time"), "{ended}");
    assert!(ended.took >= Duration::from_millis(700), "{ended}");
    assert!(ended.took < Duration::from_millis(2700), "{ended}");
    server.join().expect("it does not panic").expect("it plays its part");
}
