//! The memory that the sockets of an endpoint work in. It belongs to the caller, who lends it for as long
//! as the sockets live: piece by piece, or as one storage of usual sizes. `M` is the stack's own type
//! of places for datagrams.

use crate::server::DOORS;

/// What is lent to a server with at most `N` streams a test.
#[derive(Debug)]
pub struct ServerBuffers<'a, M, const N: usize> {
    /// For control connections, and whoever else comes; 256 bytes each way are enough. A stock
    /// client that is not told a size (`-l`) sends datagrams of half of what is received here, at
    /// most what fits its frames: it takes the segment size of this connection, which systems hold
    /// down to half of the window.
    pub control: [TcpBuffers<'a>; DOORS],
    /// For TCP streams.
    pub streams: [TcpBuffers<'a>; N],
    /// For all UDP streams together.
    pub udp: UdpBuffers<'a, M>,
}

/// What is lent to a client with at most `N` streams a test.
#[derive(Debug)]
pub struct ClientBuffers<'a, M, const N: usize> {
    /// For the control connection; 256 bytes each way are enough.
    pub control: TcpBuffers<'a>,
    /// For TCP streams.
    pub streams: [TcpBuffers<'a>; N],
    /// For UDP streams, each of which has a port of its own.
    pub udp: [UdpBuffers<'a, M>; N],
}

/// The buffers of one TCP connection.
#[derive(Debug)]
pub struct TcpBuffers<'a> {
    /// The window that is offered to the sender.
    pub receive: &'a mut [u8],
    /// What may be on its way at once.
    pub transmit: &'a mut [u8],
}

/// The buffers of a UDP port. A queue holds as many datagrams as there are places for metadata.
#[derive(Debug)]
pub struct UdpBuffers<'a, M> {
    /// Places for received datagrams.
    pub receive_metadata: &'a mut [M],
    /// Their bytes.
    pub receive: &'a mut [u8],
    /// Places for datagrams to be sent.
    pub transmit_metadata: &'a mut [M],
    /// Their bytes.
    pub transmit: &'a mut [u8],
}

/// Memory for a server with at most `N` streams a test, so many bytes each way: `CONTROL` for each
/// control connection, `TCP` for each TCP stream, `UDP` for all UDP streams together. It is all zeros at
/// first, so that as a static it takes no flash.
#[derive(Debug)]
pub struct ServerStorage<const N: usize, const CONTROL: usize, const TCP: usize, const UDP: usize> {
    control: [[[u8; CONTROL]; 2]; DOORS],
    streams: [[[u8; TCP]; 2]; N],
    datagrams: [[u8; UDP]; 2],
}

/// Memory for a client with at most `N` streams a test, so many bytes each way: `CONTROL` for the control
/// connection, `TCP` for each TCP stream, `UDP` for each UDP stream. It is all zeros at first, so that as
/// a static it takes no flash.
#[derive(Debug)]
pub struct ClientStorage<const N: usize, const CONTROL: usize, const TCP: usize, const UDP: usize> {
    control: [[u8; CONTROL]; 2],
    streams: [[[u8; TCP]; 2]; N],
    datagrams: [[[u8; UDP]; 2]; N],
}

impl<const N: usize, const CONTROL: usize, const TCP: usize, const UDP: usize>
    ServerStorage<N, CONTROL, TCP, UDP>
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
    pub fn buffers<'a, M, const D: usize>(
        &'a mut self,
        metadata: &'a mut [[M; D]; 2],
    ) -> ServerBuffers<'a, M, N> {
        ServerBuffers {
            control: self.control.each_mut().map(tcp_buffers),
            streams: self.streams.each_mut().map(tcp_buffers),
            udp: udp_buffers(&mut self.datagrams, metadata),
        }
    }
}

impl<const N: usize, const CONTROL: usize, const TCP: usize, const UDP: usize>
    ClientStorage<N, CONTROL, TCP, UDP>
{
    /// Zeros.
    pub const fn new() -> Self {
        Self {
            control: [[0; CONTROL]; 2],
            streams: [[[0; TCP]; 2]; N],
            datagrams: [[[0; UDP]; 2]; N],
        }
    }

    /// All of it, to lend, with places for `D` datagrams each way and stream.
    pub fn buffers<'a, M, const D: usize>(
        &'a mut self,
        metadata: &'a mut [[[M; D]; 2]; N],
    ) -> ClientBuffers<'a, M, N> {
        let mut metadata = metadata.iter_mut();
        ClientBuffers {
            control: tcp_buffers(&mut self.control),
            streams: self.streams.each_mut().map(tcp_buffers),
            udp: self.datagrams.each_mut().map(|datagrams| {
                udp_buffers(datagrams, metadata.next().expect("one for each stream"))
            }),
        }
    }
}

impl<const N: usize, const CONTROL: usize, const TCP: usize, const UDP: usize> Default
    for ServerStorage<N, CONTROL, TCP, UDP>
{
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize, const CONTROL: usize, const TCP: usize, const UDP: usize> Default
    for ClientStorage<N, CONTROL, TCP, UDP>
{
    fn default() -> Self {
        Self::new()
    }
}

fn tcp_buffers<const BYTES: usize>([receive, transmit]: &mut [[u8; BYTES]; 2]) -> TcpBuffers<'_> {
    TcpBuffers { receive, transmit }
}

fn udp_buffers<'a, M, const BYTES: usize, const D: usize>(
    [receive, transmit]: &'a mut [[u8; BYTES]; 2],
    [receive_metadata, transmit_metadata]: &'a mut [[M; D]; 2],
) -> UdpBuffers<'a, M> {
    UdpBuffers { receive_metadata, receive, transmit_metadata, transmit }
}
