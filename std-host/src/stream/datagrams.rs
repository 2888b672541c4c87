//! Datagrams between a flow and a socket, as many a call as the kernel takes or has. On the way out a
//! message may be a row of datagrams that the kernel cuts, and a call several messages; a kernel or
//! device that refuses rows gets shorter ones, and then single datagrams. On the way in a message may
//! be datagrams that the kernel joined.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use linerate_core::protocol::greeting;
use linerate_core::test::MAX_UDP_BLOCK;
use linerate_core::time::Instant;
use socket2::Socket;

use super::arrivals::Arrivals;
use super::looks::Sender;
use super::outcome::is_out_of_buffers;
use crate::clock::Clock;
use crate::report::Engine;
use crate::sys::{self, Channel, Joined};

/// Datagrams on their way out.
#[derive(Debug)]
pub(super) struct Outgoing {
    /// Room for as many as one call sends, payload and all; headers are written over its parts.
    buffer: Vec<u8>,
    datagram_bytes: usize,
    /// Datagrams of a message.
    row: usize,
    /// The same at its usual, and until when there are no rows: a queue that is nearly full may take a part
    /// of a row and drop the rest without a word.
    usual_row: usize,
    singly_until: Option<Instant>,
    /// Longest row and most datagrams of a call since rows have this length.
    longest: usize,
    most_sent: usize,
    is_reduced: bool,
}

impl Outgoing {
    /// Datagrams with this payload, in rows if the kernel can cut them.
    ///
    /// # Errors
    /// Why there are no rows.
    pub(super) fn new(channel: &Channel, datagram: &[u8]) -> (Self, io::Result<()>) {
        let most = (MAX_UDP_BLOCK as usize / datagram.len()).clamp(1, MOST_DATAGRAMS);
        let mut outgoing = Self {
            buffer: datagram.repeat(most),
            datagram_bytes: datagram.len(),
            row: 1,
            usual_row: 1,
            singly_until: None,
            longest: 0,
            most_sent: 0,
            is_reduced: false,
        };
        let segment = u16::try_from(datagram.len()).ok().filter(|_| most > 1);
        let is_cut = segment.map_or(Ok(()), |bytes| channel.set_segment_size(Some(bytes)));
        if segment.is_some() && is_cut.is_ok() {
            outgoing.usual_row = most.min(MOST_SEGMENTS);
            outgoing.row = outgoing.usual_row;
        }
        (outgoing, is_cut)
    }

    /// Most datagrams that one call sends.
    pub(super) fn most(&self) -> u64 {
        (self.buffer.len() / self.datagram_bytes).min(self.row * sys::MOST_MESSAGES) as u64
    }

    /// How the datagrams go.
    pub(super) fn engine(&self) -> Engine {
        let (row, call) = (self.longest as u32, self.most_sent as u32);
        Engine::DatagramsSent { row, call, is_reduced: self.is_reduced }
    }

    /// Sends at most `count` of the flow's next datagrams in one call, stamped with `now`, and returns
    /// how many; 0 when the kernel wants fewer at once.
    pub(super) fn send(
        &mut self,
        channel: &Channel,
        flow: &Sender,
        now: Instant,
        count: u64,
    ) -> io::Result<u64> {
        if self.singly_until.is_some_and(|until| now >= until) {
            self.singly_until = None;
            self.set_row(channel, self.usual_row)?;
        }
        let count = count.min(self.most());
        let len = count as usize * self.datagram_bytes;
        let datagrams = &mut self.buffer[..len];
        for (ahead, datagram) in (0..).zip(datagrams.chunks_exact_mut(self.datagram_bytes)) {
            flow.write_header(now, ahead, datagram);
        }
        let message_bytes = self.row * self.datagram_bytes;
        let sent = match channel.send_messages(&mut self.buffer, len, message_bytes) {
            // What a router says of an earlier datagram is told once, and this one may be cut to fit.
            Err(error) if is_too_long(&error) => {
                channel.send_messages(&mut self.buffer, len, message_bytes)
            }
            sent => sent,
        };
        match sent {
            Ok(messages) => {
                let sent = (messages * self.row).min(count as usize);
                self.most_sent = self.most_sent.max(sent);
                self.longest = self.longest.max(sent.min(self.row));
                Ok(sent as u64)
            }
            Err(error) if self.row > 1 && is_refusal(&error) => {
                (self.longest, self.most_sent, self.is_reduced) = (0, 0, true);
                self.usual_row = if self.row > SAFE_SEGMENTS { SAFE_SEGMENTS } else { 1 };
                self.set_row(channel, self.usual_row)?;
                Ok(0)
            }
            Err(error) if self.usual_row > 1 && is_out_of_buffers(&error) => {
                self.singly_until = Some(now + SINGLY);
                self.set_row(channel, 1)?;
                Err(error)
            }
            Err(error) => Err(error),
        }
    }

