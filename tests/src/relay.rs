//! A box in the middle that a client takes for its server, as the router of a network with one public
//! address is: each connection and each sender of datagrams gets a port of its own on it. What it does
//! with datagrams is up to the test.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::server::free_port;

/// A box that is up; it closes its ports when dropped.
#[derive(Debug)]
pub struct Relay {
    port: u16,
    is_over: Arc<AtomicBool>,
}

/// What it does with datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Datagrams {
    /// Carries them on from its own address.
    Pass,
    /// Carries them on from this address of the loopback.
    PassFrom(Ipv4Addr),
    /// Takes them and does nothing.
    Swallow,
    /// Has no port for them.
    Refuse,
    /// Carries them on, but has no port for so long after each answer to a new sender.
    RefuseAfterEach(Duration),
}

impl Relay {
    /// Opens one before the server at `server` of the loopback.
    ///
    /// # Panics
    ///
    /// When the system gives it no port.
    pub fn start(server: u16, datagrams: Datagrams) -> Self {
        let port = free_port();
        let is_over = Arc::new(AtomicBool::new(false));
        let server = SocketAddr::from((Ipv4Addr::LOCALHOST, server));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("a free port");
        listener.set_nonblocking(true).expect("a socket can be non-blocking");
        let over = is_over.clone();
        thread::spawn(move || carry_connections(&listener, server, &over));
        if datagrams != Datagrams::Refuse {
            let carrier = Carrier {
                port,
                server,
                datagrams,
                door: Mutex::new(Some(open(port).expect("a free port"))),
                is_over: is_over.clone(),
            };
            thread::spawn(move || Arc::new(carrier).run());
        }
        Self { port, is_over }
    }

    /// Where clients find it.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

fn carry_connections(listener: &TcpListener, server: SocketAddr, is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        let Ok((near, _)) = listener.accept() else {
            thread::sleep(TICK);
            continue;
        };
        let Ok(far) = TcpStream::connect(server) else { continue };
        let copies = near.set_nonblocking(false).and_then(|()| near.try_clone());
        let (Ok(near_too), Ok(far_too)) = (copies, far.try_clone()) else { continue };
        thread::spawn(move || carry_bytes(near, far));
        thread::spawn(move || carry_bytes(far_too, near_too));
    }
}

fn carry_bytes(mut from: TcpStream, mut to: TcpStream) {
    // A connection that broke ends on the other side as well.
    let _ = io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
}

/// Carries datagrams there and back.
struct Carrier {
    port: u16,
    server: SocketAddr,
    datagrams: Datagrams,
    /// None while nobody listens.
    door: Mutex<Option<UdpSocket>>,
    is_over: Arc<AtomicBool>,
}

impl Carrier {
    fn run(self: Arc<Self>) {
        let mut senders: HashMap<SocketAddr, UdpSocket> = HashMap::new();
        let mut buffer = vec![0; 1 << 16];
        while !self.is_over.load(Ordering::Relaxed) {
            let door = self.door().as_ref().and_then(|door| door.try_clone().ok());
            let Some(door) = door else {
                thread::sleep(TICK);
                continue;
            };
            let Ok((len, from)) = door.recv_from(&mut buffer) else { continue };
            // The other copy, too, has to be closed for the port to be.
            drop(door);
            if self.datagrams == Datagrams::Swallow {
                continue;
            }
            let own = senders.entry(from).or_insert_with(|| self.clone().begin(from));
            let _ = own.send(&buffer[..len]);
        }
    }

    /// A port for a new sender, from which it is answered by a thread of its own.
    fn begin(self: Arc<Self>, from: SocketAddr) -> UdpSocket {
        let address = match self.datagrams {
            Datagrams::PassFrom(address) => IpAddr::V4(address),
            _ => IpAddr::V4(Ipv4Addr::LOCALHOST),
        };
        let own = UdpSocket::bind((address, 0)).expect("a port of the loopback");
        own.connect(self.server).expect("the loopback is connected");
        own.set_read_timeout(Some(TICK)).expect("a time-out");
        let answers = own.try_clone().expect("a descriptor");
        thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            let mut is_first = true;
            while !self.is_over.load(Ordering::Relaxed) {
                let Ok(len) = answers.recv(&mut buffer) else { continue };
                let mut door = self.door();
                let Some(open_door) = door.as_ref() else { continue };
                if let Datagrams::RefuseAfterEach(pause) = self.datagrams
                    && std::mem::replace(&mut is_first, false)
                {
                    let again = open_door.try_clone().expect("a descriptor");
                    *door = None;
                    drop(door);
                    // The receiving thread lets go of its copy within its time-out.
                    thread::sleep(4 * TICK);
                    let _ = again.send_to(&buffer[..len], from);
                    drop(again);
                    thread::sleep(pause);
                    *self.door() = Some(open(self.port).expect("nobody else takes the port"));
                    continue;
                }
                let _ = open_door.send_to(&buffer[..len], from);
            }
        });
        own
    }

    fn door(&self) -> std::sync::MutexGuard<'_, Option<UdpSocket>> {
        self.door.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn open(port: u16) -> io::Result<UdpSocket> {
    let door = UdpSocket::bind((Ipv4Addr::LOCALHOST, port))?;
    door.set_read_timeout(Some(TICK))?;
    Ok(door)
}

/// How soon a thread notices that it is over.
const TICK: Duration = Duration::from_millis(5);
