//! embassy-net on the board: its task, its addresses, and the executor that runs it.

use embassy_executor::Spawner;
use embassy_net::{Config, ConfigV6, Ipv4Cidr, Ipv6Cidr, Runner, Stack};
use embassy_net::{StackResources, StaticConfigV4, StaticConfigV6};
use static_cell::{ConstStaticCell, StaticCell};

use crate::lan9118::Lan9118;
use crate::{executor, log, network, power};

/// Sets up the network, with places for `SOCKETS` sockets, and runs tasks for ever; `begin` spawns
/// the first.
pub fn run<const SOCKETS: usize>(
    resources: &'static StaticCell<StackResources<SOCKETS>>,
    begin: impl FnOnce(Spawner, Stack<'static>),
) -> ! {
    static DEVICE: ConstStaticCell<Lan9118> = ConstStaticCell::new(Lan9118::new());
    let device = DEVICE.take();
    device.start();
    power::start();
    let resources = resources.init_with(StackResources::new);
    let (stack, runner) = embassy_net::new(device, config(), resources, SEED);
    executor::run(|spawner| {
        spawner.spawn(network_task(runner).expect("the first of its kind"));
        begin(spawner, stack);
        log::ready();
    })
}

#[embassy_executor::task]
async fn network_task(mut runner: Runner<'static, &'static mut Lan9118>) {
    runner.run().await
}

fn config() -> Config {
    let mut config = Config::ipv4_static(StaticConfigV4 {
        address: Ipv4Cidr::new(network::IPV4, network::IPV4_PREFIX),
        gateway: Some(network::GATEWAY),
        dns_servers: Default::default(),
    });
    config.ipv6 = ConfigV6::Static(StaticConfigV6 {
        address: Ipv6Cidr::new(network::IPV6, network::IPV6_PREFIX),
        gateway: None,
        dns_servers: Default::default(),
    });
    config
}

/// Of port and sequence numbers. A real board takes one that differs at each start.
const SEED: u64 = 0x006c_696e_6572_6174;
