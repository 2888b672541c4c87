//! Streams over loopback sockets. Tests that must let a stream run for a while wait for its tally,
//! never for a time.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use linerate_core::protocol::cookie::Cookie;
use linerate_core::protocol::greeting;
use linerate_core::stats::Tally;
use linerate_core::test::TestSettings;
use linerate_core::units::BitsPerSec;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream, UdpSocket};

use super::*;

pub(super) const LOOPBACK: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

#[tokio::test]
async fn a_limit_ends_exactly_and_both_ends_agree() {
    for (protocol, block_bytes, limit) in [
        (Protocol::Tcp, 131_072, 10_000_017),
        (Protocol::Tcp, 128, 100_000),
        (Protocol::Tcp, 1_048_576, 1),
        (Protocol::Udp, 1000, 100_000),
    ] {
        let (near, far) = pair(protocol).await;
        let mut plan = plan(protocol, block_bytes);
        plan.limit_bytes = Some(limit);
        let (mut receiver, _) = receive(far, plan);
        let (mut sender, mut events) = send(near, plan);
        assert_eq!(event(&mut events).await, StreamEvent::LimitReached);
        sender.stop().await;
        receiver.stop().await;
        let (sent, received) = (tally(&sender), tally(&receiver));
        assert_eq!((sent.bytes, received.bytes), (limit, limit), "{protocol:?} {block_bytes}");
        assert_eq!(sent.blocks, received.blocks);
        assert_eq!(sent.packets, received.packets);
        assert_eq!(received.lost, 0);
    }
}

#[tokio::test]
async fn both_ends_agree_after_the_sender_was_stopped() {
    let (near, far) = pair(Protocol::Tcp).await;
    let (mut receiver, _) = receive(far, plan(Protocol::Tcp, 131_072));
    let (mut sender, _) = send(near, plan(Protocol::Tcp, 131_072));
    until(|| tally(&receiver).bytes > 10_000_000).await;
    sender.stop().await;
    let sent = tally(&sender);
    until(|| tally(&receiver).bytes == sent.bytes).await;
    receiver.stop().await;
    assert_eq!(tally(&receiver), tally(&sender));
}

#[tokio::test]
async fn a_paced_sender_holds_its_rate() {
    for (protocol, block_bytes) in [(Protocol::Tcp, 10_000), (Protocol::Udp, 1250)] {
        let (near, _far) = pair(protocol).await;
        let mut plan = plan(protocol, block_bytes);
        plan.bitrate = Some(BitsPerSec(10_000_000));
        let begin = Instant::now();
        let (mut sender, _) = send(near, plan);
        // 50 blocks take 400 or 50 ms at this rate.
        until(|| tally(&sender).blocks >= 50).await;
        sender.stop().await;
        let most = begin.elapsed().as_nanos() as u64 * 10_000_000 / 8 / 1_000_000_000;
        let bytes = tally(&sender).bytes;
        assert!(bytes <= most + u64::from(block_bytes), "{bytes} of {most} bytes");
    }
}

