//! The calls of the data plane, each with what it works with.

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::windows::io::{AsRawHandle, BorrowedSocket};
use std::ptr::{null, null_mut};
use std::sync::Arc;

use windows_sys::Win32::Networking::WinSock::{
    SOCKET, SOCKET_ERROR, TransmitFile, WSABUF, WSAMSG, WSARecv, WSASend, WSASendMsg,
};
use windows_sys::Win32::System::IO::OVERLAPPED;

use crate::bytes::{
    destination, segment_bytes, socket_address, write_control, write_socket_address,
};
use crate::datagram::{CONTROL_BYTES, Control, NAME_BYTES, Name, recv_msg};
use crate::operation::Call;
use crate::options::{check, raw};
use crate::outgoing::Load;

/// A part of a byte stream, or a datagram of a connected socket, or a row of such that the system cuts.
#[derive(Debug)]
pub(crate) enum Out {
    /// So many bytes of repetitions of a block, from a place in the first.
    Blocks { block: Arc<[u8]>, start: usize, len: usize },
    /// The first bytes of a buffer.
    Bytes { buffer: Vec<u8>, len: usize },
    /// The same to a peer that the socket is not connected to.
    Letter(Box<Letter>),
    /// A part of a file.
    File { file: Arc<File>, offset: u64, len: usize },
}

/// A message with its address.
pub(crate) struct Letter {
    buffer: Vec<u8>,
    len: usize,
    envelope: Arc<Envelope>,
    part: WSABUF,
    message: WSAMSG,
}

// SAFETY: the pointers in it are made anew by each call, to parts of the value and of its envelope.
unsafe impl Send for Letter {}

impl std::fmt::Debug for Letter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Letter").field("len", &self.len).finish_non_exhaustive()
    }
}

/// Where a message goes, and by which local address and in which parts.
pub(crate) struct Envelope {
    name: Name,
    name_len: usize,
    control: Control,
    control_len: usize,
}

impl std::fmt::Debug for Envelope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Envelope")
            .field("to", &socket_address(&self.name.0))
            .finish_non_exhaustive()
    }
}

impl Envelope {
    pub(crate) fn new(
        to: SocketAddr,
        from: Option<SocketAddr>,
        segment_bytes: Option<u16>,
    ) -> Self {
        let (mut name, mut control) = (Name::EMPTY, Control::EMPTY);
        let name_len = write_socket_address(to, &mut name.0);
        let control_len = write_control(from, segment_bytes, &mut control.0);
        Self { name, name_len, control, control_len }
    }

    /// The message for the system, of this one part. What it points to is only read.
    fn message(&self, part: *mut WSABUF) -> WSAMSG {
        let control = self.control.0.as_ptr().cast_mut();
        WSAMSG {
            name: self.name.0.as_ptr().cast_mut().cast(),
            namelen: self.name_len as i32,
            lpBuffers: part,
            dwBufferCount: 1,
            Control: WSABUF {
                len: self.control_len as u32,
                buf: if self.control_len == 0 { null_mut() } else { control },
            },
            dwFlags: 0,
        }
    }
}

impl Letter {
    pub(crate) fn new(buffer: Vec<u8>, len: usize, envelope: Arc<Envelope>) -> Self {
        Self { buffer, len, envelope, part: NO_BYTES, message: WSAMSG::default() }
    }
}

impl Out {
    /// The buffer of something that was sent.
    pub(crate) fn into_buffer(self) -> Option<Vec<u8>> {
        match self {
            Self::Bytes { buffer, .. } => Some(buffer),
            Self::Letter(letter) => Some(letter.buffer),
            Self::Blocks { .. } | Self::File { .. } => None,
        }
    }
}

/// Sends one datagram along an envelope, at once.
pub(crate) fn send_letter(
    socket: BorrowedSocket<'_>,
    envelope: &Envelope,
    bytes: &[u8],
) -> io::Result<()> {
    let mut part = WSABUF { len: bytes.len() as u32, buf: bytes.as_ptr().cast_mut() };
    let message = envelope.message(&raw mut part);
    let mut sent = 0;
    // SAFETY: every pointer in the message is to memory of the length beside it that lives through the call,
    // which is over when it returns, for no completion is asked for.
    check(unsafe {
        WSASendMsg(raw(socket), &raw const message, 0, &raw mut sent, null_mut(), None)
    })
}

impl Load for Out {
    fn len(&self) -> usize {
        match self {
            Self::Blocks { len, .. } | Self::Bytes { len, .. } | Self::File { len, .. } => *len,
            Self::Letter(letter) => letter.len,
        }
    }
}

