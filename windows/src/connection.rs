//! What the system knows of a TCP connection.

use std::os::windows::io::BorrowedSocket;
use std::ptr::{from_ref, null_mut};

use windows_sys::Win32::Networking::WinSock::{SIO_TCP_INFO, WSAIoctl};

use crate::options::{check, raw};
use crate::tcp_info::{RECORD_BYTES, TcpInfo};

/// What is known of a connection: its newest record first, which Windows has since Windows 10 2004,
/// then the one since Windows 10 1703.
pub fn tcp_info(socket: BorrowedSocket<'_>) -> Option<TcpInfo> {
    let mut record = [0; RECORD_BYTES];
    let filled = ask(socket, 1, &mut record).or_else(|| ask(socket, 0, &mut record))?;
    TcpInfo::read(record.get(..filled)?)
}

/// Asks for a version and returns how many bytes it has.
fn ask(socket: BorrowedSocket<'_>, version: u32, record: &mut [u8]) -> Option<usize> {
    let mut filled = 0;
    // SAFETY: reads the version and writes at most as many bytes as `record` has; both lengths are
    // those of what the pointers point to. No completion is asked for.
    let result = unsafe {
        WSAIoctl(
            raw(socket),
            SIO_TCP_INFO,
            from_ref(&version).cast(),
            size_of_val(&version) as u32,
            record.as_mut_ptr().cast(),
            record.len() as u32,
            &raw mut filled,
            null_mut(),
            None,
        )
    };
    check(result).ok().map(|()| filled as usize)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
    use std::os::windows::io::AsSocket;

    use super::*;

    #[test]
    fn a_connection_is_told_of_where_the_system_can_and_a_datagram_socket_never() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        match tcp_info(near.as_socket()) {
            Some(info) => assert!(info.mss() > Some(500) && info.stats().cwnd_bytes > Some(0)),
            None => println!("skipped: this system tells nothing of connections"),
        }
        let datagrams = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        assert_eq!(tcp_info(datagrams.as_socket()), None);
    }
}
