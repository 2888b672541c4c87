//! Datagrams. One port serves all streams, which are told apart by the client's address; so what
//! arrives is sorted, and what is sent goes out by the same port.

use linerate_core::flow::Step;
use linerate_core::protocol::greeting;
use linerate_core::session::StreamEvent;
use linerate_core::time::Instant;
use smoltcp::socket::udp::{SendError, Socket, UdpMetadata};
use smoltcp::wire::{IPV4_HEADER_LEN, IPV6_HEADER_LEN, IpAddress, UDP_HEADER_LEN};

use super::stream::{Flow, Link, Sender, Stream, Turn};

/// Counts what has arrived for the streams, up to a greeting from `awaited` that is none of theirs;
/// everything else is dropped.
pub(super) fn sort(
    now: Instant,
    socket: &mut Socket<'_>,
    streams: &mut [Stream],
    awaited: Option<IpAddress>,
) -> Option<UdpMetadata> {
    while let Ok((datagram, from)) = socket.recv() {
        match stream_of(streams, from) {
            Some(stream) => {
                if let Flow::Receive(flow) = &mut stream.flow {
                    flow.handle_datagram(now, datagram, datagram.len());
                }
            }
            None if awaited == Some(from.endpoint.addr) && greeting::is_hello(datagram) => {
                return Some(from);
            }
            None => {}
        }
    }
    None
}

/// Answers a greeting. `false` if there is no room for the answer.
pub(super) fn answer(socket: &mut Socket<'_>, to: UdpMetadata) -> bool {
    socket.send_slice(&greeting::REPLY, to).is_ok()
}

/// Sends what may be sent now.
pub(super) fn send(
    now: Instant,
    socket: &mut Socket<'_>,
    to: UdpMetadata,
    datagram_bytes: usize,
    flow: &mut Sender,
) -> Turn {
    loop {
        match flow.poll_step(now) {
            Step::Send { .. } => {}
            Step::Wait { until } => return Turn { wait_until: Some(until), event: None },
            Step::Done => return Turn { event: Some(StreamEvent::LimitReached), wait_until: None },
        }
        match socket.send(datagram_bytes, to) {
            Ok(datagram) => {
                // Behind the header the payload is what the buffer holds already.
                flow.write_header(now, 0, datagram);
                flow.handle_datagrams_sent(now, 1);
            }
            Err(SendError::BufferFull) => return Turn::default(),
            Err(SendError::Unaddressable) => {
                return Turn { event: Some(StreamEvent::Closed), wait_until: None };
            }
        }
    }
}

/// The longest datagram that fits a packet and both buffers.
pub(super) fn most_datagram_bytes(mtu_bytes: u32, peer: IpAddress, socket: &Socket<'_>) -> u32 {
    let header_bytes = match peer {
        IpAddress::Ipv4(_) => IPV4_HEADER_LEN,
        IpAddress::Ipv6(_) => IPV6_HEADER_LEN,
    } + UDP_HEADER_LEN;
    let buffered = socket.payload_recv_capacity().min(socket.payload_send_capacity());
    let buffered = u32::try_from(buffered).unwrap_or(u32::MAX);
    mtu_bytes.saturating_sub(header_bytes as u32).min(buffered)
}

fn stream_of(streams: &mut [Stream], from: UdpMetadata) -> Option<&mut Stream> {
    streams
        .iter_mut()
        .find(|stream| matches!(stream.link, Link::Udp(peer) if peer.endpoint == from.endpoint))
}
