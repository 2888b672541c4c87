//! Clients at a UDP door on loopback, where every 127.x.y.z is an address of its own.

use std::net::{Ipv4Addr, Ipv6Addr, UdpSocket as StdUdpSocket};

use linerate_core::flow::StreamPlan;
use linerate_core::test::{Protocol, Role, StreamId, TestSettings};
use linerate_core::units::BitsPerSec;

use super::super::{Ear, Handling, Heard, LocalPoint, Met, Streams, open_datagrams};
use super::*;
use crate::clock::Clock;

/// Each test with sockets of either kind, where the system can sort by itself.
macro_rules! with_either {
    ($($(#[$attribute:meta])+ $name:ident;)+) => {
        #[cfg(not(windows))]
        mod one_each {
            $($(#[$attribute])+ async fn $name() { super::$name(super::Sockets::OneEach).await })+
        }
        mod one_for_all {
            $($(#[$attribute])+ async fn $name() { super::$name(super::Sockets::OneForAll).await })+
        }
    };
}

with_either! {
    #[cfg(target_os = "linux")]
    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    many_clients_at_once_each_get_their_own_streams;
    #[tokio::test]
    one_address_comes_again_while_its_earlier_streams_receive;
    #[tokio::test]
    tests_of_one_address_are_set_up_one_after_another;
    #[cfg(target_os = "linux")]
    #[tokio::test]
    only_one_greeting_of_each_awaited_sender_counts;
    #[tokio::test]
    named_greetings_find_their_test_in_any_order_beside_others_of_the_address;
    #[tokio::test]
    a_flood_of_greetings_from_many_ports_takes_no_more_than_the_test_that_awaits_them;
    #[cfg(target_os = "linux")]
    #[tokio::test]
    a_greeting_that_is_repeated_is_answered_again_and_makes_no_second_stream;
    #[cfg(target_os = "linux")]
    #[tokio::test]
    a_named_stream_comes_from_the_address_of_its_control_connection_unless_told_otherwise;
    #[tokio::test]
    a_door_for_everything_takes_both_families;
    #[cfg(target_os = "linux")]
    #[tokio::test]
    the_reply_comes_from_the_address_that_was_called;
    #[tokio::test]
    a_closed_door_leaves_its_streams_and_its_port;
    #[tokio::test]
    tests_of_one_address_stream_both_ways_at_once;
    #[tokio::test]
    what_comes_before_a_stream_starts_counts;
}

async fn many_clients_at_once_each_get_their_own_streams(sockets: Sockets) {
    let door = Arc::new(open(sockets));
    let server = Ipv4Addr::LOCALHOST;
    let tasks: Vec<_> = (2..32)
        .map(|host| {
            let door = door.clone();
            tokio::spawn(async move {
                let client = Ipv4Addr::new(127, 0, 0, host);
                let streams = dial(&door, client.into(), server.into(), 3).await;
                for (near, far) in &streams {
                    check_carries(near, far);
                }
                streams
            })
        })
        .collect();
    let mut all = Vec::new();
    for task in tasks {
        all.extend(soon(task).await.unwrap());
    }
    assert_eq!(all.len(), 90);
    for (near, far) in &all {
        check_carries(near, far);
    }
}

async fn one_address_comes_again_while_its_earlier_streams_receive(sockets: Sockets) {
    let door = open(sockets);
    let host = IpAddr::from(Ipv4Addr::LOCALHOST);
    let mut all = Vec::new();
    for _ in 0..5 {
        for (near, _) in &all {
            flood(near);
        }
        let streams = soon(dial(&door, host, host, 4)).await;
        all.extend(streams);
        for (near, _) in &all {
            flood(near);
        }
    }
    for (near, far) in &all {
        hear_all(far);
        check_carries(near, far);
    }
}

async fn tests_of_one_address_are_set_up_one_after_another(sockets: Sockets) {
    let door = open(sockets);
    let host = IpAddr::from(Ipv4Addr::LOCALHOST);
    let first = soon(door.set_up(host)).await;
    let mapped = IpAddr::from(Ipv4Addr::LOCALHOST.to_ipv6_mapped());
    let second = door.set_up(mapped);
    tokio::pin!(second);
    let waits = tokio::time::timeout(Duration::from_millis(20), &mut second).await;
    assert!(waits.is_err(), "the first has its turn");
    // Another address does not wait.
    drop(soon(door.set_up(Ipv4Addr::new(127, 0, 0, 9).into())).await);
    drop(first);
    let _ = soon(second).await;
    assert_eq!(door.shared.awaited().by_address.len(), 0, "a dropped set-up leaves nothing behind");
}

async fn only_one_greeting_of_each_awaited_sender_counts(sockets: Sockets) {
    let door = open(sockets);
    let at = SocketAddr::from((Ipv4Addr::LOCALHOST, door.local().port()));
    let early = client(at);
    early.send(&greeting::HELLO).unwrap();
    early.send(&[0; 1000]).unwrap();
    // The door has read both when it has answered another client's greeting.
    let other = Ipv4Addr::new(127, 0, 0, 2).into();
    let host = IpAddr::from(Ipv4Addr::LOCALHOST);
    soon(dial(&door, other, host, 1)).await;
    let mut set_up = soon(door.set_up(host)).await;
    let (doubled, last) = (client(at), client(at));
    for datagram in [&greeting::HELLO[..], &greeting::HELLO, &[0; 1000], &greeting::HELLO] {
        doubled.send(datagram).unwrap();
    }
    last.send(b"x").unwrap();
    let streams = [soon(set_up.next(&options())).await, soon(set_up.next(&options())).await];
    let peers = streams.map(|stream| stream.unwrap().peer());
    assert_eq!(peers, [doubled.local_addr().unwrap(), last.local_addr().unwrap()]);
}

async fn named_greetings_find_their_test_in_any_order_beside_others_of_the_address(
    sockets: Sockets,
) {
    let door = open(sockets);
    let host = IpAddr::from(Ipv4Addr::LOCALHOST);
    let server = SocketAddr::new(host, door.local().port());
    // A stock client of the same address never greets.
    let _silent = soon(door.set_up(host)).await;
    let cookies = [cookie(1), cookie(2)];
    let mut tests = cookies.map(|cookie| door.set_up_named(host, cookie, 3));
    let mut near = Vec::new();
    for index in [2, 0, 1] {
        for cookie in cookies {
            let greeting = NamedGreeting { cookie, index };
            let socket = greeted(host, server, &greeting.hello());
            socket.greet(&greeting.hello()).unwrap();
            near.push((greeting, socket));
        }
    }
    let mut far = Vec::new();
    for (cookie, set_up) in cookies.iter().zip(&mut tests) {
        for _ in 0..3 {
            let (index, socket) = met(set_up).await;
            far.push((NamedGreeting { cookie: *cookie, index }, socket));
        }
    }
    for (greeting, near) in &near {
        let (_, far) = far.iter().find(|(met, _)| met == greeting).expect("each is met once");
        assert_eq!((near.local(), near.peer()), (far.peer(), far.local()));
        assert_eq!(heard(near).await, greeting.reply());
    }
    drop(tests);
    assert_eq!(door.shared.awaited().by_cookie.len(), 0);
}

async fn a_flood_of_greetings_from_many_ports_takes_no_more_than_the_test_that_awaits_them(
    sockets: Sockets,
) {
    let door = open(sockets);
    let host = IpAddr::from(Ipv4Addr::LOCALHOST);
    let server = SocketAddr::new(host, door.local().port());
    let mut stock = soon(door.set_up(host)).await;
    let greeting = NamedGreeting { cookie: cookie(1), index: 0 };
    let mut named = door.set_up_named(host, greeting.cookie, 1);
    let crowd: Vec<_> = (0..300).map(|_| client(server)).collect();
    crowd.iter().for_each(|one| drop(one.send(&greeting::HELLO)));
    let near = greeted(host, server, &greeting.hello());
    let (_, far) = loop {
        // As the client does: the flood may have filled the port.
        match tokio::time::timeout(Duration::from_millis(100), met(&mut named)).await {
            Ok(met) => break met,
            Err(_) => assert!(near.greet(&greeting.hello()).unwrap()),
        }
    };
    assert_eq!(far.peer(), near.local());
    for _ in 0..8 {
        soon(stock.next(&options())).await.unwrap();
    }
    drop(stock);
    // The next of the address has its turn at once, and nothing is left of the crowd.
    let streams = soon(dial(&door, host, host, 2)).await;
    streams.iter().for_each(|(near, far)| check_carries(near, far));
}

async fn a_greeting_that_is_repeated_is_answered_again_and_makes_no_second_stream(
    sockets: Sockets,
) {
    let door = open(sockets);
    let host = IpAddr::from(Ipv4Addr::LOCALHOST);
    let server = SocketAddr::new(host, door.local().port());
    let mut set_up = door.set_up_named(host, cookie(1), 2);
    let greeting = NamedGreeting { cookie: cookie(1), index: 0 };
    let near = greeted(host, server, &greeting.hello());
    let (index, far) = met(&mut set_up).await;
    assert_eq!((index, far.peer()), (0, near.local()));
    assert_eq!(heard(&near).await, greeting.reply());
    // Another socket cannot take the place, nor one stream two places.
    let _thief = greeted(host, server, &greeting.hello());
    let _beyond = greeted(host, server, &NamedGreeting { index: 2, ..greeting }.hello());
    let _strange = greeted(host, server, &NamedGreeting { cookie: cookie(2), ..greeting }.hello());
    near.greet(&greeting.hello()).unwrap();
    let options = options();
    let waiting = set_up.next(&options);
    let again = async { assert_eq!(heard(&near).await, greeting.reply()) };
    tokio::select! {
        met = waiting => panic!("{met:?}"),
        () = again => {}
    }
}

async fn a_named_stream_comes_from_the_address_of_its_control_connection_unless_told_otherwise(
    sockets: Sockets,
) {
    let client = IpAddr::from(Ipv4Addr::LOCALHOST);
    let elsewhere = IpAddr::from(Ipv4Addr::new(127, 0, 0, 2));
    for (guests, from, is_taken) in [
        (Guests::OfTheControlConnection, client, true),
        (Guests::OfTheControlConnection, elsewhere, false),
        (Guests::Anyone, client, true),
        (Guests::Anyone, elsewhere, true),
    ] {
        let listen = Listen::At((Ipv4Addr::LOCALHOST, 0).into());
        let door = UdpDoor::bind_with(listen, None, guests, sockets).unwrap();
        let mut set_up = door.set_up_named(client, cookie(1), 1);
        let greeting = NamedGreeting { cookie: cookie(1), index: 0 };
        let near = greeted(from, door.local(), &greeting.hello());
        match soon(set_up.next(&options())).await.unwrap() {
            Met::Stream(_, far) => assert!(is_taken && far.peer() == near.local(), "{from}"),
            Met::Stranger(stranger) => assert!(!is_taken && stranger == near.local(), "{from}"),
        }
        near.greet(&greeting.hello()).unwrap();
        let again = tokio::time::timeout(Duration::from_millis(20), set_up.next(&options())).await;
        assert!(again.is_err(), "either is told once");
    }
}

async fn a_door_for_everything_takes_both_families(sockets: Sockets) {
    let door = bind_door(Listen::Everywhere { port: 0 }, sockets).unwrap();
    let v4 = IpAddr::from(Ipv4Addr::LOCALHOST);
    let (near, far) = &soon(dial(&door, v4, v4, 1)).await[0];
    assert_eq!(far.local().ip(), v4);
    check_carries(near, far);
    if door.local().is_ipv4() {
        println!("skipped: this machine has no IPv6");
        return;
    }
    let v6 = IpAddr::from(Ipv6Addr::LOCALHOST);
    let (near, far) = &soon(dial(&door, v6, v6, 1)).await[0];
    assert_eq!(far.local().ip(), v6);
    check_carries(near, far);
}

async fn the_reply_comes_from_the_address_that_was_called(sockets: Sockets) {
    for listen in [
        Listen::Everywhere { port: 0 },
        Listen::At((Ipv4Addr::UNSPECIFIED, 0).into()),
        Listen::At((Ipv4Addr::new(127, 0, 0, 77), 0).into()),
    ] {
        let door = bind_door(listen, sockets).unwrap();
        let called = IpAddr::from(Ipv4Addr::new(127, 0, 0, 77));
        // The client's socket is connected to that address, so it hears no other.
        let (near, far) = &soon(dial(&door, Ipv4Addr::LOCALHOST.into(), called, 1)).await[0];
        assert_eq!((far.local().ip(), near.peer().ip()), (called, called));
    }
}

#[cfg(not(windows))]
#[tokio::test]
async fn greetings_that_fell_into_the_gap_are_handed_back() {
    let door = open(Sockets::OneEach);
    let host = IpAddr::from(Ipv4Addr::LOCALHOST);
    let local = SocketAddr::new(host, door.local().port());
    let mut set_up = soon(door.set_up(host)).await;
    let stream =
        bind(&|domain| Socket::new(domain, Type::DGRAM, None), local, true, &sys::share_port)
            .unwrap();
    let (mine, foreign) = (client(local), client(local));
    let greeting = NamedGreeting { cookie: cookie(1), index: 0 };
    let mut named = door.set_up_named(host, greeting.cookie, 1);
    let stranger = client(local);
    mine.send(&greeting::HELLO).unwrap();
    foreign.send(&greeting::HELLO).unwrap();
    stranger.send(&greeting.hello()).unwrap();
    stream.connect(&mine.local_addr().unwrap().into()).unwrap();
    door.shared.hand_back(&stream, mine.local_addr().unwrap(), local);
    let found = soon(set_up.next(&options())).await.unwrap();
    assert_eq!((found.peer(), found.local()), (foreign.local_addr().unwrap(), local));
    let (_, found) = met(&mut named).await;
    assert_eq!((found.peer(), found.local()), (stranger.local_addr().unwrap(), local));
}

async fn a_closed_door_leaves_its_streams_and_its_port(sockets: Sockets) {
    let door = open(sockets);
    let local = door.local();
    let host = IpAddr::from(Ipv4Addr::LOCALHOST);
    let streams = soon(dial(&door, host, host, 1)).await;
    let mut set_up = soon(door.set_up(host)).await;
    drop(door);
    assert!(
        tokio::time::timeout(Duration::from_millis(20), set_up.next(&options())).await.is_err()
    );
    check_carries(&streams[0].0, &streams[0].1);
    let mut streams = Some(streams);
    if sockets == Sockets::OneForAll {
        assert!(bind_door(Listen::At(local), sockets).is_err(), "the port is the streams'");
        drop((streams.take(), set_up));
    }
    let again = soon(async {
        loop {
            match bind_door(Listen::At(local), sockets) {
                Ok(door) => return door,
                Err(_) => tokio::task::yield_now().await,
            }
        }
    })
    .await;
    let again = soon(dial(&again, host, host, 1)).await;
    check_carries(&again[0].0, &again[0].1);
    streams.iter().flatten().for_each(|(near, far)| check_carries(near, far));
}

async fn tests_of_one_address_stream_both_ways_at_once(sockets: Sockets) {
    let door = open(sockets);
    let host = IpAddr::from(Ipv4Addr::LOCALHOST);
    let mut tests = Vec::new();
    for number in [1, 2] {
        let server = SocketAddr::new(host, door.local().port());
        let mut set_up = door.set_up_named(host, cookie(number), 4);
        let greeting = |index| NamedGreeting { cookie: cookie(number), index };
        let near: Vec<_> =
            (0..4).map(|index| greeted(host, server, &greeting(index).hello())).collect();
        let mut far = Vec::new();
        for _ in 0..4 {
            far.push(met(&mut set_up).await);
        }
        far.sort_by_key(|&(index, _)| index);
        tests.push((near, far.into_iter().map(|(_, socket)| socket).collect::<Vec<_>>()));
    }
    let sent = 300 * 1000;
    let mut running = Vec::new();
    for (near, far) in tests {
        // The first two streams go to the server, the others come from it.
        let start = |sockets, is_client: bool| {
            let role = |index: usize| {
                if (index < 2) == is_client { Role::Sender } else { Role::Receiver }
            };
            let plans = (0..4).map(|index| stream(index, role(index), sent)).collect();
            let (news, events) = mpsc::unbounded_channel();
            let clock = Clock::new();
            let streams = Streams::start(sockets, plans, clock, Handling::default(), news);
            (streams.unwrap(), events)
        };
        running.extend([start(far, false), start(near, true)]);
    }
    for (streams, _) in &running {
        let all_sent = || {
            let tallies = streams.sample();
            tallies.iter().all(|sample| sample.tally.bytes >= sent)
        };
        soon(async {
            while !all_sent() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
    }
    for (mut streams, _) in running {
        soon(streams.stop()).await;
        for sample in streams.sample() {
            assert_eq!((sample.tally.bytes, sample.tally.lost), (sent, 0));
        }
        soon(streams.close()).await;
    }
    if let Some(sorter) = door.shared.sorter.get() {
        assert!(sorter.is_empty(), "nothing is left of them");
    }
}

async fn what_comes_before_a_stream_starts_counts(sockets: Sockets) {
    let door = open(sockets);
    let host = IpAddr::from(Ipv4Addr::LOCALHOST);
    let (near, far) = soon(dial(&door, host, host, 1)).await.remove(0);
    for number in 1..=5_u32 {
        let mut datagram = [0; 100];
        datagram[8..12].copy_from_slice(&number.to_be_bytes());
        near.line().send(&datagram).unwrap();
    }
    let (news, _events) = mpsc::unbounded_channel();
    let plans = vec![stream(0, Role::Receiver, 500)];
    let clock = Clock::new();
    let streams = Streams::start(vec![far], plans, clock, Handling::default(), news);
    let mut streams = streams.unwrap();
    soon(streams.stop()).await;
    let tally = streams.sample()[0].tally;
    assert_eq!((tally.bytes, tally.lost), (500, 0));
    soon(streams.close()).await;
}

/// A stream of datagrams of 1000 bytes that is done after so many bytes if it sends.
fn stream(index: usize, role: Role, sent: u64) -> StreamPlan {
    let limit_bytes = (role == Role::Sender).then_some(sent);
    let plan = crate::stream::tests::plan(Protocol::Udp, 1000);
    // As fast as loopback's smallest buffers take it.
    let bitrate = Some(BitsPerSec(20_000_000));
    StreamPlan { id: StreamId::from_index(index), role, limit_bytes, bitrate, ..plan }
}

fn open(sockets: Sockets) -> UdpDoor {
    bind_door(Listen::At((Ipv4Addr::LOCALHOST, 0).into()), sockets).unwrap()
}

fn bind_door(listen: Listen, sockets: Sockets) -> io::Result<UdpDoor> {
    UdpDoor::bind_with(listen, None, Guests::default(), sockets)
}

fn cookie(number: u8) -> Cookie {
    Cookie::from_random([number; Cookie::LEN - 1])
}

fn options() -> SocketOptions {
    SocketOptions::new(&TestSettings::new(Protocol::Udp), None)
}

fn client(server: SocketAddr) -> StdUdpSocket {
    let socket = StdUdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.connect(server).unwrap();
    socket
}

/// A test's streams from `client` to `server`, opened one after another as iperf3 does.
async fn dial(
    door: &UdpDoor,
    client: IpAddr,
    server: IpAddr,
    count: usize,
) -> Vec<(DataSocket, DataSocket)> {
    let server = SocketAddr::new(server, door.local().port());
    let mut set_up = door.set_up(client).await;
    let mut streams = Vec::new();
    for _ in 0..count {
        let options = options();
        let near = greeted(client, server, &greeting::HELLO);
        let far = set_up.next(&options).await.unwrap();
        heard(&near).await;
        streams.push((near, far));
    }
    streams
}

/// The next stream of a test whose greetings name it.
async fn met(set_up: &mut NamedSetUp) -> (u16, DataSocket) {
    match soon(set_up.next(&options())).await.unwrap() {
        Met::Stream(index, socket) => (index, socket),
        Met::Stranger(from) => panic!("nobody else greets, but {from}"),
    }
}

/// A client's socket that has said this to the server.
fn greeted(client: IpAddr, server: SocketAddr, hello: &[u8]) -> DataSocket {
    let local = LocalPoint::At(SocketAddr::new(client, 0));
    let near = open_datagrams(server, local, &options()).unwrap();
    assert!(near.greet(hello).unwrap());
    near
}

/// Waits for the server's answer and takes it out of the socket.
async fn heard(near: &DataSocket) -> Vec<u8> {
    assert_eq!(soon(Ear::new(near).unwrap().next()).await.unwrap(), Heard::Answer);
    let mut answer = [0; GREETING_ROOM];
    let len = sys::recv_with_destination(near.socket(), &mut answer).unwrap().len;
    answer[..len].to_vec()
}

/// What one end sends arrives at the other and nothing else does.
fn check_carries(near: &DataSocket, far: &DataSocket) {
    assert_eq!(near.peer(), far.local());
    assert_eq!(near.local(), far.peer());
    let label = near.local().to_string();
    for (from, to) in [(near, far), (far, near)] {
        from.line().send(label.as_bytes()).unwrap();
        assert_eq!(hear_all(to), [label.as_bytes()]);
    }
}

/// The beginnings of all datagrams that are there. Loopback delivers within the send.
fn hear_all(to: &DataSocket) -> Vec<Vec<u8>> {
    let mut heard = Vec::new();
    match to.line().seat() {
        Some(seat) => {
            let mut letters = Vec::new();
            assert!(seat.has_gathered(seat.gather(), Duration::from_secs(20)));
            seat.mailbox().take(&mut letters);
            heard.extend(letters.iter().map(|letter| letter.bytes().to_vec()));
        }
        None => {
            let mut buffer = [0; 64];
            // On Windows a plain receive fails when it cuts a datagram.
            while let Ok(arrived) = sys::recv_with_destination(to.socket(), &mut buffer) {
                heard.push(buffer[..arrived.len].to_vec());
            }
        }
    }
    heard
}

fn flood(near: &DataSocket) {
    for _ in 0..100 {
        near.line().send(&[0; 1000]).unwrap();
    }
}

async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), future).await.expect("within 20 s")
}
