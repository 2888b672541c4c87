//! The server's SCTP port, which is closed until a client asks for SCTP. Knows no test: its connections
//! are told apart by their cookies, as those of the TCP port are.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::Listen;
use super::listen::Make;
use crate::sys;

/// The port, and how to open it. Dropping it closes the port.
#[derive(Debug)]
pub(crate) struct SctpDoor {
    listen: Listen,
    device: Option<String>,
    /// Further addresses of this machine to listen on.
    also: Vec<IpAddr>,
    accepted: mpsc::Sender<(TcpStream, SocketAddr)>,
    /// The task that accepts, once it is open.
    accepting: Mutex<Option<AbortHandle>>,
}

impl SctpDoor {
    /// A door to `listen`, whose connections go to `accepted`.
    pub(crate) fn new(
        listen: Listen,
        device: Option<String>,
        also: Vec<IpAddr>,
        accepted: mpsc::Sender<(TcpStream, SocketAddr)>,
    ) -> Self {
        Self { listen, device, also, accepted, accepting: Mutex::default() }
    }

    /// Opens the port, unless it is open. Must be called within a tokio runtime.
    pub(crate) fn open(&self) -> io::Result<()> {
        self.open_with(&sys::sctp_socket)
    }

    fn open_with(&self, make: Make<'_>) -> io::Result<()> {
        let mut accepting = self.accepting.lock().unwrap_or_else(PoisonError::into_inner);
        if accepting.is_some() {
            return Ok(());
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
        let task = tokio::spawn(accept(listener, self.accepted.clone()));
        *accepting = Some(task.abort_handle());
        Ok(())
    }
}

impl Drop for SctpDoor {
    fn drop(&mut self) {
        let accepting = self.accepting.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(accepting) = accepting {
            accepting.abort();
        }
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
    async fn the_port_opens_when_it_is_asked_for_and_closes_with_the_server() {
        let free = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let at = free.local_addr().unwrap();
        drop(free);
        let (sender, mut accepted) = mpsc::channel(1);
        let door = SctpDoor::new(Listen::At(at), None, Vec::new(), sender);
        assert!(TcpStream::connect(at).await.is_err(), "nobody asked for it");
        for _ in 0..2 {
            door.open_with(&instead).unwrap();
            let near = TcpStream::connect(at).await.unwrap();
            let (_, peer) = accepted.recv().await.unwrap();
            assert_eq!(peer, near.local_addr().unwrap());
        }
        drop(door);
        // The task ends at its next turn, and the port with it.
        while TcpStream::connect(at).await.is_ok() {
            tokio::task::yield_now().await;
        }
    }
}
