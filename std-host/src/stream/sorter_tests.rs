//! Peers at a shared socket on loopback.

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::mpsc;

use linerate_core::protocol::greeting;

use super::*;

/// A socket that is sorted, and what of it may be a greeting.
fn open(joins: bool) -> (Arc<Sorter>, SocketAddr, mpsc::Receiver<Vec<u8>>) {
    let socket = Socket::from(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
    socket.set_nonblocking(true).unwrap();
    let local = socket.local_addr().unwrap().as_socket().unwrap();
    let (sender, greetings) = mpsc::channel();
    let greet = move |bytes: &[u8], _| sender.send(bytes.to_vec()).unwrap_or(());
    (Sorter::open_with(socket, joins, greet).unwrap(), local, greetings)
}

fn peer_of(local: SocketAddr) -> (UdpSocket, SocketAddr) {
    let peer = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    peer.connect(local).unwrap();
    let address = peer.local_addr().unwrap();
    (peer, address)
}

fn sit(sorter: &Arc<Sorter>, peer: SocketAddr, most: usize) -> Seat {
    let route = Route { to: peer, from: None, class: 0 };
    sorter.seat(peer, route, (most, LONGEST)).unwrap()
}

/// The beginnings of all that has arrived for it.
fn taken(seat: &Seat) -> Vec<Vec<u8>> {
    assert!(seat.has_gathered(seat.gather(), LONG));
    let mut letters = Vec::new();
    seat.mailbox().take(&mut letters);
    letters.iter().map(|letter| letter.bytes().to_vec()).collect()
}

#[test]
fn each_gets_what_its_peer_sent_in_order_and_nothing_else() {
    for joins in [false, true] {
        let (sorter, local, greetings) = open(joins);
        let peers = [(); 3].map(|()| peer_of(local));
        let seats = peers.each_ref().map(|(_, address)| sit(&sorter, *address, 1000));
        let (stranger, _) = peer_of(local);
        for number in 0..100_u32 {
            peers[number as usize % 3].0.send(&number.to_be_bytes()).unwrap();
        }
        stranger.send(&greeting::HELLO).unwrap();
        for (place, seat) in (0..).zip(&seats) {
            let own = (0..100_u32).filter(|number| number % 3 == place);
            let expected: Vec<_> = own.map(|number| number.to_be_bytes().to_vec()).collect();
            assert_eq!(taken(seat), expected);
            assert_eq!(seat.drops(), sys::socket_drops(seat.socket()).map(|_| 0));
        }
        assert_eq!(greetings.recv_timeout(LONG).unwrap(), greeting::HELLO);
    }
}

#[test]
fn what_finds_no_room_is_a_drop_of_this_host() {
    let (sorter, local, _greetings) = open(false);
    let ((full, at_full), (other, at_other)) = (peer_of(local), peer_of(local));
    let (full_seat, seat) = (sit(&sorter, at_full, 10), sit(&sorter, at_other, 10));
    for number in 0..30_u8 {
        full.send(&[number; 100]).unwrap();
    }
    other.send(b"x").unwrap();
    let expected: Vec<_> = (0..10_u8).map(|number| vec![number; 24]).collect();
    assert_eq!((taken(&full_seat), full_seat.drops()), (expected, Some(20)));
    assert_eq!(taken(&seat).len(), 1);
    assert_eq!(seat.drops().unwrap_or(0), 0);
}

#[test]
fn a_peer_that_comes_again_begins_clean() {
    let (sorter, local, _greetings) = open(false);
    let (peer, address) = peer_of(local);
    let first = sit(&sorter, address, 10);
    peer.send(b"old").unwrap();
    assert_eq!(taken(&first), [b"old"]);
    peer.send(b"late").unwrap();
    assert!(first.has_gathered(first.gather(), LONG));
    drop(first);
    assert_eq!(sorter.seats().by_peer.len(), 0, "nothing is left of it");
    let (_, elsewhere) = peer_of(local);
    let other = sit(&sorter, elsewhere, 10);
    peer.send(b"nobody's").unwrap();
    assert_eq!(taken(&other), [] as [&[u8]; 0]);
    let second = sit(&sorter, address, 10);
    let number = sys::socket_number(second.socket());
    assert_eq!((other.socket_number(), second.socket_number()), (number, number + 1));
    // What it does now concerns the new one alone.
    let third = sit(&sorter, address, 10);
    drop(second);
    peer.send(b"new").unwrap();
    assert_eq!(taken(&third), [b"new"]);
}

#[test]
fn the_socket_is_closed_when_the_last_has_gone() {
    let (sorter, local, greetings) = open(false);
    let (peer, address) = peer_of(local);
    let seat = sit(&sorter, address, 10);
    sorter.close();
    let (stranger, _) = peer_of(local);
    stranger.send(&greeting::HELLO).unwrap();
    peer.send(b"x").unwrap();
    assert_eq!(taken(&seat), [b"x"]);
    drop(seat);
    assert!(greetings.recv_timeout(LONG).is_err(), "the reader has ended, and let nobody in");
    let route = Route { to: address, from: None, class: 0 };
    assert!(sorter.seat(address, route, (10, LONGEST)).is_err());
    drop(sorter);
    let begin = std::time::Instant::now();
    while UdpSocket::bind(local).is_err() {
        assert!(begin.elapsed() < LONG, "the reader lets the socket go as its last");
        std::thread::yield_now();
    }
}

#[test]
fn a_peer_that_is_gone_harms_nobody_else() {
    let (sorter, local, _greetings) = open(false);
    let (gone, at_gone) = peer_of(local);
    let (peer, address) = peer_of(local);
    let (of_gone, seat) = (sit(&sorter, at_gone, 10), sit(&sorter, address, 100));
    sys::request_refusals(seat.socket()).unwrap();
    drop(gone);
    let say = |seat: &Seat, bytes: &[u8]| sys::send_along(seat.socket(), seat.route(), bytes);
    for number in 0..50_u8 {
        // What the network says of it may come with any call.
        let _ = say(&of_gone, b"anybody?");
        say(&seat, &[number]).unwrap();
        peer.send(&[number]).unwrap();
        let mut heard = [0; 8];
        assert_eq!((peer.recv(&mut heard).unwrap(), heard[0]), (1, number));
    }
    let expected: Vec<_> = (0..50_u8).map(|number| vec![number]).collect();
    assert_eq!(taken(&seat), expected);
}

#[cfg(target_os = "linux")]
#[test]
fn joined_datagrams_are_told_apart() {
    let (sorter, local, _greetings) = open(true);
    let (peer, address) = peer_of(local);
    let seat = sit(&sorter, address, 1000);
    let channel = Channel::new(Arc::new(peer.into())).unwrap();
    if !seat.joins() || channel.set_segment_size(Some(100)).is_err() {
        return;
    }
    let mut row: Vec<u8> = (0..40_u8).flat_map(|number| [number; 100]).collect();
    row.truncate(39 * 100 + 7);
    let len = row.len();
    assert_eq!(channel.send_messages(&mut row, len, len).unwrap(), 1);
    let mut expected: Vec<_> = (0..40_u8).map(|number| vec![number; 24]).collect();
    expected[39].truncate(7);
    assert_eq!(taken(&seat), expected);
    let Engine::DatagramsReceived { row, .. } = seat.engine(true) else { panic!("it receives") };
    assert!(row > 1);
}

/// A wait that does not end would take this long.
const LONG: Duration = Duration::from_secs(20);

/// Longer than any datagram of these tests.
const LONGEST: usize = 1 << 16;
