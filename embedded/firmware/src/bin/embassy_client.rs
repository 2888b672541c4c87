//! An iperf3 client on embassy-net, as a task: one test, and the machine ends.
#![no_std]
#![no_main]

use cortex_m_rt::entry;
use embassy_net::udp::PacketMetadata;
use embassy_net::{Stack, StackResources};
use linerate_embedded::ClientStorage;
use linerate_embedded::embassy::Client;
use linerate_embedded::engine::session::ClientConfig;
use linerate_firmware::STREAMS;
use linerate_firmware::log::{self, Log};
use linerate_firmware::network::{
    CONTROL_BUFFER_BYTES, DATAGRAMS, MTU_BYTES, TCP_BUFFER_BYTES, UDP_BUFFER_BYTES,
};
use linerate_firmware::order::{Order, cookie};
use static_cell::{ConstStaticCell, StaticCell};

type Storage = ClientStorage<STREAMS, CONTROL_BUFFER_BYTES, TCP_BUFFER_BYTES, UDP_BUFFER_BYTES>;

#[entry]
fn main() -> ! {
    static RESOURCES: StaticCell<StackResources<{ Client::<STREAMS>::SOCKETS }>> =
        StaticCell::new();
    linerate_firmware::embassy::run(&RESOURCES, |spawner, stack| {
        spawner.spawn(measure(stack).expect("the first of its kind"));
    })
}

#[embassy_executor::task]
async fn measure(stack: Stack<'static>) {
    static STORAGE: ConstStaticCell<Storage> = ConstStaticCell::new(Storage::new());
    static METADATA: ConstStaticCell<[[[PacketMetadata; DATAGRAMS]; 2]; STREAMS]> =
        ConstStaticCell::new([[[PacketMetadata::EMPTY; DATAGRAMS]; 2]; STREAMS]);
    static CLIENT: StaticCell<Client<'static, 'static, STREAMS>> = StaticCell::new();
    let buffers = STORAGE.take().buffers(METADATA.take());
    let client = CLIENT.init_with(|| Client::new(MTU_BYTES, stack, buffers));
    stack.wait_config_up().await;
    let Order { server, settings } = Order::read();
    log::begun(client.start(server, ClientConfig::new(settings), cookie()));
    client.run(&mut Log).await;
    log::over();
}