// SAFETY: the pointers are to a block or an envelope that the value has a share in, to its own buffer on the
// heap, and to nothing of a file but its handle, which the value has a share in. Winsock copies the list of parts before
// the call returns.
unsafe impl Call for Out {
    unsafe fn begin(&mut self, socket: SOCKET, record: *mut OVERLAPPED) -> i32 {
        match self {
            Self::Blocks { block, start, len } => {
                let mut parts = [NO_BYTES; MOST_BLOCKS + 1];
                let (mut from, mut left, mut used) = (*start, *len, 0);
                for part in &mut parts {
                    let piece = &block[from..][..left.min(block.len() - from)];
                    *part = WSABUF { len: piece.len() as u32, buf: piece.as_ptr().cast_mut() };
                    (from, left, used) = (0, left - piece.len(), used + 1);
                    if left == 0 {
                        break;
                    }
                }
                *len -= left;
                // SAFETY: `used` parts of the block, which lives until the operation is over.
                unsafe { WSASend(socket, parts.as_ptr(), used, null_mut(), 0, record, None) }
            }
            Self::Bytes { buffer, len } => {
                let part = WSABUF { len: *len as u32, buf: buffer.as_mut_ptr() };
                // SAFETY: one part, of the buffer's length at most, which lives until the operation is
                // over.
                unsafe { WSASend(socket, &raw const part, 1, null_mut(), 0, record, None) }
            }
            Self::Letter(letter) => {
                let Letter { buffer, len, envelope, part, message } = &mut **letter;
                *part = WSABUF { len: *len as u32, buf: buffer.as_mut_ptr() };
                *message = envelope.message(part);
                // SAFETY: every pointer in the message is to memory of the length beside it, which is this
                // value's on the heap or its envelope's, and lives until the operation is over.
                unsafe { WSASendMsg(socket, message, 0, null_mut(), record, None) }
            }
            Self::File { file, offset, len } => {
                // SAFETY: the record is valid and nobody else's; the file stays open until the operation is
                // over.
                let has_begun = unsafe {
                    (*record).Anonymous.Anonymous.Offset = *offset as u32;
                    (*record).Anonymous.Anonymous.OffsetHigh = (*offset >> 32) as u32;
                    TransmitFile(socket, file.as_raw_handle(), *len as u32, 0, record, null(), 0)
                };
                if has_begun == 0 { SOCKET_ERROR } else { 0 }
            }
        }
    }

    fn room(&self) -> Option<usize> {
        None
    }
}

// SAFETY: the pointer is to the vector's own buffer on the heap.
unsafe impl Call for Vec<u8> {
    unsafe fn begin(&mut self, socket: SOCKET, record: *mut OVERLAPPED) -> i32 {
        let part = WSABUF { len: self.len() as u32, buf: self.as_mut_ptr() };
        let mut flags = 0;
        // SAFETY: one part of the buffer's length, which lives until the operation is over.
        unsafe { WSARecv(socket, &raw const part, 1, null_mut(), &raw mut flags, record, None) }
    }

    fn room(&self) -> Option<usize> {
        Some(self.len())
    }
}

/// Room for a message, and what the system says of it.
pub(crate) struct Room {
    pub(crate) buffer: Vec<u8>,
    name: Name,
    control: Control,
    part: WSABUF,
    message: WSAMSG,
}

// SAFETY: the pointers in it are made anew by each call, to parts of the value itself.
unsafe impl Send for Room {}

impl std::fmt::Debug for Room {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Room").field("buffer_bytes", &self.buffer.len()).finish_non_exhaustive()
    }
}

impl Room {
    pub(crate) fn new(bytes: usize) -> Self {
        Self {
            buffer: vec![0; bytes],
            name: Name::EMPTY,
            control: Control::EMPTY,
            part: NO_BYTES,
            message: WSAMSG::default(),
        }
    }

    fn control(&self) -> &[u8] {
        self.control.0.get(..self.message.Control.len as usize).unwrap_or_default()
    }

    /// Bytes of each of the datagrams that the system joined, if it did.
    pub(crate) fn segment(&self) -> Option<usize> {
        segment_bytes(self.control())
    }

    /// Who sent it, if the socket takes from more than one.
    pub(crate) fn from(&self) -> Option<SocketAddr> {
        socket_address(&self.name.0)
    }

    /// The local address it was sent to, if the socket was asked to tell; the port is 0.
    pub(crate) fn to(&self) -> Option<SocketAddr> {
        destination(self.control())
    }
}

// SAFETY: the pointers are to the value's own parts, and to its buffer on the heap.
unsafe impl Call for Room {
    unsafe fn begin(&mut self, socket: SOCKET, record: *mut OVERLAPPED) -> i32 {
        self.part = WSABUF { len: self.buffer.len() as u32, buf: self.buffer.as_mut_ptr() };
        self.message = WSAMSG {
            name: self.name.0.as_mut_ptr().cast(),
            namelen: NAME_BYTES as i32,
            lpBuffers: &raw mut self.part,
            dwBufferCount: 1,
            Control: WSABUF { len: CONTROL_BYTES as u32, buf: self.control.0.as_mut_ptr() },
            dwFlags: 0,
        };
        match recv_msg(socket) {
            // SAFETY: every pointer in the message is to memory of the length beside it, and all of it is
            // this value's, which stays where it is until the operation is over.
            Some(recv_msg) => unsafe {
                recv_msg(socket, &raw mut self.message, null_mut(), record, None)
            },
            None => {
                self.message.Control.len = 0;
                let mut flags = 0;
                // SAFETY: one part, this value's own. Nobody is told who sent it.
                unsafe {
                    WSARecv(
                        socket,
                        &raw const self.part,
                        1,
                        null_mut(),
                        &raw mut flags,
                        record,
                        None,
                    )
                }
            }
        }
    }

    fn room(&self) -> Option<usize> {
        Some(self.buffer.len())
    }
}

/// Why an operation failed that had begun.
#[derive(Debug)]
pub(crate) struct Late(pub(crate) io::Error);

impl std::fmt::Display for Late {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Late {}

/// Whether sending a part of a file failed for the file and not for the socket.
pub fn is_of_the_file(error: &io::Error) -> bool {
    // Winsock's own numbers begin at 10000; those of the socket below them are few.
    const ABORTED: [i32; 2] = [995, 64]; // ERROR_OPERATION_ABORTED, ERROR_NETNAME_DELETED
    let late = error.get_ref().and_then(|error| error.downcast_ref::<Late>());
    let code = late.map_or(error, |late| &late.0).raw_os_error();
    code.is_some_and(|code| code < 10_000 && !ABORTED.contains(&code))
}

const NO_BYTES: WSABUF = WSABUF { len: 0, buf: null_mut() };
/// Most blocks of a call; the first may begin in its middle.
pub(crate) const MOST_BLOCKS: usize = 8;
