//! An iperf3 server and client without an operating system and without an allocator: the linerate
//! engine behind whatever TCP/IP stack a chip has. Which connection is what, what is answered and how
//! much is sent is decided by the engine; the rest moves bytes.
//!
//! | stack | with feature | how it is driven |
//! |---|---|---|
#![cfg_attr(feature = "smoltcp", doc = "| smoltcp | `smoltcp` | polls: [`smoltcp`] |")]
#![cfg_attr(not(feature = "smoltcp"), doc = "| smoltcp | `smoltcp` | polls |")]
#![cfg_attr(feature = "embassy-net", doc = "| embassy-net | `embassy-net` | a task: [`embassy`] |")]
#![cfg_attr(not(feature = "embassy-net"), doc = "| embassy-net | `embassy-net` | a task |")]
//! | any other | | [`Server`] and [`Client`] are polled with what implements [`Net`] |
//!
//! With the feature `defmt` everything that is told can be logged.
//!
//! # What to know
//!
//! - **Payload.** Senders send what the lent transmit buffers hold. Fill them with random bytes once
//!   if something on the path could compress zeros.
//! - **Accuracy.** Everything that one poll finds arrived at its `now`.
//! - **Buffers.** A TCP window is as large as the buffer that a stream was lent. A datagram must fit
//!   into the UDP buffers and into a frame: none is cut into fragments.
//! - **Shares.** smoltcp, which is in embassy-net too, sends for the sockets in their order. Of a client's
//!   UDP streams without a rate (`-b 0`) the first may take all that the wire carries.
//! - **Ignored**, because small stacks have no such thing: window, segment size, type of service, flow
//!   label, congestion control, CPU numbers, repeating payload. Retransmits and CPU use are unknown.
#![no_std]
#![forbid(unsafe_code)]

pub use linerate_core as engine;

mod client;
mod connections;
mod net;
mod observer;
mod server;
mod storage;
mod stream;
mod test;

#[cfg(feature = "embassy-net")]
pub mod embassy;
#[cfg(feature = "smoltcp")]
pub mod smoltcp;

pub use client::{Client, Order};
pub use net::{Net, Path, Received, TcpState, Unsent};
pub use observer::{NotBegun, NotReached, Observer, Progress, TurnedAway};
pub use server::{Config, DOORS, Server};
pub use storage::{
    ClientBuffers, ClientStorage, ServerBuffers, ServerStorage, TcpBuffers, UdpBuffers,
};
