//! An iperf3 server on smoltcp, in the loop that a board has anyway.
#![no_std]
#![no_main]

use cortex_m_rt::entry;
use linerate_embedded::engine::protocol::cookie::Cookie;
use linerate_embedded::engine::session::{Event, ServerSession};
use linerate_embedded::smoltcp::{Config, Observer, Server, Storage, TurnedAway};
use linerate_firmware::{log, smoltcp};
use ::smoltcp::iface::{SocketSet, SocketStorage};
use ::smoltcp::socket::udp::PacketMetadata;
use ::smoltcp::wire::IpEndpoint;
use static_cell::{ConstStaticCell, StaticCell};

/// One stream, or more by the build's setting.
const STREAMS: usize = linerate_firmware::STREAMS;
/// Bytes for the texts of a client.
const TEXT: usize = 64;

#[entry]
fn main() -> ! {
    static STORAGE: ConstStaticCell<Storage<STREAMS, 1024, 8192, 4096>> =
        ConstStaticCell::new(Storage::new());
    static METADATA: ConstStaticCell<[[PacketMetadata; 8]; 2]> =
        ConstStaticCell::new([[PacketMetadata::EMPTY; 8]; 2]);
    static PLACES: ConstStaticCell<[SocketStorage<'static>; Server::<STREAMS, TEXT>::SOCKETS]> =
        ConstStaticCell::new([SocketStorage::EMPTY; Server::<STREAMS, TEXT>::SOCKETS]);
    static SERVER: StaticCell<Server<STREAMS, TEXT>> = StaticCell::new();

    let mut sockets = SocketSet::new(&mut PLACES.take()[..]);
    let buffers = STORAGE.take().buffers(METADATA.take());
    let server = SERVER.init(Server::new(Config::default(), &mut sockets, buffers));
    smoltcp::run(sockets, |now, sockets| server.poll(now, sockets, &mut Log))
}

/// Tells what happens.
struct Log;

impl Observer<STREAMS, TEXT> for Log {
    fn test_began(&mut self, peer: IpEndpoint, _cookie: Cookie) {
        defmt::info!("test of {}", peer);
    }

    fn test_event(&mut self, event: Event, session: &ServerSession<STREAMS, TEXT>) {
        log::event(event, session);
    }

    fn turned_away(&mut self, peer: Option<IpEndpoint>, why: TurnedAway) {
        defmt::info!("turned away {}: {}", peer, why);
    }
}
