//! An iperf3 server on ST's NUCLEO-H743ZI2, and as it is on the NUCLEO-H753ZI, whose chip is the same
//! with a cipher unit. The address comes by DHCP, and the log tells it: `iperf3 -c ADDRESS`, with `-R`
//! and `-u` as well.
//!
//! Nothing is to be wired: the Ethernet socket is the board's, and the USB socket CN1 is its debug probe.
//! The pins below are those that the board leads to its PHY, as long as its jumpers and solder bridges
//! are as delivered.

#![no_std]
#![no_main]

use board_log::Log;
use defmt::{info, unwrap};
use defmt_rtt as _;
use embassy_executor::Spawner;
use embassy_net::StackResources;
use embassy_net::udp::PacketMetadata;
use embassy_stm32::eth::{self, Ethernet, GenericPhy, PacketQueue, Sma};
use embassy_stm32::peripherals::{ETH, ETH_SMA, RNG};
use embassy_stm32::rng::{self, Rng};
use embassy_stm32::{bind_interrupts, rcc, uid};
use linerate_embedded::embassy::Server;
use linerate_embedded::{Config, ServerStorage};
use panic_probe as _;
use static_cell::{ConstStaticCell, StaticCell};

bind_interrupts!(struct Irqs {
    ETH => eth::InterruptHandler;
    RNG => rng::InterruptHandler<RNG>;
});

/// One each way, for `--bidir`.
const STREAMS: usize = 2;
/// The server's, and one for DHCP.
const SOCKETS: usize = Server::<STREAMS>::SOCKETS + 1;

#[embassy_executor::main]
async fn main(spawner: Spawner) -> ! {
    let p = embassy_stm32::init(clocks());
    let mut seed = [0; 8];
    Rng::new(p.RNG, Irqs).fill_bytes(&mut seed);

    static FRAMES: StaticCell<PacketQueue<8, 8>> = StaticCell::new();
    let device = Ethernet::new(
        FRAMES.init_with(PacketQueue::new),
        p.ETH,
        Irqs,
        p.PA1,  // reference clock
        p.PA7,  // carrier sense, data valid
        p.PC4,  // received bit 0
        p.PC5,  // received bit 1
        p.PG13, // sent bit 0
        p.PB13, // sent bit 1
        p.PG11, // transmit enable
        mac(),
        p.ETH_SMA,
        p.PA2, // management data
        p.PC1, // management clock
    );

    static RESOURCES: StaticCell<StackResources<SOCKETS>> = StaticCell::new();
    let resources = RESOURCES.init_with(StackResources::new);
    let config = embassy_net::Config::dhcpv4(Default::default());
    let (stack, runner) = embassy_net::new(device, config, resources, u64::from_le_bytes(seed));
    spawner.spawn(unwrap!(network(runner)));

    stack.wait_config_up().await;
    info!("address: {}", stack.config_v4().map(|config| config.address));

    static STORAGE: ConstStaticCell<ServerStorage<STREAMS, 512, 32768, 32768>> =
        ConstStaticCell::new(ServerStorage::new());
    static METADATA: ConstStaticCell<[[PacketMetadata; 32]; 2]> =
        ConstStaticCell::new([[PacketMetadata::EMPTY; 32]; 2]);
    let buffers = STORAGE.take().buffers(METADATA.take());
    Server::new(Config::default(), stack, buffers).run(&mut Log).await
}

/// Runs the stack and the Ethernet peripheral under it.
#[embassy_executor::task]
async fn network(
    mut runner: embassy_net::Runner<
        'static,
        Ethernet<'static, ETH, GenericPhy<Sma<'static, ETH_SMA>>>,
    >,
) -> ! {
    runner.run().await
}

/// The core at 400 MHz from the internal oscillator, its buses at 200 and 100, and 48 MHz for the
/// random number generator.
fn clocks() -> embassy_stm32::Config {
    let mut config = embassy_stm32::Config::default();
    config.rcc.hsi48 = Some(Default::default());
    config.rcc.pll1 = Some(rcc::Pll {
        source: rcc::PllSource::HSI,
        prediv: rcc::PllPreDiv::DIV4,
        mul: rcc::PllMul::MUL50,
        fracn: None,
        divp: Some(rcc::PllDiv::DIV2),
        divq: None,
        divr: None,
    });
    config.rcc.sys = rcc::Sysclk::PLL1_P;
    config.rcc.ahb_pre = rcc::AHBPrescaler::DIV2;
    config.rcc.apb1_pre = rcc::APBPrescaler::DIV2;
    config.rcc.apb2_pre = rcc::APBPrescaler::DIV2;
    config.rcc.apb3_pre = rcc::APBPrescaler::DIV2;
    config.rcc.apb4_pre = rcc::APBPrescaler::DIV2;
    config.rcc.voltage_scale = rcc::VoltageScale::Scale1;
    config
}

/// Of the range that everyone may use, and another for each chip.
fn mac() -> [u8; 6] {
    let uid = uid::uid();
    [0x02, uid[0], uid[2], uid[4], uid[8], uid[9]]
}
