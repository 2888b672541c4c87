//! The controller as a device of smoltcp.

use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant;

use super::{Lan9118, Outgoing, Received};
use crate::network::FRAME_BYTES;

impl Device for Lan9118 {
    type RxToken<'a> = Received<'a>;
    type TxToken<'a> = Outgoing<'a>;

    fn receive(&mut self, _now: Instant) -> Option<(Received<'_>, Outgoing<'_>)> {
        self.exchange()
    }

    fn transmit(&mut self, _now: Instant) -> Option<Outgoing<'_>> {
        self.outgoing()
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = FRAME_BYTES;
        capabilities
    }
}

impl RxToken for Received<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(self.0)
    }
}

impl TxToken for Outgoing<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, write: F) -> R {
        self.send(length, write)
    }
}
