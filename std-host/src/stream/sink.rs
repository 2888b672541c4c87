//! Where a TCP receiver's bytes go: nowhere, not even out of the kernel, or to a file.

use std::fs::File;
use std::io::{self, Write};

use crate::report::Engine;
use crate::sys::{self, Channel};

/// What one stream does with what it receives.
#[derive(Debug)]
pub(super) struct Sink {
    buffer: Vec<u8>,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// Overwritten by what comes next.
    Forget,
    /// Thrown away by the kernel.
    Skip,
    /// Stored.
    Store(File),
}

impl Sink {
    /// One that takes `buffer_bytes` a call and forgets them, without ever copying them if they can be
    /// skipped.
    pub(super) fn new(buffer_bytes: usize, skip: bool) -> Self {
        let kind = if skip && sys::SKIPS_RX_COPY { Kind::Skip } else { Kind::Forget };
        Self { buffer: vec![0; buffer_bytes], kind }
    }

    /// One that stores them.
    pub(super) fn storing(buffer_bytes: usize, file: File) -> Self {
        Self { buffer: vec![0; buffer_bytes], kind: Kind::Store(file) }
    }

    /// Takes at most `most` bytes off the socket; 0 at the end of the connection.
    pub(super) fn receive(&mut self, channel: &Channel, most: u64) -> io::Result<usize> {
        let most = self.buffer.len().min(usize::try_from(most).unwrap_or(usize::MAX));
        match self.kind {
            Kind::Skip => channel.discard(&mut self.buffer[..most]),
            Kind::Forget | Kind::Store(_) => channel.receive(&mut self.buffer, most),
        }
    }

    /// How the bytes come.
    pub(super) fn engine(&self) -> Engine {
        Engine::BytesReceived { is_copied: !matches!(self.kind, Kind::Skip) }
    }

    /// Does what is to be done with the first `counted` bytes of those just received.
    pub(super) fn keep(&mut self, counted: u64) -> io::Result<()> {
        match &mut self.kind {
            Kind::Store(file) => {
                let counted = usize::try_from(counted).unwrap_or(usize::MAX);
                file.write_all(&self.buffer[..counted.min(self.buffer.len())])
            }
            Kind::Forget | Kind::Skip => Ok(()),
        }
    }
}
