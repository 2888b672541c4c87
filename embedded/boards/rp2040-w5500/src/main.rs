//! An iperf3 server on a Raspberry Pi Pico with a W5500: WIZnet's W5500-EVB-Pico as it is, or a Pico
//! that is wired like it. The address comes by DHCP, and the log tells it:
//! `iperf3 -c ADDRESS`, with `-R` and `-u` as well.
//!
//! | W5500 | Pico |
//! |---|---|
//! | MISO | GP16, pin 21 |
//! | SCSn | GP17, pin 22 |
//! | SCLK | GP18, pin 24 |
//! | MOSI | GP19, pin 25 |
//! | RSTn | GP20, pin 26 |
//! | INTn | GP21, pin 27 |
//! | 3.3V, GND | 3V3, pin 36; GND, pin 23 |
//!
//! The debug probe goes to the three pins at the end of the board: SWCLK, GND, SWDIO.

#![no_std]
#![no_main]

use board_log::Log;
use defmt::{info, unwrap};
use defmt_rtt as _;
use embassy_executor::Spawner;
use embassy_net::StackResources;
use embassy_net::udp::PacketMetadata;
use embassy_net_wiznet::State;
use embassy_net_wiznet::chip::W5500;
use embassy_rp::clocks::RoscRng;
use embassy_rp::gpio::{Input, Level, Output, Pull};
use embassy_rp::peripherals::{DMA_CH0, DMA_CH1, SPI0};
use embassy_rp::spi::{self, Spi};
use embassy_rp::{bind_interrupts, dma};
use embassy_time::Delay;
use embedded_hal_bus::spi::ExclusiveDevice;
use linerate_embedded::embassy::Server;
use linerate_embedded::{Config, ServerStorage};
use panic_probe as _;
use static_cell::{ConstStaticCell, StaticCell};

bind_interrupts!(struct Irqs {
    DMA_IRQ_0 => dma::InterruptHandler<DMA_CH0>, dma::InterruptHandler<DMA_CH1>;
});

/// Of the range that everyone may use; a second board in the same network needs another.
const MAC: [u8; 6] = [0x02, 0x00, 0x00, 0x00, 0x52, 0x01];

/// One each way, for `--bidir`.
const STREAMS: usize = 2;
/// The server's, and one for DHCP.
const SOCKETS: usize = Server::<STREAMS>::SOCKETS + 1;

#[embassy_executor::main]
async fn main(spawner: Spawner) -> ! {
    let p = embassy_rp::init(Default::default());

    let mut config = spi::Config::default();
    config.frequency = 50_000_000;
    let bus = Spi::new(p.SPI0, p.PIN_18, p.PIN_19, p.PIN_16, p.DMA_CH0, p.DMA_CH1, Irqs, config);
    let select = Output::new(p.PIN_17, Level::High);
    let reset = Output::new(p.PIN_20, Level::High);
    let interrupt = Input::new(p.PIN_21, Pull::Up);

    static FRAMES: StaticCell<State<8, 8>> = StaticCell::new();
    let frames = FRAMES.init_with(State::new);
    let device = unwrap!(ExclusiveDevice::new(bus, select, Delay));
    let made = embassy_net_wiznet::new(MAC, frames, device, interrupt, reset).await;
    let (device, runner) = unwrap!(made.ok(), "no W5500 answers; check the wiring");
    spawner.spawn(unwrap!(w5500(runner)));

    static RESOURCES: StaticCell<StackResources<SOCKETS>> = StaticCell::new();
    let resources = RESOURCES.init_with(StackResources::new);
    let config = embassy_net::Config::dhcpv4(Default::default());
    let (stack, runner) = embassy_net::new(device, config, resources, RoscRng.next_u64());
    spawner.spawn(unwrap!(network(runner)));

    stack.wait_config_up().await;
    info!("address: {}", stack.config_v4().map(|config| config.address));

    static STORAGE: ConstStaticCell<ServerStorage<STREAMS, 512, 8192, 8192>> =
        ConstStaticCell::new(ServerStorage::new());
    static METADATA: ConstStaticCell<[[PacketMetadata; 16]; 2]> =
        ConstStaticCell::new([[PacketMetadata::EMPTY; 16]; 2]);
    let buffers = STORAGE.take().buffers(METADATA.take());
    Server::new(Config::default(), stack, buffers).run(&mut Log).await
}

/// Moves frames between the W5500 and the stack.
#[embassy_executor::task]
async fn w5500(
    runner: embassy_net_wiznet::Runner<
        'static,
        W5500,
        ExclusiveDevice<Spi<'static, SPI0, spi::Async>, Output<'static>, Delay>,
        Input<'static>,
        Output<'static>,
    >,
) -> ! {
    runner.run().await
}

/// Runs the stack.
#[embassy_executor::task]
async fn network(
    mut runner: embassy_net::Runner<'static, embassy_net_wiznet::Device<'static>>,
) -> ! {
    runner.run().await
}
