//! An iperf3 server on smoltcp, in the loop that a board has anyway.
#![no_std]
#![no_main]

use cortex_m_rt::entry;
use linerate_embedded::smoltcp::Server;
use linerate_embedded::{Config, ServerStorage};
use linerate_firmware::STREAMS;
use linerate_firmware::log::Log;
use linerate_firmware::network::{
    CONTROL_BUFFER_BYTES, DATAGRAMS, TCP_BUFFER_BYTES, UDP_BUFFER_BYTES,
};
use smoltcp::iface::{SocketSet, SocketStorage};
use smoltcp::socket::udp::PacketMetadata;
use static_cell::{ConstStaticCell, StaticCell};

type Storage = ServerStorage<STREAMS, CONTROL_BUFFER_BYTES, TCP_BUFFER_BYTES, UDP_BUFFER_BYTES>;

#[entry]
fn main() -> ! {
    static STORAGE: ConstStaticCell<Storage> = ConstStaticCell::new(Storage::new());
    static METADATA: ConstStaticCell<[[PacketMetadata; DATAGRAMS]; 2]> =
        ConstStaticCell::new([[PacketMetadata::EMPTY; DATAGRAMS]; 2]);
    static PLACES: ConstStaticCell<[SocketStorage<'static>; Server::<STREAMS>::SOCKETS]> =
        ConstStaticCell::new([SocketStorage::EMPTY; Server::<STREAMS>::SOCKETS]);
    static SERVER: StaticCell<Server<STREAMS>> = StaticCell::new();

    let mut sockets = SocketSet::new(&mut PLACES.take()[..]);
    let buffers = STORAGE.take().buffers(METADATA.take());
    let server = SERVER.init_with(|| Server::new(Config::default(), &mut sockets, buffers));
    linerate_firmware::smoltcp::run(sockets, |now, _, sockets| server.poll(now, sockets, &mut Log))
}
