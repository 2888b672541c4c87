//! The server's SCTP port, which is open only while a test with SCTP waits for its streams. Knows no
//! test: its connections are told apart by their cookies, as those of the TCP port are.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::Listen;
use super::listen::Make;
use crate::sys;

/// How to open the port, and whoever has opened it.
#[derive(Debug)]
pub(crate) struct SctpDoor {
    listen: Listen,
    device: Option<String>,
    /// Further addresses of this machine to listen on.
    also: Vec<IpAddr>,
    accepted: mpsc::Sender<(TcpStream, SocketAddr)>,
    open: Mutex<Weak<OpenSctp>>,
}

/// The open port, which closes when the last test drops it.
#[derive(Debug)]
pub(crate) struct OpenSctp(AbortHandle);

impl SctpDoor {
    /// A door to `listen`, whose connections go to `accepted`.
    pub(crate) fn new(
        listen: Listen,
        device: Option<String>,
        also: Vec<IpAddr>,
        accepted: mpsc::Sender<(TcpStream, SocketAddr)>,
    ) -> Self {
        Self { listen, device, also, accepted, open: Mutex::default() }
    }

    /// Opens the port, unless another test has. Must be called within a tokio runtime.
    pub(crate) fn open(&self) -> io::Result<Arc<OpenSctp>> {
        self.open_with(&sys::sctp_socket)
    }

    fn open_with(&self, make: Make<'_>) -> io::Result<Arc<OpenSctp>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = open.upgrade() {
            return Ok(open);
        }
        let prepare = |socket: &socket2::Socket| {
            socket.set_reuse_address(true)?;
            self.device.as_ref().map_or(Ok(()), |device| sys::bind_to_device(socket, device))
        };
        let socket = self.listen.bind_with(make, &prepare)?;
        let local = socket.local_addr()?.as_socket().ok_or(io::ErrorKind::InvalidData)?;
        let also: Vec<_> = self.also.iter().filter(|&&ip| ip != local.ip()).collect();
        if !also.is_empty() {
            let also: Vec<_> = also.iter().map(|&&ip| SocketAddr::new(ip, local.port())).collect();
            sys::bind_sctp_also(&socket, &also)?;
        }
        socket.listen(BACKLOG)?;
        // The socket calls are those of TCP, and tokio looks no further.
        let listener = TcpListener::from_std(socket.into())?;
        let accepting = tokio::spawn(accept(listener, self.accepted.clone()));
        let opened = Arc::new(OpenSctp(accepting.abort_handle()));
        *open = Arc::downgrade(&opened);
        Ok(opened)
    }
}

impl Drop for OpenSctp {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn accept(listener: TcpListener, accepted: mpsc::Sender<(TcpStream, SocketAddr)>) {
    loop {
        match listener.accept().await {
            Ok(connection) => {
                // Without a server there is nobody to serve.
                let Ok(()) = accepted.send(connection).await else { return };
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

const BACKLOG: i32 = 256;
/// After a failure to accept, which may stay for a while.
const PAUSE: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use socket2::{Domain, Socket, Type};

    use super::*;

    /// This machine need not have SCTP, and the calls are those of TCP.
    fn instead(domain: Domain) -> io::Result<Socket> {
        Socket::new(domain, Type::STREAM, None)
    }

    #[tokio::test]
    async fn the_port_is_open_while_a_test_holds_it() {
        let free = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let at = free.local_addr().unwrap();
        drop(free);
        let (sender, mut accepted) = mpsc::channel(1);
        let door = SctpDoor::new(Listen::At(at), None, Vec::new(), sender);
        assert!(TcpStream::connect(at).await.is_err(), "nobody asked for it");
        for _ in 0..2 {
            let first = door.open_with(&instead).unwrap();
            let second = door.open_with(&instead).unwrap();
            assert!(Arc::ptr_eq(&first, &second), "one port for all tests");
            drop(first);
            let near = TcpStream::connect(at).await.unwrap();
            let (_, peer) = accepted.recv().await.unwrap();
            assert_eq!(peer, near.local_addr().unwrap());
            drop(second);
            // The task ends at its next turn, and the port with it.
            while TcpStream::connect(at).await.is_ok() {
                tokio::task::yield_now().await;
            }
        }
    }
}