    fn set_row(&mut self, channel: &Channel, row: usize) -> io::Result<()> {
        if (row > 1) != (self.row > 1) {
            // Rows are of datagrams that are shorter than a row.
            let bytes = u16::try_from(self.datagram_bytes).ok().filter(|_| row > 1);
            channel.set_segment_size(bytes)?;
        }
        self.row = row;
        Ok(())
    }
}

/// Datagrams on their way in.
#[derive(Debug)]
pub(super) struct Incoming {
    /// A slot for each message of a call.
    buffer: Vec<u8>,
    slot_bytes: usize,
    found: Vec<Joined>,
    /// Bytes of each where they are joined; 0 if nobody knows.
    usual_bytes: usize,
    only_headers: bool,
    /// The kernel tells when messages came.
    has_times: bool,
    /// Most datagrams of a message and of a call so far.
    longest: usize,
    most_received: usize,
    held_bytes: u64,
    arrivals: Arrivals,
}

impl Incoming {
    /// One a message, of about so many bytes.
    pub(super) fn whole(datagram_bytes: usize) -> Self {
        // What is longer than its slot is counted whole only where the system tells its length.
        let slot_bytes = if sys::SKIPS_RX_COPY { datagram_bytes } else { LONGEST_BYTES };
        Self::with_slots(slot_bytes.max(START_BYTES))
    }

    /// One a message, without copying more than the header where the system can.
    pub(super) fn skipping(datagram_bytes: usize) -> Self {
        if sys::SKIPS_RX_COPY {
            Self { only_headers: true, ..Self::with_slots(START_BYTES) }
        } else {
            Self::whole(datagram_bytes)
        }
    }

    /// One a message, of which as much is copied as a greeting has and one byte more, where the system can.
    pub(super) fn greetings() -> Self {
        if sys::SKIPS_RX_COPY {
            Self { only_headers: true, ..Self::with_slots(GREETING_ROOM) }
        } else {
            Self::whole(LONGEST_BYTES)
        }
    }

    /// As the kernel joins them, of so many bytes each; 0 if nobody knows yet.
    ///
    /// # Errors
    /// When it cannot.
    pub(super) fn joined(socket: &Socket, datagram_bytes: usize) -> io::Result<Self> {
        sys::request_joined(socket)?;
        Ok(Self { usual_bytes: datagram_bytes, ..Self::with_slots(LONGEST_BYTES) })
    }

    fn with_slots(slot_bytes: usize) -> Self {
        let slots = (BUFFER_BYTES / slot_bytes).clamp(1, sys::MOST_MESSAGES);
        Self {
            buffer: vec![0; slots * slot_bytes],
            slot_bytes,
            found: vec![Joined::default(); slots],
            usual_bytes: 0,
            only_headers: false,
            has_times: false,
            longest: 0,
            most_received: 0,
            held_bytes: 0,
            arrivals: Arrivals::default(),
        }
    }

    /// Lets the kernel tell when messages come, if it can.
    pub(super) fn timed(self, socket: &Socket) -> Self {
        Self { has_times: sys::request_arrivals(socket).is_ok(), ..self }
    }

    /// Whether messages may wait in the socket without a loss of truth.
    pub(super) fn has_times(&self) -> bool {
        self.has_times
    }

    /// Whether no more than the beginnings are copied.
    pub(super) fn only_headers(&self) -> bool {
        self.only_headers
    }

    /// What all that came took of the socket's buffer while it was there, at a guess.
    pub(super) fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// How the datagrams come; with `joins_arrivals` they may share their times.
    pub(super) fn engine(&self, joins_arrivals: bool) -> Engine {
        Engine::DatagramsReceived {
            row: self.longest as u32,
            call: self.most_received as u32,
            only_headers: self.only_headers,
            shares_arrivals: joins_arrivals,
            kernel_times: self.has_times,
        }
    }