#[tokio::test]
async fn stop_wakes_a_sender_that_waits() {
    // One block at this rate takes twelve days; without a rate the peer's buffers fill up.
    for bitrate in [Some(BitsPerSec(1)), None] {
        let (near, _far) = pair(Protocol::Tcp).await;
        let (mut sender, _) = send(near, StreamPlan { bitrate, ..plan(Protocol::Tcp, 131_072) });
        let mut last = u64::MAX;
        // It waits when nothing moves for 50 ms; if the machine just stalled, stopping is easier.
        while last != tally(&sender).bytes {
            last = tally(&sender).bytes;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        soon(sender.stop()).await;
        soon(sender.close()).await;
    }
}

#[tokio::test]
async fn a_closed_connection_is_told_once_and_the_others_go_on() {
    let (near, far) = pair(Protocol::Tcp).await;
    let (other_near, other_far) = pair(Protocol::Tcp).await;
    let plans = [0, 1].map(|index| StreamPlan {
        id: StreamId::from_index(index),
        role: Role::Receiver,
        ..plan(Protocol::Tcp, 131_072)
    });
    let (sender, mut events) = mpsc::unbounded_channel();
    let sockets = vec![far, other_far];
    let mut receivers =
        Streams::start(sockets, plans.to_vec(), Clock::new(), Handling::default(), sender).unwrap();
    drop(near);
    let told = soon(events.recv()).await;
    let told = told.map(|news| (news.id, news.event));
    assert_eq!(told, Some((StreamId::from_index(0), StreamEvent::Closed)));
    let (_sender, _) = send(other_near, plan(Protocol::Tcp, 131_072));
    until(|| receivers.sample()[1].tally.bytes > 1_000_000).await;
    soon(receivers.stop()).await;
    assert!(events.try_recv().is_err());
}

#[tokio::test]
async fn a_sender_whose_peer_is_gone_reports_it() {
    let (near, far) = pair(Protocol::Tcp).await;
    drop(far);
    let (_sender, mut events) = send(near, plan(Protocol::Tcp, 131_072));
    assert_eq!(event(&mut events).await, StreamEvent::Closed);
}

#[tokio::test]
async fn a_stopped_receiver_discards_without_counting() {
    for protocol in [Protocol::Tcp, Protocol::Udp] {
        let (near, far) = pair(protocol).await;
        let (sender, _) = send(near, plan(protocol, 1400));
        let (mut receiver, mut events) = receive(far, plan(protocol, 1400));
        until(|| tally(&receiver).bytes > 100_000).await;
        soon(receiver.stop()).await;
        let counted = tally(&receiver);
        // More than all buffers hold, so it must have been read.
        let enough = tally(&sender).bytes + 50_000_000;
        until(|| tally(&sender).bytes > enough).await;
        assert_eq!(tally(&receiver), counted);
        drop(sender);
        soon(receiver.close()).await;
        assert!(events.try_recv().is_err(), "an end after the stop is no event");
    }
}

#[tokio::test]
async fn dropped_streams_close_their_sockets() {
    let (near, far) = pair(Protocol::Tcp).await;
    let (sender, _) = send(near, plan(Protocol::Tcp, 131_072));
    let (_receiver, mut events) = receive(far, plan(Protocol::Tcp, 131_072));
    drop(sender);
    assert_eq!(event(&mut events).await, StreamEvent::Closed);
}

#[tokio::test]
async fn a_refused_datagram_does_not_end_the_stream() {
    let (near, far) = pair(Protocol::Udp).await;
    drop(far);
    let (sender, mut events) = send(near, plan(Protocol::Udp, 1000));
    until(|| tally(&sender).packets > 1000).await;
    assert!(events.try_recv().is_err());
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn samples_of_senders_carry_the_kernels_view() {
    let (near, far) = pair(Protocol::Tcp).await;
    let (receiver, _) = receive(far, plan(Protocol::Tcp, 131_072));
    let (sender, _) = send(near, plan(Protocol::Tcp, 131_072));
    until(|| tally(&receiver).bytes > 1_000_000).await;
    assert_eq!(receiver.sample()[0].tcp, None);
    let stats = sender.sample()[0].tcp.unwrap();
    assert!(stats.retransmits.is_some());
    // Loopback's MTU is near 64 KiB; a connection has at least one segment of window.
    assert!(stats.pmtu_bytes > Some(1500), "{stats:?}");
    assert!(stats.cwnd_bytes > Some(0) && stats.snd_wnd_bytes > Some(0) && stats.rtt_us > Some(0));
}

#[tokio::test]
async fn a_tcp_stream_begins_with_the_cookie() {
    let listener = TcpListener::bind(LOOPBACK).await.unwrap();
    let cookie = Cookie::from_random([7; 36]);
    let (socket, accepted) = dial_tcp(&listener, &cookie).await;
    let mut accepted = accepted;
    let mut bytes = [0; Cookie::LEN];
    accepted.read_exact(&mut bytes).await.unwrap();
    assert_eq!(&bytes, cookie.as_bytes());
    let adopted = adopt_stream(accepted, &options(Protocol::Tcp)).unwrap();
    assert_eq!((adopted.local(), adopted.peer()), (socket.peer(), socket.local()));
    assert_eq!(
        adopted.congestion().is_some(),
        cfg!(any(target_os = "linux", target_os = "freebsd"))
    );
}

#[tokio::test]
async fn anything_from_the_server_is_an_answer_and_stays_in_the_socket() {
    for said in [b"6789".as_slice(), &987_654_321_u32.to_le_bytes(), &[7; 1400]] {
        let server = UdpSocket::bind(LOOPBACK).await.unwrap();
        let near = open_datagrams(server.local_addr().unwrap(), LocalPoint::Any, &udp()).unwrap();
        let ear = Ear::new(&near).unwrap();
        assert!(near.greet(&greeting::HELLO).unwrap());
        let mut bytes = [0; 16];
        let (len, client) = server.recv_from(&mut bytes).await.unwrap();
        assert_eq!((&bytes[..len], client), (&greeting::HELLO[..], near.local()));
        let silent = tokio::time::timeout(Duration::from_millis(20), ear.next()).await;
        assert!(silent.is_err(), "nobody has said anything");
        server.send_to(said, client).await.unwrap();
        assert_eq!(soon(ear.next()).await.unwrap(), Heard::Answer);
        assert!(server.try_recv_from(&mut [0; 16]).is_err(), "nothing was sent again");
        let mut found = [0; 1500];
        let len = std::io::Read::read(&mut near.socket().as_ref(), &mut found).unwrap();
        assert_eq!(found[..len], *said);
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_port_where_nobody_listens_is_a_refusal_and_the_stream_goes_on() {
    let server = std::net::UdpSocket::bind(LOOPBACK).unwrap();
    let remote = server.local_addr().unwrap();
    drop(server);
    let near = open_datagrams(remote, LocalPoint::Any, &udp()).unwrap();
    let ear = Ear::new(&near).unwrap();
    for _ in 0..3 {
        assert!(near.greet(&greeting::HELLO).unwrap());
        assert_eq!(soon(ear.next()).await.unwrap(), Heard::Refusal);
    }
    assert!(near.greet(&greeting::HELLO).unwrap());
    // The refusal of the one before does not keep this one from being sent.
    let server = std::net::UdpSocket::bind(remote).unwrap();
    assert!(near.greet(b"last").unwrap());
    let mut bytes = [0; 16];
    let (len, client) = server.recv_from(&mut bytes).unwrap();
    assert_eq!((&bytes[..len], client), (&b"last"[..], near.local()));
}

fn udp() -> SocketOptions {
    options(Protocol::Udp)
}

#[tokio::test]
async fn clients_bind_where_they_are_told() {
    let listener = TcpListener::bind(LOOPBACK).await.unwrap();
    let free = std::net::TcpListener::bind(LOOPBACK).unwrap().local_addr().unwrap();
    let remote = listener.local_addr().unwrap();
    let cookie = Cookie::from_random([0; 36]);
    let socket = connect_stream(remote, LocalPoint::At(free), &cookie, &options(Protocol::Tcp))
        .await
        .unwrap();
    assert_eq!(socket.local(), free);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_flow_label_does_not_hinder_the_connection() {
    let Ok(listener) = TcpListener::bind((std::net::Ipv6Addr::LOCALHOST, 0)).await else {
        println!("skipped: this machine has no IPv6");
        return;
    };
    let settings = TestSettings { flow_label: Some(0x12345), ..TestSettings::new(Protocol::Tcp) };
    let options = SocketOptions::new(&settings, None);
    let remote = listener.local_addr().unwrap();
    let socket = connect_stream(remote, LocalPoint::Any, &Cookie::from_random([0; 36]), &options)
        .await
        .unwrap();
    assert_eq!(socket.warnings(), []);
}

#[tokio::test]
async fn impossible_block_sizes_are_refused() {
    for (protocol, block_bytes) in [
        (Protocol::Tcp, 0),
        (Protocol::Tcp, MAX_TCP_BLOCK + 1),
        (Protocol::Udp, MIN_UDP_BLOCK - 1),
        (Protocol::Udp, MAX_UDP_BLOCK + 1),
    ] {
        let (near, _far) = pair(protocol).await;
        let plans = vec![plan(protocol, block_bytes)];
        let (events, _) = mpsc::unbounded_channel();
        let started = Streams::start(vec![near], plans, Clock::new(), Handling::default(), events);
        assert_eq!(started.unwrap_err().kind(), io::ErrorKind::InvalidInput, "{block_bytes}");
    }
}

/// A sender's and a receiver's end of one connection.
pub(super) async fn pair(protocol: Protocol) -> (DataSocket, DataSocket) {
    match protocol {
        // The calls of both are the same, and this machine need not have the other.
        Protocol::Tcp | Protocol::Sctp => {
            let listener = TcpListener::bind(LOOPBACK).await.unwrap();
            let (near, mut far) = dial_tcp(&listener, &Cookie::from_random([0; 36])).await;
            far.read_exact(&mut [0; Cookie::LEN]).await.unwrap();
            (near, adopt_stream(far, &options(protocol)).unwrap())
        }
        Protocol::Udp => {
            let at = Listen::At(LOOPBACK);
            let [near, far] = [(); 2].map(|()| at.bind(socket2::Type::DGRAM, &|_| Ok(())).unwrap());
            near.connect(&far.local_addr().unwrap()).unwrap();
            far.connect(&near.local_addr().unwrap()).unwrap();
            let options = options(protocol);
            let wrap = |socket| {
                let warnings = options.apply(&socket, false);
                DataSocket::new(socket, &options, warnings).unwrap()
            };
            (wrap(near), wrap(far))
        }
    }
}

async fn dial_tcp(listener: &TcpListener, cookie: &Cookie) -> (DataSocket, TcpStream) {
    let remote = listener.local_addr().unwrap();
    let options = options(Protocol::Tcp);
    let (near, far) =
        tokio::join!(connect_stream(remote, LocalPoint::Any, cookie, &options), listener.accept());
    (near.unwrap(), far.unwrap().0)
}

fn options(protocol: Protocol) -> SocketOptions {
    SocketOptions::new(&TestSettings::new(protocol), None)
}

pub(super) fn plan(protocol: Protocol, block_bytes: u32) -> StreamPlan {
    StreamPlan {
        id: StreamId::from_index(0),
        role: Role::Sender,
        protocol,
        block_bytes,
        bitrate: None,
        burst: None,
        joins_arrivals: false,
        may_wait: false,
        limit_bytes: None,
        share_bytes: None,
        counters_64bit: false,
        omit_until: None,
    }
}

pub(super) type Events = mpsc::UnboundedReceiver<News>;

fn send(socket: DataSocket, plan: StreamPlan) -> (Streams, Events) {
    start(socket, plan, Handling::default())
}

pub(super) fn start(socket: DataSocket, plan: StreamPlan, handling: Handling) -> (Streams, Events) {
    let (sender, events) = mpsc::unbounded_channel();
    let streams = Streams::start(vec![socket], vec![plan], Clock::new(), handling, sender);
    (streams.unwrap(), events)
}

fn receive(socket: DataSocket, plan: StreamPlan) -> (Streams, Events) {
    send(socket, StreamPlan { role: Role::Receiver, ..plan })
}

pub(super) fn tally(streams: &Streams) -> Tally {
    streams.sample()[0].tally
}

pub(super) async fn event(events: &mut Events) -> StreamEvent {
    soon(events.recv()).await.expect("the thread holds the other end").event
}

/// Waits for a condition that other threads bring about.
pub(super) async fn until(condition: impl Fn() -> bool) {
    soon(async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}

/// Fails instead of hanging.
pub(super) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), future).await.expect("within 20 s")
}
