//! An iperf3 server on embassy-net, as a task.
#![no_std]
#![no_main]

use cortex_m_rt::entry;
use embassy_net::udp::PacketMetadata;
use embassy_net::{Stack, StackResources};
use linerate_embedded::embassy::Server;
use linerate_embedded::{Config, ServerStorage};
use linerate_firmware::STREAMS;
use linerate_firmware::log::Log;
use linerate_firmware::network::{
    CONTROL_BUFFER_BYTES, DATAGRAMS, TCP_BUFFER_BYTES, UDP_BUFFER_BYTES,
};
use static_cell::{ConstStaticCell, StaticCell};

type Storage = ServerStorage<STREAMS, CONTROL_BUFFER_BYTES, TCP_BUFFER_BYTES, UDP_BUFFER_BYTES>;

#[entry]
fn main() -> ! {
    static RESOURCES: StaticCell<StackResources<{ Server::<STREAMS>::SOCKETS }>> =
        StaticCell::new();
    linerate_firmware::embassy::run(&RESOURCES, |spawner, stack| {
        spawner.spawn(serve(stack).expect("the first of its kind"));
    })
}

#[embassy_executor::task]
async fn serve(stack: Stack<'static>) {
    static STORAGE: ConstStaticCell<Storage> = ConstStaticCell::new(Storage::new());
    static METADATA: ConstStaticCell<[[PacketMetadata; DATAGRAMS]; 2]> =
        ConstStaticCell::new([[PacketMetadata::EMPTY; DATAGRAMS]; 2]);
    static SERVER: StaticCell<Server<'static, STREAMS>> = StaticCell::new();
    let buffers = STORAGE.take().buffers(METADATA.take());
    let server = SERVER.init_with(|| Server::new(Config::default(), stack, buffers));
    server.run(&mut Log).await
}