    /// Receives by one call and gives each message to `take`. Returns whether the socket may hold more.
    pub(super) fn receive(
        &mut self,
        channel: &Channel,
        clock: Clock,
        mut take: impl FnMut(&Message<'_>),
    ) -> io::Result<bool> {
        let count = channel.recv_messages(&mut self.buffer, self.slot_bytes, &mut self.found)?;
        let (now, wall) = clock.with_wall();
        let call = self.arrivals.call(now, wall);
        let mut received = 0;
        for (slot, message) in self.buffer.chunks_exact(self.slot_bytes).zip(&self.found[..count]) {
            let bytes = &slot[..message.len.min(slot.len())];
            let datagram_bytes = bytes_of_each(message.segment, message.len, self.usual_bytes);
            let (arrived, is_new_time) = (call.moved(message.arrived), call.is_new_time);
            let Joined { len, from, to, .. } = *message;
            take(&Message { arrived, is_new_time, bytes, len, datagram_bytes, from, to });
            self.held_bytes += message.len as u64 + MESSAGE_BYTES;
            let joined = message.len.div_ceil(datagram_bytes);
            received += joined;
            self.longest = self.longest.max(joined);
        }
        self.most_received = self.most_received.max(received);
        Ok(count == self.found.len())
    }
}

/// Bytes of each datagram but the last of a message of `len` bytes of which the system says that they have
/// `segment`, where the stream's have `usual`, or 0 if nobody knows. Windows may join datagrams and not say
/// so: then they seem to be one of that length.
pub(super) fn bytes_of_each(segment: usize, len: usize, usual: usize) -> usize {
    let is_one = segment == len;
    if is_one && usual > 0 && len > usual { usual } else { segment.max(1) }
}

/// Datagrams that came together.
#[derive(Debug)]
pub(super) struct Message<'a> {
    pub(super) arrived: Instant,
    /// That is not to be compared with the times of earlier ones.
    pub(super) is_new_time: bool,
    /// What was copied of them.
    pub(super) bytes: &'a [u8],
    /// Bytes of all of them.
    pub(super) len: usize,
    /// Bytes of each, but the last may be shorter.
    pub(super) datagram_bytes: usize,
    /// The sender and the local address that it sent to, of a socket that is not connected.
    pub(super) from: Option<SocketAddr>,
    pub(super) to: Option<SocketAddr>,
}

/// What kernels say of a row that is too long or whose parts do not fit the device, and devices that
/// cannot make checksums.
fn is_refusal(error: &io::Error) -> bool {
    #[cfg(unix)]
    return is_too_long(error) || matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EIO));
    #[cfg(not(unix))]
    return is_too_long(error) || error.kind() == io::ErrorKind::InvalidInput;
}

/// A datagram does not fit a packet and may not be cut, this one or one before it.
fn is_too_long(error: &io::Error) -> bool {
    #[cfg(unix)]
    return error.raw_os_error() == Some(libc::EMSGSIZE);
    #[cfg(not(unix))]
    return error.raw_os_error() == Some(10040); // WSAEMSGSIZE
}

/// Most datagrams of a call.
const MOST_DATAGRAMS: usize = 1024;
/// Most datagrams that Linux cuts from one message since 6.9, and before.
const MOST_SEGMENTS: usize = 128;
const SAFE_SEGMENTS: usize = 64;
/// More than any datagram, and than all that are joined.
const LONGEST_BYTES: usize = 1 << 16;
/// What a stream's thread has for what arrives.
const BUFFER_BYTES: usize = 4 * LONGEST_BYTES;
/// What the kernel has of its own for each message that waits.
const MESSAGE_BYTES: u64 = 1024;
/// How long there are no rows after this host had no room.
const SINGLY: Duration = Duration::from_secs(1);
/// The longest header, and enough to tell a greeting from data.
pub(super) const START_BYTES: usize = 24;
/// One byte more than a greeting has tells it from data.
pub(super) const GREETING_ROOM: usize = greeting::MOST_BYTES + 1;

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn datagrams_that_were_joined_in_silence_are_told_apart() {
        for (segment, len, usual, each) in [
            (1400, 1400, 1400, 1400),
            (1400, 14_000, 1400, 1400),
            (14_000, 14_000, 1400, 1400),
            (3000, 3000, 1400, 1400),
            (700, 700, 1400, 700),
            (14_000, 14_000, 0, 14_000),
            (0, 0, 1400, 1),
        ] {
            assert_eq!(bytes_of_each(segment, len, usual), each, "{segment} {len} {usual}");
        }
    }

    /// As many as find room, and more: what is lost was sent when the buffer was full.
    #[test]
    fn one_knows_about_how_full_a_buffer_was() {
        let clock = Clock::new();
        for datagram_bytes in [16, 100, 1400, 8192] {
            let to = UdpSocket::bind("127.0.0.1:0").unwrap();
            let from = UdpSocket::bind("127.0.0.1:0").unwrap();
            from.connect(to.local_addr().unwrap()).unwrap();
            let to = Socket::from(to);
            to.set_nonblocking(true).unwrap();
            to.set_recv_buffer_size(64 << 10).unwrap();
            let buffer_bytes = to.recv_buffer_size().unwrap() as u64;
            for _ in 0..buffer_bytes / datagram_bytes as u64 {
                from.send(&vec![0; datagram_bytes]).unwrap();
            }
            let mut incoming = Incoming::whole(datagram_bytes);
            let to = Channel::new(to.into()).unwrap();
            while incoming.receive(&to, clock, |_| {}).is_ok() {}
            let share = incoming.held_bytes() as f64 / buffer_bytes as f64;
            assert!((0.25..2.0).contains(&share), "{datagram_bytes} bytes: {share}");
        }
    }
}
