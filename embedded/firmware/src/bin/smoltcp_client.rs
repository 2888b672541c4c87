//! An iperf3 client on smoltcp, in the loop that a board has anyway: one test, and the machine ends.
#![no_std]
#![no_main]

use ::smoltcp::iface::{SocketSet, SocketStorage};
use ::smoltcp::socket::udp::PacketMetadata;
use cortex_m_rt::entry;
use linerate_embedded::ClientStorage;
use linerate_embedded::engine::session::ClientConfig;
use linerate_embedded::smoltcp::Client;
use linerate_firmware::log::{self, Log};
use linerate_firmware::network::{
    CONTROL_BUFFER_BYTES, DATAGRAMS, MTU_BYTES, TCP_BUFFER_BYTES, UDP_BUFFER_BYTES,
};
use linerate_firmware::order::{Order, cookie};
use linerate_firmware::{STREAMS, smoltcp};
use static_cell::{ConstStaticCell, StaticCell};

type Storage = ClientStorage<STREAMS, CONTROL_BUFFER_BYTES, TCP_BUFFER_BYTES, UDP_BUFFER_BYTES>;

#[entry]
fn main() -> ! {
    static STORAGE: ConstStaticCell<Storage> = ConstStaticCell::new(Storage::new());
    static METADATA: ConstStaticCell<[[[PacketMetadata; DATAGRAMS]; 2]; STREAMS]> =
        ConstStaticCell::new([[[PacketMetadata::EMPTY; DATAGRAMS]; 2]; STREAMS]);
    static PLACES: ConstStaticCell<[SocketStorage<'static>; Client::<STREAMS>::SOCKETS]> =
        ConstStaticCell::new([SocketStorage::EMPTY; Client::<STREAMS>::SOCKETS]);
    static CLIENT: StaticCell<Client<'static, STREAMS>> = StaticCell::new();

    let mut order = Some(Order::read());
    let mut sockets = SocketSet::new(&mut PLACES.take()[..]);
    let buffers = STORAGE.take().buffers(METADATA.take());
    let client = CLIENT.init_with(|| Client::new(MTU_BYTES, &mut sockets, buffers));
    smoltcp::run(sockets, |now, interface, sockets| {
        if let Some(Order { server, settings }) = order.take() {
            let config = ClientConfig::new(settings);
            let begun = client.start(now, interface, sockets, server.into(), config, cookie());
            log::begun(begun);
        }
        let next = client.poll(now, interface, sockets, &mut Log);
        if !client.is_busy() {
            log::over();
        }
        next
    })
}
