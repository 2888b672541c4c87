//! Where a TCP sender's bytes come from: a block that repeats, or a file, each with or without a copy
//! through this process. The bytes on the wire are the same either way.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;

use crate::report::Engine;
use crate::sys::{self, Channel};

/// What one stream sends.
#[derive(Debug)]
pub(super) enum Source {
    /// One block again and again, which the processor's caches hold; so many of them a call.
    Blocks(Arc<[u8]>, usize),
    /// The same from a file that holds them, by the kernel.
    BlocksUncopied(Arc<File>, Arc<[u8]>, usize),
    /// A file, read block by block.
    File(Reader),
    /// A file, sent by the kernel.
    FileUncopied(Arc<File>, Reader),
}

/// Why nothing could be sent.
#[derive(Debug)]
pub(super) enum SendError {
    /// The socket's answer.
    Socket(io::Error),
    /// The file's.
    File(io::Error),
}

impl Source {
    /// Sends at most `most` bytes, of a stream of which `sent` have left; 0 at the end of the file.
    pub(super) fn send(
        &mut self,
        channel: &Channel,
        sent: u64,
        most: u64,
    ) -> Result<usize, SendError> {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        match self {
            Self::Blocks(block, count) => {
                let start = (sent % block.len() as u64) as usize;
                channel.send_blocks(block, *count, start, most).map_err(SendError::Socket)
            }
            Self::BlocksUncopied(file, block, count) => {
                let all = (block.len() * *count) as u64;
                let rest = (all - sent % all) as usize;
                match channel.send_file(file, sent % all, rest.min(most)) {
                    Err(error) if is_refusal(&error) => {
                        *self = Self::Blocks(block.clone(), *count);
                        self.send(channel, sent, most as u64)
                    }
                    sent => sent.map_err(SendError::Socket),
                }
            }
            Self::File(reader) => reader.send(channel, most),
            Self::FileUncopied(file, reader) => {
                let most = most.min(reader.buffer.len());
                match channel.send_file(file, sent, most) {
                    // Not every file can be sent this way.
                    Err(error) if is_refusal(&error) && sent == 0 => {
                        let reader = std::mem::take(reader);
                        *self = Self::File(reader);
                        self.send(channel, sent, most as u64)
                    }
                    Err(error) if sys::is_of_the_file(&error) => Err(SendError::File(error)),
                    sent => sent.map_err(SendError::Socket),
                }
            }
        }
    }

    /// Whether a person's file is sent.
    pub(super) const fn is_file(&self) -> bool {
        matches!(self, Self::File(_) | Self::FileUncopied(..))
    }

    /// How the bytes go.
    pub(super) fn engine(&self) -> Engine {
        Engine::BytesSent { is_copied: matches!(self, Self::Blocks(..) | Self::File(_)) }
    }

    /// Most bytes that one call sends.
    pub(super) fn call_bytes(&self) -> usize {
        match self {
            Self::Blocks(block, count) | Self::BlocksUncopied(_, block, count) => {
                block.len() * count
            }
            Self::File(reader) | Self::FileUncopied(_, reader) => reader.buffer.len(),
        }
    }
}

/// A file on its way through a buffer.
#[derive(Debug, Default)]
pub(super) struct Reader {
    file: Option<File>,
    buffer: Vec<u8>,
    /// The part of the buffer that was read and has not been sent.
    unsent: std::ops::Range<usize>,
}

impl Reader {
    /// Reads `file` in blocks of so many bytes.
    pub(super) fn new(file: File, block_bytes: usize) -> Self {
        Self { file: Some(file), buffer: vec![0; block_bytes], unsent: 0..0 }
    }

    fn send(&mut self, channel: &Channel, most: usize) -> Result<usize, SendError> {
        if self.unsent.is_empty() {
            self.unsent = 0..self.fill().map_err(SendError::File)?;
            if self.unsent.is_empty() {
                return Ok(0);
            }
        }
        let unsent = &self.buffer[self.unsent.clone()];
        let part = &unsent[..unsent.len().min(most)];
        let sent = channel.send(part).map_err(SendError::Socket)?;
        self.unsent.start += sent;
        Ok(sent)
    }

    /// As much of the file as the buffer holds.
    fn fill(&mut self) -> io::Result<usize> {
        let Some(file) = &mut self.file else { return Ok(0) };
        let mut filled = 0;
        while filled < self.buffer.len() {
            match file.read(&mut self.buffer[filled..]) {
                Ok(0) => break,
                Ok(len) => filled += len,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }
}

/// The system has the call, but not for these two descriptors.
fn is_refusal(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported)
}
