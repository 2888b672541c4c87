//! Where a TCP sender's bytes come from: a block that repeats, or a file, each with or without a copy
//! through this process. The bytes on the wire are the same either way.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;

use socket2::Socket;

use crate::report::Engine;
use crate::sys;

/// What one stream sends.
#[derive(Debug)]
pub(super) enum Source {
    /// Whole blocks, again and again.
    Blocks(Arc<[u8]>),
    /// The same from a file that holds them, by the kernel.
    BlocksUncopied(Arc<File>, Arc<[u8]>),
    /// A file, read block by block.
    File(Reader),
    /// A file, sent by the kernel.
    FileUncopied(File, Reader),
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
        socket: &Socket,
        sent: u64,
        most: u64,
    ) -> Result<usize, SendError> {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        match self {
            Self::Blocks(blocks) => send(socket, rest_of(blocks, sent), most),
            Self::BlocksUncopied(file, blocks) => {
                let rest = rest_of(blocks, sent).len();
                let offset = (blocks.len() - rest) as u64;
                match sys::send_file(socket, file, offset, rest.min(most)) {
                    Err(error) if is_refusal(&error) => {
                        *self = Self::Blocks(blocks.clone());
                        self.send(socket, sent, most as u64)
                    }
                    sent => sent.map_err(SendError::Socket),
                }
            }
            Self::File(reader) => reader.send(socket, most),
            Self::FileUncopied(file, reader) => {
                let most = most.min(reader.buffer.len());
                match sys::send_file(socket, file, sent, most) {
                    // Not every file can be sent this way.
                    Err(error) if is_refusal(&error) && sent == 0 => {
                        let reader = std::mem::take(reader);
                        *self = Self::File(reader);
                        self.send(socket, sent, most as u64)
                    }
                    Err(error) if error.raw_os_error() == Some(IO_ERROR) => {
                        Err(SendError::File(error))
                    }
                    sent => sent.map_err(SendError::Socket),
                }
            }
        }
    }

    /// How the bytes go.
    pub(super) fn engine(&self) -> Engine {
        Engine::BytesSent { is_copied: matches!(self, Self::Blocks(_) | Self::File(_)) }
    }

    /// Most bytes that one call sends.
    pub(super) fn call_bytes(&self) -> usize {
        match self {
            Self::Blocks(blocks) | Self::BlocksUncopied(_, blocks) => blocks.len(),
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

    fn send(&mut self, socket: &Socket, most: usize) -> Result<usize, SendError> {
        if self.unsent.is_empty() {
            self.unsent = 0..self.fill().map_err(SendError::File)?;
            if self.unsent.is_empty() {
                return Ok(0);
            }
        }
        let sent = send(socket, &self.buffer[self.unsent.clone()], most)?;
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

/// What of the blocks comes next.
fn rest_of(blocks: &[u8], sent: u64) -> &[u8] {
    &blocks[(sent % blocks.len() as u64) as usize..]
}

fn send(socket: &Socket, bytes: &[u8], most: usize) -> Result<usize, SendError> {
    let part = &bytes[..bytes.len().min(most)];
    socket.send_with_flags(part, sys::SEND_FLAGS).map_err(SendError::Socket)
}

/// The system has the call, but not for these two descriptors.
fn is_refusal(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported)
}

/// `EIO` on every Unix system.
const IO_ERROR: i32 = 5;
