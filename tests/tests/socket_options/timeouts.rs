//! Every connection of a client has its limit of time, the first and the others.

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
    assert!(ended.stderr.contains("gives no answer"), "{ended}");
    assert!(ended.took >= Duration::from_millis(700), "{ended}");
    assert!(ended.took < Duration::from_millis(2700), "{ended}");
    server.join().expect("it does not panic").expect("it plays its part");
}

#[cfg(target_os = "linux")]
#[test]
fn an_address_that_never_answers_ends_by_the_connect_timeout() {
    use linerate_tests::namespace::may_make_namespaces;
    use linerate_tests::veth::{Cable, DEVICE};

    if !may_make_namespaces() {
        return;
    }
    let cable = Cable::new();
    for address in ["10.77.0.99", "fd77::99"] {
        // Packets to nobody: the far end passes over them.
        let neighbour = format!("neighbour add {address} lladdr 02:00:00:00:00:99 dev {DEVICE}");
        cable.near.ip(&neighbour);
        let options = ["--connect-timeout", "700", "-t", "1"];
        let client = client::start_in(&cable.near, Tool::Linerate, address, 5201, &options);
        let ended = client.wait(Duration::from_secs(20)).unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(ended.code, Some(2), "{ended}");
        assert!(ended.stderr.contains("unable to connect to server"), "{ended}");
        assert!(ended.stderr.contains("no answer in time"), "{ended}");
        assert!(ended.took < Duration::from_millis(2700), "{ended}");
    }
}
