//! The memory that a server's sockets work in. It belongs to the caller, who lends it for as long as
//! the sockets live: piece by piece as [`Buffers`], or as one [`Storage`] of usual sizes.

use smoltcp::socket::{tcp, udp};

use super::connections::DOORS;

/// What is lent to a server with at most `N` streams a test.
#[derive(Debug)]
pub struct Buffers<'a, const N: usize> {
    /// For control connections, and whoever else comes; 256 bytes each way are enough. A stock
    /// client that is not told a size (`-l`) sends datagrams of half of what is received here, at
    /// most what fits its frames: it takes the segment size of this connection, which systems hold
    /// down to half of the window.
    pub control: [TcpBuffers<'a>; DOORS],
    /// For TCP streams.
    pub streams: [TcpBuffers<'a>; N],
    /// For all UDP streams together.
    pub udp: UdpBuffers<'a>,
}

/// The buffers of one TCP connection.
#[derive(Debug)]
pub struct TcpBuffers<'a> {
    /// The window that is offered to the sender.
    pub receive: &'a mut [u8],
    /// What may be on its way at once.
    pub transmit: &'a mut [u8],
}

/// The buffers of the UDP port. A queue holds as many datagrams as there are places for metadata.
#[derive(Debug)]
pub struct UdpBuffers<'a> {
    /// Places for received datagrams.
    pub receive_metadata: &'a mut [udp::PacketMetadata],
    /// Their bytes.
    pub receive: &'a mut [u8],
    /// Places for datagrams to be sent.
    pub transmit_metadata: &'a mut [udp::PacketMetadata],
    /// Their bytes.
    pub transmit: &'a mut [u8],
}

impl<'a> TcpBuffers<'a> {
    pub(super) fn into_socket(self) -> tcp::Socket<'a> {
        tcp::Socket::new(
            tcp::SocketBuffer::new(self.receive),
            tcp::SocketBuffer::new(self.transmit),
        )
    }
}

impl<'a> UdpBuffers<'a> {
    pub(super) fn into_socket(self) -> udp::Socket<'a> {
        udp::Socket::new(
            udp::PacketBuffer::new(self.receive_metadata, self.receive),
            udp::PacketBuffer::new(self.transmit_metadata, self.transmit),
        )
    }
}

/// Memory for a server with at most `N` streams a test, so many bytes each way: `CONTROL` for each
/// of the [`Buffers::control`], `TCP` for each TCP stream, `UDP` for all UDP streams together. It is
/// all zeros at first, so that as a static it takes no flash.
#[derive(Debug)]
pub struct Storage<const N: usize, const CONTROL: usize, const TCP: usize, const UDP: usize> {
    control: [[[u8; CONTROL]; 2]; DOORS],
    streams: [[[u8; TCP]; 2]; N],
    datagrams: [[u8; UDP]; 2],
}

impl<const N: usize, const CONTROL: usize, const TCP: usize, const UDP: usize>
    Storage<N, CONTROL, TCP, UDP>
{
    /// Zeros.
    pub const fn new() -> Self {
        Self {
            control: [[[0; CONTROL]; 2]; DOORS],
            streams: [[[0; TCP]; 2]; N],
            datagrams: [[0; UDP]; 2],
        }
    }

    /// All of it, to lend, with places for `D` datagrams each way.
    pub fn buffers<'a, const D: usize>(
        &'a mut self,
        metadata: &'a mut [[udp::PacketMetadata; D]; 2],
    ) -> Buffers<'a, N> {
        let [receive, transmit] = &mut self.datagrams;
        let [receive_metadata, transmit_metadata] = metadata;
        Buffers {
            control: self.control.each_mut().map(tcp_buffers),
            streams: self.streams.each_mut().map(tcp_buffers),
            udp: UdpBuffers { receive_metadata, receive, transmit_metadata, transmit },
        }
    }
}

impl<const N: usize, const CONTROL: usize, const TCP: usize, const UDP: usize> Default
    for Storage<N, CONTROL, TCP, UDP>
{
    fn default() -> Self {
        Self::new()
    }
}

fn tcp_buffers<const BYTES: usize>([receive, transmit]: &mut [[u8; BYTES]; 2]) -> TcpBuffers<'_> {
    TcpBuffers { receive, transmit }
}
