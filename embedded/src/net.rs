//! What an endpoint needs of a TCP/IP stack. Its sockets are numbered from zero, those of TCP and
//! those of UDP each on their own; their buffers were given to the stack before. Nothing waits: what
//! cannot be done now is not done, and is asked for again at the next poll.

use core::net::{IpAddr, SocketAddr};

/// A stack, with the sockets of one endpoint.
pub trait Net {
    /// How far a TCP connection is.
    fn state(&self, socket: usize) -> TcpState;

    /// Whether this end of a TCP connection is open.
    fn may_send(&self, socket: usize) -> bool;

    /// The other end of a TCP connection.
    fn peer(&self, socket: usize) -> Option<SocketAddr>;

    /// Waits for a TCP connection at this port, which is not zero. Whatever the socket was doing is
    /// dropped.
    fn listen(&mut self, socket: usize, port: u16);

    /// Begins a TCP connection, from a port of the stack's choice. `false` if the address cannot be
    /// reached at all.
    fn connect(&mut self, socket: usize, to: SocketAddr) -> bool;

    /// Has small segments leave at once, or wait for those before them to be acknowledged.
    fn set_no_delay(&mut self, socket: usize, is_on: bool);

    /// Lends what has arrived on a TCP connection, as far as it lies in one piece, and drops as many
    /// bytes from its beginning as `take` returns.
    fn receive(&mut self, socket: usize, take: impl FnOnce(&[u8]) -> usize) -> Received;

    /// Lends the free room of a TCP connection, as far as it lies in one piece, and sends as many bytes
    /// from its beginning as `fill` returns. `false` if there is no room.
    fn send(&mut self, socket: usize, fill: impl FnOnce(&mut [u8]) -> usize) -> bool;

    /// Bytes of a TCP connection that are sent or to be sent, and not acknowledged.
    fn unacknowledged_bytes(&self, socket: usize) -> usize;

    /// Ends a TCP connection once all is sent. What still comes can be received.
    fn close(&mut self, socket: usize);

    /// Resets a TCP connection, or waits no longer for one.
    fn abort(&mut self, socket: usize);

    /// Has a UDP socket receive at this port, or with zero at one of the stack's choice.
    fn bind(&mut self, socket: usize, port: u16);

    /// Has a UDP socket receive no more; what it has to send is dropped.
    fn unbind(&mut self, socket: usize);

    /// Lends the datagram that arrived first, and drops it. `false` if there is none.
    fn receive_datagram(&mut self, socket: usize, take: impl FnOnce(&[u8], Path)) -> bool;

    /// Sends a datagram of so many bytes, which `fill` writes; behind what it writes is what the
    /// socket's buffer holds.
    ///
    /// # Errors
    /// If there is no room for it now, or no way there at all.
    fn send_datagram(
        &mut self,
        socket: usize,
        path: Path,
        bytes: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), Unsent>;

    /// The longest datagram that fits the buffers of a UDP socket.
    fn datagram_room(&self, socket: usize) -> usize;
}

/// How far a TCP connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum TcpState {
    /// Nothing is left of one, and none is awaited or being made.
    Closed,
    /// One is awaited, and nobody has begun it.
    Listening,
    /// It is being made.
    Opening,
    /// It stands, or has stood and is not closed by both ends.
    Open,
}

/// What there was to be received on a TCP connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Received {
    /// Bytes, which were lent. There may be more.
    Bytes,
    /// Nothing yet.
    Nothing,
    /// The end: all is taken, and the peer sends nothing more.
    End,
}

/// Where datagrams go and which of this end's addresses they come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Path {
    /// The other end.
    pub peer: SocketAddr,
    /// This end's address; without one the stack chooses.
    pub local: Option<IpAddr>,
}

/// Why a datagram was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Unsent {
    /// There is no room for it now.
    Full,
    /// No address of this end reaches the other.
    Unreachable,
}

/// Throws away what has arrived, and says whether that was the end.
pub(crate) fn discard(net: &mut impl Net, socket: usize) -> bool {
    loop {
        match net.receive(socket, <[u8]>::len) {
            Received::Bytes => {}
            Received::Nothing => return false,
            Received::End => return true,
        }
    }
}

/// The longest datagram to `peer` that fits an IP packet of `mtu_bytes` and the socket's buffers.
pub(crate) fn most_datagram_bytes(
    net: &impl Net,
    socket: usize,
    peer: IpAddr,
    mtu_bytes: usize,
) -> usize {
    let header_bytes = if peer.is_ipv4() { 20 + 8 } else { 40 + 8 };
    mtu_bytes.saturating_sub(header_bytes).min(net.datagram_room(socket))
}

/// Sends what there is room for, and says how much that is.
pub(crate) fn send_bytes(net: &mut impl Net, socket: usize, bytes: &[u8]) -> usize {
    let mut taken = 0;
    net.send(socket, |room| {
        taken = room.len().min(bytes.len());
        room[..taken].copy_from_slice(&bytes[..taken]);
        taken
    });
    taken
}
