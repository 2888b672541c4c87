//! The addresses that all images have: those that QEMU's user network gives to its first guest, so
//! that the same image runs there and on a TAP device.

use core::net::{Ipv4Addr, Ipv6Addr};

/// The board's.
pub const IPV4: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 15);
/// Bits of the network in it.
pub const IPV4_PREFIX: u8 = 24;
/// The way to other networks; also the host itself.
pub const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 2);
/// The board's.
pub const IPV6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0x15);
/// Bits of the network in it.
pub const IPV6_PREFIX: u8 = 64;
/// What servers listen on.
pub const PORT: u16 = 5201;
/// The longest IP packet.
pub const MTU_BYTES: usize = 1500;
/// The longest frame: such a packet and the header of Ethernet.
pub const FRAME_BYTES: usize = MTU_BYTES + 14;

/// Bytes of the buffers of TCP streams, each way. A window that is larger than what the controller
/// holds loses frames.
pub const TCP_BUFFER_BYTES: usize = 8192;
/// Bytes of the buffers for datagrams, each way.
pub const UDP_BUFFER_BYTES: usize = 4096;
/// Datagrams that are in them at most.
pub const DATAGRAMS: usize = 8;
/// Bytes of the buffers of control connections, each way.
pub const CONTROL_BUFFER_BYTES: usize = 1024;
