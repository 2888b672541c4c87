//! The controller as a driver of embassy-net. Whoever runs the executor wakes its task by
//! [`wake`] when a frame waits.

use core::task::Context;

use embassy_net_driver::{Capabilities, Driver, HardwareAddress, LinkState, RxToken, TxToken};
use embassy_sync::waitqueue::AtomicWaker;

use super::{Lan9118, Outgoing, Received, is_frame_waiting};
use crate::network::FRAME_BYTES;

impl Driver for Lan9118 {
    type RxToken<'a> = Received<'a>;
    type TxToken<'a> = Outgoing<'a>;

    fn receive(&mut self, context: &mut Context<'_>) -> Option<(Received<'_>, Outgoing<'_>)> {
        // Before the look, so that nothing comes in between unheard.
        STACK.register(context.waker());
        self.exchange()
    }

    fn transmit(&mut self, context: &mut Context<'_>) -> Option<Outgoing<'_>> {
        STACK.register(context.waker());
        self.outgoing()
    }

    fn link_state(&mut self, _context: &mut Context<'_>) -> LinkState {
        LinkState::Up
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::default();
        capabilities.max_transmission_unit = FRAME_BYTES;
        capabilities
    }

    fn hardware_address(&self) -> HardwareAddress {
        HardwareAddress::Ethernet(self.mac_address())
    }
}

impl RxToken for Received<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, read: F) -> R {
        read(self.0)
    }
}

impl TxToken for Outgoing<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, write: F) -> R {
        self.send(length, write)
    }
}

/// Wakes the task of the stack if a frame waits for it.
pub fn wake() {
    if is_frame_waiting() {
        STACK.wake();
    }
}

static STACK: AtomicWaker = AtomicWaker::new();
