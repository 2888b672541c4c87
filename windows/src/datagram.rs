//! Datagrams with the local address they were sent to, by `WSARecvMsg`; without it where the system
//! has none.

use std::io;
use std::mem::size_of;
use std::net::SocketAddr;
use std::os::windows::io::BorrowedSocket;
use std::ptr::{from_ref, null_mut};
use std::sync::OnceLock;

use windows_sys::Win32::Networking::WinSock::{
    IP_PKTINFO, IPPROTO_IP, IPPROTO_IPV6, IPV6_PKTINFO, LPFN_WSARECVMSG,
    SIO_GET_EXTENSION_FUNCTION_POINTER, SOCKET, SOCKET_ERROR, WSABUF, WSAEMSGSIZE,
    WSAID_WSARECVMSG, WSAIoctl, WSAMSG, recvfrom,
};

use crate::bytes::{destination, socket_address};
use crate::options::{check, raw, set_option};

/// A datagram and where it came from and went to.
#[derive(Debug, Clone, Copy)]
pub struct Datagram {
    /// Bytes written to the buffer.
    pub len: usize,
    /// The sender.
    pub from: SocketAddr,
    /// The local address it was sent to, where the system tells; the port is zero.
    pub to: Option<SocketAddr>,
}

/// Before [`recv_with_destination`]: asks for local addresses. An IPv6 socket that takes IPv4 too
/// has to ask for each family.
///
/// # Errors
/// Of kind `Unsupported` where the system does not tell.
pub fn request_destination(socket: BorrowedSocket<'_>, ipv6: bool) -> io::Result<()> {
    let v4 = set_option(socket, IPPROTO_IP, IP_PKTINFO, 1);
    if ipv6 { set_option(socket, IPPROTO_IPV6, IPV6_PKTINFO, 1) } else { v4 }
}

/// Receives one datagram; what does not fit the buffer is lost.
///
/// # Errors
/// As any receiving call; `WouldBlock` when nothing is there.
pub fn recv_with_destination(
    socket: BorrowedSocket<'_>,
    buffer: &mut [u8],
) -> io::Result<Datagram> {
    let mut name = Name::EMPTY;
    let (len, to) = match recv_msg(raw(socket)) {
        None => (receive(socket, buffer, &mut name)?, None),
        Some(function) => {
            let mut control = Control::EMPTY;
            let (len, filled) = receive_message(function, socket, buffer, &mut name, &mut control)?;
            (len, control.0.get(..filled).and_then(destination))
        }
    };
    let from = socket_address(&name.0).ok_or(io::ErrorKind::InvalidData)?;
    Ok(Datagram { len, from, to })
}

pub(crate) type RecvMsg = <LPFN_WSARECVMSG as IntoIterator>::Item;

/// The function, which is asked for through any socket and the same for all.
pub(crate) fn recv_msg(socket: SOCKET) -> Option<RecvMsg> {
    static FUNCTION: OnceLock<LPFN_WSARECVMSG> = OnceLock::new();
    *FUNCTION.get_or_init(|| find_recv_msg(socket))
}

fn find_recv_msg(socket: SOCKET) -> LPFN_WSARECVMSG {
    let mut function: LPFN_WSARECVMSG = None;
    let mut written = 0;
    // SAFETY: reads the id and writes one function pointer of the type that belongs to it; both
    // lengths are those of what the pointers point to. No completion is asked for.
    let result = unsafe {
        WSAIoctl(
            socket,
            SIO_GET_EXTENSION_FUNCTION_POINTER,
            from_ref(&WSAID_WSARECVMSG).cast(),
            size_of_val(&WSAID_WSARECVMSG) as u32,
            (&raw mut function).cast(),
            size_of::<LPFN_WSARECVMSG>() as u32,
            &raw mut written,
            null_mut(),
            None,
        )
    };
    check(result).ok().and(function)
}

/// Returns the bytes of the datagram and of the control messages.
fn receive_message(
    function: RecvMsg,
    socket: BorrowedSocket<'_>,
    buffer: &mut [u8],
    name: &mut Name,
    control: &mut Control,
) -> io::Result<(usize, usize)> {
    let mut part = WSABUF { len: buffer.len() as u32, buf: buffer.as_mut_ptr() };
    let mut message = WSAMSG {
        name: name.0.as_mut_ptr().cast(),
        namelen: NAME_BYTES as i32,
        lpBuffers: &raw mut part,
        dwBufferCount: 1,
        Control: WSABUF { len: CONTROL_BYTES as u32, buf: control.0.as_mut_ptr() },
        dwFlags: 0,
    };
    let mut len = 0;
    // SAFETY: every pointer in `message` is to memory of the length beside it that lives through
    // the call, which is over when it returns, for no completion is asked for.
    let result = unsafe { function(raw(socket), &raw mut message, &raw mut len, null_mut(), None) };
    let len = if result == SOCKET_ERROR { cut_to(buffer.len())? } else { len as usize };
    Ok((len, message.Control.len as usize))
}

/// Returns the bytes of the datagram.
fn receive(socket: BorrowedSocket<'_>, buffer: &mut [u8], name: &mut Name) -> io::Result<usize> {
    let mut name_len = NAME_BYTES as i32;
    let room = i32::try_from(buffer.len()).unwrap_or(i32::MAX);
    // SAFETY: both buffers have as many writable bytes as the length beside them says.
    let result = unsafe {
        recvfrom(
            raw(socket),
            buffer.as_mut_ptr(),
            room,
            0,
            name.0.as_mut_ptr().cast(),
            &raw mut name_len,
        )
    };
    usize::try_from(result).or_else(|_| cut_to(buffer.len()))
}

/// What the last error says about a datagram: one that did not fit is cut and no failure.
fn cut_to(room: usize) -> io::Result<usize> {
    let error = io::Error::last_os_error();
    if error.raw_os_error() == Some(WSAEMSGSIZE) { Ok(room) } else { Err(error) }
}

/// Room for any socket address, aligned as a `SOCKADDR_STORAGE` is.
#[repr(align(8))]
pub(crate) struct Name(pub(crate) [u8; NAME_BYTES]);

impl Name {
    pub(crate) const EMPTY: Self = Self([0; NAME_BYTES]);
}

/// Room for control messages, aligned as their headers are.
#[repr(align(8))]
pub(crate) struct Control(pub(crate) [u8; CONTROL_BYTES]);

impl Control {
    pub(crate) const EMPTY: Self = Self([0; CONTROL_BYTES]);
}

pub(crate) const NAME_BYTES: usize = 128;
pub(crate) const CONTROL_BYTES: usize = 128;
