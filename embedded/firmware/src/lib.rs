//! A small board with Ethernet as QEMU emulates it (`mps2-an385`: Cortex-M3 at 25 MHz, LAN9118), and
//! what its images share: the driver of its network controller for both stacks, a clock, sleep, logs,
//! and the depth of the stack.
//!
//! | module | holds |
//! |---|---|
//! | [`lan9118`] | the driver, as smoltcp and embassy-net want it |
//! | [`clock`] | microseconds since the start, and one alarm |
//! | [`power`] | sleep until something happens, and how long was slept |
//! | [`smoltcp`], [`embassy`] | the loop of a board with either stack |
//! | [`executor`] | embassy's executor on that sleep, and its clock |
//! | [`stack`] | how deep the stack ever was |
//! | [`network`] | the addresses of all images |
//! | [`log`] | what servers tell, in the words that the tests read |
//! | [`order`] | what clients are to do |
//! | [`bare`] | what the loops without a server are asked for |
#![no_std]

pub mod bare;
pub mod clock;
pub mod embassy;
pub mod executor;
pub mod lan9118;
pub mod log;
pub mod network;
pub mod order;
pub mod power;
mod register;
pub mod smoltcp;
pub mod stack;

use cortex_m_rt::{ExceptionFrame, exception};
use defmt_semihosting as _;

/// Where a panic arrives in a build that keeps its messages, which ours is not.
#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    let (file, line) = info.location().map_or(("", 0), |place| (place.file(), place.line()));
    defmt::error!("panicked at {}:{}", file, line);
    semihosting::process::exit(1)
}

/// Where a panic arrives, and whatever else should not be: says where it was and ends the machine.
// SAFETY: it touches nothing that it interrupts, for it never returns.
#[exception]
unsafe fn HardFault(frame: &ExceptionFrame) -> ! {
    defmt::error!("panic or fault at {:#x}, called from {:#x}", frame.pc(), frame.lr());
    semihosting::process::exit(1)
}

/// Streams that a test may have, both ways together: what `LINERATE_STREAMS` said at build time, else
/// one.
pub const STREAMS: usize = match option_env!("LINERATE_STREAMS") {
    Some(text) => match usize::from_str_radix(text, 10) {
        Ok(streams) => streams,
        Err(_) => panic!("LINERATE_STREAMS is no number"),
    },
    None => 1,
};
