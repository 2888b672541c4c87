//! An iperf3 server on smoltcp, TCP and UDP, one test at a time. It is polled: it owns no device, no
//! clock and no memory but its own state, and fits into the loop that polls the interface anyway.
//! Which connection is what, what is answered and how much is sent is decided by the engine.
//!
//! ```
//! use linerate_embedded::smoltcp::{Config, Server, Storage};
//! # use smoltcp::iface::{Interface, SocketSet, SocketStorage};
//! # use smoltcp::socket::udp::PacketMetadata;
//!
//! /// Room for one stream a test, 64 bytes of title and other texts.
//! type OneStream = Server<1, 64>;
//!
//! // Bytes each way: 512 for a control connection, 4096 for the TCP stream, 4096 for datagrams.
//! let mut storage = Storage::<1, 512, 4096, 4096>::new();
//! let mut metadata = [[PacketMetadata::EMPTY; 16]; 2];
//! let mut places = [SocketStorage::EMPTY; OneStream::SOCKETS];
//! let mut sockets = SocketSet::new(&mut places[..]);
//! let mut server = OneStream::new(Config::default(), &mut sockets, storage.buffers(&mut metadata));
//! # let mut device = smoltcp::phy::Loopback::new(smoltcp::phy::Medium::Ip);
//! # let config = smoltcp::iface::Config::new(smoltcp::wire::HardwareAddress::Ip);
//! # let clock = || smoltcp::time::Instant::from_millis(5);
//! # let mut interface = Interface::new(config, &mut device, clock());
//!
//! // The superloop, once around:
//! let now = clock();
//! interface.poll(now, &mut device, &mut sockets);
//! let server_next = server.poll(now, &mut sockets, &mut ());
//! let stack_next = interface.poll_at(now, &sockets);
//! let next = server_next.into_iter().chain(stack_next).min();
//! // Sleep until `next`, a frame or another event, whichever comes first.
//! # let _ = next;
//! ```
//!
//! # What to know
//!
//! - **Payload.** Senders send what the lent transmit buffers hold. Fill them with random bytes once
//!   if something on the path could compress zeros.
//! - **Accuracy.** Everything that one `poll` finds arrived at its `now`. A loop that takes one frame
//!   at a time (`poll_ingress_single`) between two polls of the server loses no datagram to a full
//!   buffer and measures jitter by the microsecond; [`Interface::poll`] takes all that wait.
//! - **Time.** What smoltcp's `poll_at` says is due at once has a time long past, and the difference of
//!   two of its instants has no sign: compare before you subtract.
//! - **Buffers.** A TCP window is as large as the buffer that a stream was lent. A datagram must fit
//!   into the UDP buffers and into a frame: smoltcp cuts none here.
//! - **Ignored**, because the stack has no such thing: window, segment size, type of service, flow
//!   label, congestion control, CPU numbers, repeating payload. Retransmits and CPU use are unknown.
//!
//! [`Interface::poll`]: smoltcp::iface::Interface::poll

mod connections;
mod observer;
mod server;
mod storage;
mod stream;
mod tcp;
mod test;
mod time;
mod udp;

pub use observer::{Observer, TurnedAway};
pub use server::{Config, Server};
pub use storage::{Buffers, Storage, TcpBuffers, UdpBuffers};
