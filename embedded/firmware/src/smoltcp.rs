//! The loop of a board with smoltcp: one frame, then whatever is to be done about it, and sleep when
//! there is neither.

use smoltcp::iface::{Config, Interface, PollIngressSingleResult, SocketSet};
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, IpCidr};
use static_cell::ConstStaticCell;

use crate::lan9118::Lan9118;
use crate::{clock, lan9118, log, network, power};

/// Sets up the network and goes round for ever. `work` is done after each frame; it tells when it is
/// to be done again at the latest.
///
/// # Panics
///
/// When it is called twice.
pub fn run(
    mut sockets: SocketSet<'_>,
    mut work: impl FnMut(Instant, &mut Interface, &mut SocketSet<'_>) -> Option<Instant>,
) -> ! {
    static DEVICE: ConstStaticCell<Lan9118> = ConstStaticCell::new(Lan9118::new());
    let device = DEVICE.take();
    device.start();
    power::start();
    let mut interface = interface(device);
    log::ready();
    loop {
        let now = now();
        // One frame at a time: buffers are emptied before they can overflow.
        let frame = interface.poll_ingress_single(now, device, &mut sockets);
        let work_next = work(now, &mut interface, &mut sockets);
        interface.poll_maintenance(now);
        interface.poll_egress(now, device, &mut sockets);
        if frame == PollIngressSingleResult::None {
            let stack_next = interface.poll_at(now, &sockets);
            sleep_until(work_next.into_iter().chain(stack_next).min());
        }
    }
}

fn interface(device: &mut Lan9118) -> Interface {
    let config = Config::new(EthernetAddress(device.mac_address()).into());
    let mut interface = Interface::new(config, device, now());
    interface.update_ip_addrs(|addresses| {
        for address in [
            IpCidr::new(network::IPV4.into(), network::IPV4_PREFIX),
            IpCidr::new(network::IPV6.into(), network::IPV6_PREFIX),
        ] {
            addresses.push(address).expect("there is room for two");
        }
    });
    let gateway = interface.routes_mut().add_default_ipv4_route(network::GATEWAY);
    gateway.expect("there is room for one");
    interface
}

fn sleep_until(next: Option<Instant>) {
    let next = next.map(|at| u64::try_from(at.total_micros()).unwrap_or(0));
    if let Some(at) = next {
        clock::wake_at(at);
    }
    power::sleep_unless(|| {
        lan9118::listen();
        next.is_some_and(|at| at <= clock::micros()) || lan9118::is_frame_waiting()
    });
}

fn now() -> Instant {
    Instant::from_micros(i64::try_from(clock::micros()).unwrap_or(i64::MAX))
}
