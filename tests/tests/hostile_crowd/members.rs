//! What each of a hostile crowd does, over and over. All of them end soon once they are told that it
//! is over.

use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use linerate_tests::script::{Peer, Step, frame, honest_client};

/// What a member does with the port of the server.
pub(crate) type Member = fn(u16, &AtomicBool) -> io::Result<()>;

/// All of them.
pub(crate) const MEMBERS: [Member; 10] = [
    noise,
    silence,
    one_byte_a_second,
    bad_lengths,
    deep_documents,
    strangers_cookies,
    too_many_streams,
    greetings_from_many_ports,
    resets,
    readers_that_stop,
];

/// Other protocols, garbage, and half a cookie.
fn noise(port: u16, _: &AtomicBool) -> io::Result<()> {
    let tls = [&[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3][..], &[0x5c; 500]].concat();
    let telnet = [0xff, 0xfb, 0x18, 0xff, 0xfd, 3, b'r', b'o', b'o', b't', b'\r', b'\n'];
    let http = &b"GET / HTTP/1.1\r\nHost: example.net\r\n\r\n"[..];
    for bytes in [http, &tls, &telnet, &[0xaa; 4096], &[0; 64], b"half of a cookie, no"] {
        connect(port)?.follow(&[Step::Send(bytes.to_vec())])?;
    }
    Ok(())
}

/// A thousand connections that say nothing, or half of what they should.
fn silence(port: u16, is_over: &AtomicBool) -> io::Result<()> {
    let mut silent = Vec::new();
    for number in 0..1000 {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        if number % 2 == 0 {
            // The server may have had enough of it already.
            let _ = stream.write_all(b"half of a cookie, no");
        }
        silent.push(stream);
        sleep(Duration::from_millis(1));
    }
    wait(is_over, Duration::from_secs(3));
    Ok(())
}

fn one_byte_a_second(port: u16, is_over: &AtomicBool) -> io::Result<()> {
    let mut peers = (0..20).map(|_| connect(port)).collect::<io::Result<Vec<_>>>()?;
    for byte in COOKIE.bytes() {
        for peer in &mut peers {
            let _ = peer.follow(&[Step::Send(vec![byte])]);
        }
        wait(is_over, Duration::from_secs(1));
    }
    Ok(())
}

fn bad_lengths(port: u16, _: &AtomicBool) -> io::Result<()> {
    for length in [0, 1, 8193, i32::MAX as u32, 1 << 31, u32::MAX] {
        let bytes = [&length.to_be_bytes()[..], &[b'{'; 5000]].concat();
        let _ = connect(port)?.follow(&after_cookie(Step::Send(bytes)));
    }
    Ok(())
}

fn deep_documents(port: u16, _: &AtomicBool) -> io::Result<()> {
    let documents = ["[".repeat(8000), format!(r#"{{"tcp":true,"x":{}"#, r#"{"x":"#.repeat(1000))];
    for document in documents {
        let mut peer = connect(port)?;
        peer.follow(&after_cookie(frame(document)))?;
        peer.until_closed()?;
    }
    Ok(())
}

/// Streams with a cookie that is nobody's, when the server waits for streams.
fn strangers_cookies(port: u16, _: &AtomicBool) -> io::Result<()> {
    let mut peer = connect(port)?;
    peer.follow(&honest_client()[..4])?;
    for cookie in [COOKIE, "another one, which has as many bytes", &"\u{1}".repeat(36)] {
        connect(port)?.follow(&[Step::Send(format!("{cookie}\0").into_bytes())])?;
    }
    Ok(())
}

fn too_many_streams(port: u16, _: &AtomicBool) -> io::Result<()> {
    let mut peer = connect(port)?;
    peer.follow(&honest_client()[..4])?;
    peer.follow(&vec![Step::Stream; 20])?;
    peer.follow(&[Step::Data, Step::Data])
}

/// Greetings, old and new, and what is none. They come from another address than the honest clients
/// have: a greeting of a stock client says nothing but its address.
fn greetings_from_many_ports(port: u16, _: &AtomicBool) -> io::Result<()> {
    for number in 0..100 {
        let socket = UdpSocket::bind((STRANGER, 0))?;
        socket.connect((Ipv4Addr::LOCALHOST, port))?;
        let datagrams = [&b"9876"[..], &123_456_789_u32.to_le_bytes(), &[0xaa; 1400], b""];
        // A port that refuses says so at the next call, and the server goes on with another socket.
        let _ = socket.send(datagrams[number % datagrams.len()]);
    }
    Ok(())
}

fn resets(port: u16, is_over: &AtomicBool) -> io::Result<()> {
    let whole = honest_client();
    for kept in 0..=whole.len() {
        let mut peer = connect(port)?;
        peer.follow(&whole[..kept])?;
        peer.reset()?;
        if is_over.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok(())
}

/// The server sends to them as fast as it can, and they read nothing.
fn readers_that_stop(port: u16, is_over: &AtomicBool) -> io::Result<()> {
    let steps = [
        &after_cookie(frame(r#"{"tcp":true,"omit":0,"time":60,"parallel":1,"reverse":true}"#))[..],
        &honest_client()[3..7],
    ];
    let mut peers = Vec::new();
    for _ in 0..8 {
        let mut peer = connect(port)?;
        peer.follow(&steps.concat())?;
        peers.push(peer);
    }
    wait(is_over, Duration::from_secs(4));
    Ok(())
}

fn after_cookie(step: Step) -> Vec<Step> {
    [&honest_client()[..2], &[step]].concat()
}

fn connect(port: u16) -> io::Result<Peer> {
    Peer::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
}

fn wait(is_over: &AtomicBool, time: Duration) {
    let slice = Duration::from_millis(50);
    for _ in 0..time.as_millis() / slice.as_millis() {
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        sleep(slice);
    }
}

const STRANGER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// As long as a cookie, and nobody's.
const COOKIE: &str = "a cookie that no client has ever had";
