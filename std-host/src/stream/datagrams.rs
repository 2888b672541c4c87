//! Datagrams between a flow and a socket, as many a call as the kernel takes or has: one by one, or a
//! row of them in one buffer (`--gsro`), or their headers only (`--skip-rx-copy`). A kernel that
//! refuses a row gets shorter ones, and then single datagrams.

use std::io::{self, Read};

use linerate_core::flow::SendFlow;
use linerate_core::test::MAX_UDP_BLOCK;
use linerate_core::time::Instant;
use socket2::Socket;

use crate::sys;

/// Datagrams on their way out.
#[derive(Debug)]
pub(super) struct Outgoing {
    /// Room for as many as one call sends, payload and all; headers are written over its parts.
    buffer: Vec<u8>,
    datagram_bytes: usize,
    most: usize,
}

impl Outgoing {
    /// One by one, each with this payload.
    pub(super) fn single(datagram: &[u8]) -> Self {
        Self { buffer: datagram.to_vec(), datagram_bytes: datagram.len(), most: 1 }
    }

    /// As many in a row as a UDP packet can be long, cut by the kernel.
    ///
    /// # Errors
    /// When the kernel cannot cut.
    pub(super) fn segmented(socket: &Socket, datagram: &[u8]) -> io::Result<Self> {
        let most = (MAX_UDP_BLOCK as usize / datagram.len()).min(MOST_SEGMENTS);
        if most == 1 {
            return Ok(Self::single(datagram));
        }
        let bytes = u16::try_from(datagram.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        sys::set_segment_size(socket, Some(bytes))?;
        Ok(Self { buffer: datagram.repeat(most), datagram_bytes: datagram.len(), most })
    }

    /// Most datagrams that one call sends.
    pub(super) fn most(&self) -> u64 {
        self.most as u64
    }

    /// Sends at most `count` of the flow's next datagrams in one call, stamped with `now`, and returns
    /// how many; 0 when the kernel wants fewer at once.
    pub(super) fn send(
        &mut self,
        socket: &Socket,
        flow: &SendFlow,
        now: Instant,
        count: u64,
    ) -> io::Result<u64> {
        let count = count.min(self.most());
        let row = &mut self.buffer[..count as usize * self.datagram_bytes];
        for (ahead, datagram) in (0..).zip(row.chunks_mut(self.datagram_bytes)) {
            flow.write_header(now, ahead, datagram);
        }
        match socket.send_with_flags(row, sys::SEND_FLAGS) {
            Ok(_) => Ok(count),
            Err(error) if self.most > 1 && is_refusal(&error) => {
                self.most = if self.most > SAFE_SEGMENTS { SAFE_SEGMENTS } else { 1 };
                if self.most == 1 {
                    sys::set_segment_size(socket, None)?;
                }
                Ok(0)
            }
            Err(error) => Err(error),
        }
    }
}

/// Datagrams on their way in.
#[derive(Debug)]
pub(super) struct Incoming {
    buffer: Vec<u8>,
    kind: Kind,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    /// One a call.
    Whole,
    /// One a call, its header only.
    Start,
    /// Several of one size a call.
    Joined,
}

impl Incoming {
    /// One by one.
    pub(super) fn whole() -> Self {
        Self { buffer: vec![0; BUFFER_BYTES], kind: Kind::Whole }
    }

    /// One by one, without copying more than the header, where the system can.
    pub(super) fn skipping() -> Self {
        match sys::SKIPS_RX_COPY {
            true => Self { buffer: vec![0; START_BYTES], kind: Kind::Start },
            false => Self::whole(),
        }
    }

    /// As the kernel joins them.
    ///
    /// # Errors
    /// When it cannot.
    pub(super) fn joined(socket: &Socket) -> io::Result<Self> {
        sys::request_joined(socket)?;
        Ok(Self { buffer: vec![0; BUFFER_BYTES], kind: Kind::Joined })
    }

    /// Receives by one call and gives each datagram to `take`: what there is of it from its start, and
    /// its length.
    pub(super) fn receive(
        &mut self,
        mut socket: &Socket,
        mut take: impl FnMut(&[u8], usize),
    ) -> io::Result<()> {
        let buffer = &mut self.buffer;
        match self.kind {
            Kind::Whole => {
                let len = socket.read(buffer)?;
                take(&buffer[..len], len);
            }
            Kind::Start => {
                let len = sys::recv_start(socket, buffer)?;
                take(&buffer[..len.min(START_BYTES)], len);
            }
            Kind::Joined => {
                let joined = sys::recv_joined(socket, buffer)?;
                let datagrams = buffer[..joined.len].chunks(joined.segment.max(1));
                datagrams.for_each(|datagram| take(datagram, datagram.len()));
            }
        }
        Ok(())
    }
}

/// What kernels say of a row that is too long or whose parts do not fit the device, and devices that
/// cannot make checksums.
fn is_refusal(error: &io::Error) -> bool {
    #[cfg(unix)]
    return matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EIO | libc::EMSGSIZE));
    #[cfg(not(unix))]
    return error.kind() == io::ErrorKind::InvalidInput;
}

/// Most datagrams that Linux cuts from one send since 6.9, and before.
const MOST_SEGMENTS: usize = 128;
const SAFE_SEGMENTS: usize = 64;
/// More than any datagram, and than all that are joined.
const BUFFER_BYTES: usize = 1 << 16;
/// The longest header, and enough to tell a greeting from data.
const START_BYTES: usize = 24;
