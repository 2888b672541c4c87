//! The loop of a board, on a host: smoltcp over a TAP device, with an iperf3 server or client in it.
//!
//! ```text
//! ip tuntap add dev tap0 mode tap
//! ip addr add 10.0.2.2/24 dev tap0 && ip link set tap0 up
//! cargo run --package linerate-embedded --example smoltcp_tap -- tap0 10.0.2.15/24 &
//! iperf3 -c 10.0.2.15
//! ```
//!
//! or, as a client that knows the options `-p -t -n -b -l -P -u -R --bidir -O`:
//!
//! ```text
//! iperf3 -s &
//! cargo run --package linerate-embedded --example smoltcp_tap -- tap0 10.0.2.15/24 -c 10.0.2.2 -R
//! ```

mod options;

use std::io::Read;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::process::ExitCode;

use linerate_embedded::engine::protocol::cookie::Cookie;
use linerate_embedded::engine::report::{SideSummary, StreamSummary};
use linerate_embedded::engine::session::{ClientConfig, Ending, Event};
use linerate_embedded::smoltcp::{Client, Server};
use linerate_embedded::{
    ClientStorage, Config, NotReached, Observer, Progress, ServerStorage, TurnedAway,
};
use smoltcp::iface::{Interface, PollIngressSingleResult, SocketSet};
use smoltcp::phy::{Medium, TunTapInterface, wait};
use smoltcp::socket::udp::PacketMetadata;
use smoltcp::time::Instant;
use smoltcp::wire::EthernetAddress;

use options::Options;

/// Two streams each way.
const STREAMS: usize = 4;
/// Of a TCP stream, and of the datagrams, each way. It makes a gigabit on a wire of half a millisecond.
const BUFFER_BYTES: usize = 65_536;
const CONTROL_BYTES: usize = 4096;
const MTU: usize = 1500;

fn main() -> ExitCode {
    match Options::parse(std::env::args().skip(1)) {
        Ok(options) => run(&options),
        Err(why) => {
            eprintln!("{why}; for example: tap0 10.0.2.15/24, and for a client: -c 10.0.2.2");
            ExitCode::from(2)
        }
    }
}

fn run(options: &Options) -> ExitCode {
    let mut device =
        TunTapInterface::new(&options.tap, Medium::Ethernet).expect("the device can be opened");
    let mac = EthernetAddress([0x02, 0, 0, 0, 0, 0x15]);
    let config = smoltcp::iface::Config::new(mac.into());
    let mut interface = Interface::new(config, &mut device, Instant::now());
    interface.update_ip_addrs(|addresses| addresses.push(options.address).expect("the first fits"));

    let mut sockets = SocketSet::new(Vec::new());
    let mut log = Log { is_complete: false };
    match &options.order {
        None => {
            let mut storage =
                ServerStorage::<STREAMS, CONTROL_BYTES, BUFFER_BYTES, BUFFER_BYTES>::new();
            let mut metadata = [[PacketMetadata::EMPTY; 64]; 2];
            let buffers = storage.buffers(&mut metadata);
            let mut server = Server::<STREAMS>::new(Config::default(), &mut sockets, buffers);
            println!("ready: {} on {}", options.address, options.tap);
            go_round(&mut device, &mut interface, &mut sockets, |now, _, sockets| {
                Some(server.poll(now, sockets, &mut log))
            });
        }
        Some((server, settings)) => {
            let mut storage =
                ClientStorage::<STREAMS, CONTROL_BYTES, BUFFER_BYTES, BUFFER_BYTES>::new();
            let mut metadata = [[[PacketMetadata::EMPTY; 64]; 2]; STREAMS];
            let buffers = storage.buffers(&mut metadata);
            let mut client = Client::<STREAMS>::new(MTU, &mut sockets, buffers);
            let config = ClientConfig::new(*settings);
            let (now, cookie) = (Instant::now(), Cookie::from_random(random_bytes()));
            let begun = client.start(now, &mut interface, &mut sockets, *server, config, cookie);
            if let Err(why) = begun {
                eprintln!("the test cannot begin: {why:?}");
                return ExitCode::FAILURE;
            }
            go_round(&mut device, &mut interface, &mut sockets, |now, interface, sockets| {
                let next = client.poll(now, interface, sockets, &mut log);
                client.is_busy().then_some(next)
            });
        }
    }
    if log.is_complete { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The superloop: polls the stack and the endpoint, which says when it is to be polled again, until it
/// has nothing more to do.
fn go_round<'a>(
    device: &mut TunTapInterface,
    interface: &mut Interface,
    sockets: &mut SocketSet<'a>,
    mut poll: impl FnMut(Instant, &mut Interface, &mut SocketSet<'a>) -> Option<Option<Instant>>,
) {
    loop {
        let now = Instant::now();
        // One frame at a time: the endpoint empties the buffers before they can overflow.
        let frame = interface.poll_ingress_single(now, device, sockets);
        let next = poll(now, interface, sockets);
        interface.poll_maintenance(now);
        interface.poll_egress(now, device, sockets);
        let Some(endpoint_next) = next else { return };
        if frame == PollIngressSingleResult::None {
            let stack_next = interface.poll_at(now, sockets);
            let next = endpoint_next.into_iter().chain(stack_next).min();
            // What is due lies in the past, and the difference of two moments has no sign.
            let pause = next.map(|at| at.max(now) - now);
            wait(device.as_raw_fd(), pause).expect("the device can be waited for");
        }
    }
}

fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let file = std::fs::File::open("/dev/urandom");
    file.and_then(|mut file| file.read_exact(&mut bytes)).expect("the system has random bytes");
    bytes
}

/// Prints what happens.
struct Log {
    is_complete: bool,
}

impl Observer<STREAMS> for Log {
    fn test_began(&mut self, peer: SocketAddr, cookie: Cookie) {
        println!("test of {peer}, cookie {cookie}");
    }

    fn test_event(&mut self, event: Event, test: Progress<'_, STREAMS>) {
        if let Event::Finished(ending) = event {
            let all = (0..STREAMS).filter_map(|index| test.accounts.summary(index));
            all.for_each(|stream| print_stream(&stream));
            println!("end of the test: {ending:?}");
            self.is_complete = ending == Ending::Complete;
        }
    }

    fn turned_away(&mut self, peer: Option<SocketAddr>, why: TurnedAway) {
        println!("turned away {peer:?}: {why:?}");
    }

    fn not_reached(&mut self, server: SocketAddr, why: NotReached) {
        println!("{server} was not reached: {why:?}");
    }
}

fn print_stream(stream: &StreamSummary) {
    println!(
        "stream {}, {:?}: sent {}; received {}",
        stream.id.number(),
        stream.role,
        told(stream.sent()),
        told(stream.received())
    );
}

fn told(side: Option<&SideSummary>) -> String {
    let Some(side) = side else { return "unknown".to_owned() };
    let SideSummary { bytes, duration_ns, datagrams, .. } = side;
    let millis = duration_ns.unwrap_or(0) / 1_000_000;
    let lost = datagrams.lost.unwrap_or(0);
    format!("{bytes} bytes in {millis} ms, {} packets, {lost} lost", datagrams.packets)
}
