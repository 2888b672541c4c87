//! The loop of a board, on a host: smoltcp over a TAP device, with an iperf3 server in it.
//!
//! ```text
//! ip tuntap add dev tap0 mode tap
//! ip addr add 10.0.2.2/24 dev tap0 && ip link set tap0 up
//! cargo run --package linerate-embedded --example smoltcp_server -- tap0 10.0.2.15/24 &
//! iperf3 -c 10.0.2.15
//! ```

use std::net::SocketAddr;
use std::os::fd::AsRawFd;

use linerate_embedded::engine::protocol::cookie::Cookie;
use linerate_embedded::engine::report::StreamSummary;
use linerate_embedded::engine::session::Event;
use linerate_embedded::smoltcp::Server;
use linerate_embedded::{Config, Observer, Progress, ServerStorage, TurnedAway};
use smoltcp::iface::{Interface, PollIngressSingleResult, SocketSet, SocketStorage};
use smoltcp::phy::{Medium, TunTapInterface, wait};
use smoltcp::socket::udp::PacketMetadata;
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, IpCidr};

/// One stream each way.
const STREAMS: usize = 2;

fn main() {
    let mut args = std::env::args().skip(1);
    let (Some(tap), Some(address)) = (args.next(), args.next()) else {
        eprintln!("which TAP device, and which address on it? For example: tap0 10.0.2.15/24");
        std::process::exit(2);
    };
    let address: IpCidr = address.parse().expect("an address with its prefix length");
    let mut device =
        TunTapInterface::new(&tap, Medium::Ethernet).expect("the device can be opened");
    let mac = EthernetAddress([0x02, 0, 0, 0, 0, 0x15]);
    let config = smoltcp::iface::Config::new(mac.into());
    let mut interface = Interface::new(config, &mut device, Instant::now());
    interface.update_ip_addrs(|addresses| addresses.push(address).expect("the first fits"));

    let mut storage = ServerStorage::<STREAMS, 4096, 16384, 16384>::new();
    let mut metadata = [[PacketMetadata::EMPTY; 16]; 2];
    let mut places = [SocketStorage::EMPTY; Server::<STREAMS>::SOCKETS];
    let mut sockets = SocketSet::new(&mut places[..]);
    let mut server =
        Server::<STREAMS>::new(Config::default(), &mut sockets, storage.buffers(&mut metadata));
    println!("ready: {address} on {tap}");

    loop {
        let now = Instant::now();
        // One frame at a time: the server empties the buffers before they can overflow.
        let frame = interface.poll_ingress_single(now, &mut device, &mut sockets);
        let server_next = server.poll(now, &mut sockets, &mut Log);
        interface.poll_maintenance(now);
        interface.poll_egress(now, &mut device, &mut sockets);
        if frame == PollIngressSingleResult::None {
            let stack_next = interface.poll_at(now, &sockets);
            let next = server_next.into_iter().chain(stack_next).min();
            // What is due lies in the past, and the difference of two moments has no sign.
            let pause = next.map(|at| at.max(now) - now);
            wait(device.as_raw_fd(), pause).expect("the device can be waited for");
        }
    }
}

/// Prints what happens.
struct Log;

impl Observer<STREAMS> for Log {
    fn test_began(&mut self, peer: SocketAddr, cookie: Cookie) {
        println!("test of {peer}, cookie {cookie}");
    }

    fn test_event(&mut self, event: Event, test: Progress<'_, STREAMS>) {
        match event {
            Event::Measured => {
                let all = (0..STREAMS).filter_map(|index| test.accounts.summary(index));
                all.for_each(print_stream);
            }
            Event::Finished(ending) => println!("end of the test: {ending:?}"),
            _ => {}
        }
    }

    fn turned_away(&mut self, peer: Option<SocketAddr>, why: TurnedAway) {
        println!("turned away {peer:?}: {why:?}");
    }
}

fn print_stream(StreamSummary { id, role, local, .. }: StreamSummary) {
    let (number, datagrams) = (id.number(), local.datagrams);
    let millis = local.duration_ns.unwrap_or(0) / 1_000_000;
    let lost = datagrams.lost.unwrap_or(0);
    println!(
        "stream {number}, {role:?}: {} bytes in {millis} ms, {} packets, {lost} lost",
        local.bytes, datagrams.packets
    );
}
