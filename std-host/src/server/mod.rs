//! A server: one port, any number of tests at once. Each fresh connection is greeted by a task of
//! its own, so that nobody waits for a silent one; each test is a task of its own with a session of
//! its own, and they share nothing but the table that finds a test by its cookie.

mod books;
mod greet;
mod host;
mod input;
mod policy;
mod queue;
mod table;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use linerate_core::accept::Admission;
use linerate_core::protocol::code::ControlCode;
use linerate_core::protocol::explanation::explanation_frame;
use linerate_core::session::Denial;
use socket2::{Domain, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::auth::Gate;
use crate::config::{Family, KeepAlive, ServerConfig};
use crate::connect::{of_family, resolve};
use crate::control;
use crate::device;
use crate::error::Error;
use crate::limits::LiveLimits;
use crate::observe::{Cancel, Observer};
use crate::stream::{Guests, Listen, OwnOptions, SctpDoor, UdpDoor, require_cpu};
use crate::sys;
use greet::{Greeted, Greetings};
use host::{Arrived, Visitor, host};
use table::{Table, Welcome};

/// A server whose port is open.
#[derive(Debug)]
pub struct Server {
    config: ServerConfig,
    listener: TcpListener,
    /// Connections to the SCTP port, while it is open.
    of_sctp: mpsc::Receiver<(TcpStream, SocketAddr)>,
    asks: mpsc::Receiver<oneshot::Sender<()>>,
    handle: ServerHandle,
    shared: Arc<Shared>,
}

/// Reaches a server while it runs. Clones reach the same one.
#[derive(Debug, Clone)]
pub struct ServerHandle(mpsc::Sender<oneshot::Sender<()>>);

impl ServerHandle {
    /// Returns once the server has given a sign of life, from the task that takes its connections.
    /// `false` if it does not run any more.
    pub async fn gives_sign(&self) -> bool {
        let (sender, sign) = oneshot::channel();
        self.0.send(sender).await.is_ok() && sign.await.is_ok()
    }
}

/// What all tests of a server have in common.
#[derive(Debug)]
struct Shared {
    table: Table,
    limits: LiveLimits,
    /// Tests so far.
    count: AtomicU64,
    udp: UdpDoor,
    sctp: SctpDoor,
    /// What this server wants of all its data sockets.
    own: OwnOptions,
    control: ControlOptions,
    /// File to store in, or to send from.
    file: Option<PathBuf>,
    /// CPU of the streams of clients that name none.
    affinity: Option<u16>,
    /// Where clients have to log in.
    gate: Option<Gate>,
}

/// What this server wants of its control connections.
#[derive(Debug, Clone, Copy)]
struct ControlOptions {
    keep_alive: KeepAlive,
    send_timeout: Option<Duration>,
}

/// Watches a server: makes the observer of each test, and hears of those who got none.
pub trait ObserveTests: Send + Sync {
    /// An observer for the test with this number, counted from one.
    fn observe(&self, test_number: u64) -> Box<dyn Observer>;

    /// A connection was turned away before it became a test: whose, and why.
    fn turned_away(&self, _peer: SocketAddr, _why: &str) {}

    /// A client waits for its turn, at this place of the queue, from one.
    fn waits(&self, _peer: SocketAddr, _place: usize) {}

    /// The system gives the server no more connections for now.
    fn cannot_accept(&self, _error: &std::io::Error) {}
}

impl Server {
    /// Opens the port, TCP and UDP. Must be called within a tokio runtime with I/O and time.
    ///
    /// # Errors
    /// [`Error::System`] when the port is taken, or the address or CPU is not this machine's,
    /// [`Error::Usage`] when the files of its login cannot be used.
    pub async fn bind(config: ServerConfig) -> Result<Self, Error> {
        let device = config.bind_device.as_deref();
        device::check(device)?;
        if let Some(cpu) = config.affinity {
            require_cpu(cpu)?;
        }
        let gate = open_gate(&config).await?;
        if config.limits.require_login && gate.is_none() {
            return Err(Error::Usage(NO_LOGIN.into()));
        }
        let listen = listen_address(&config).await?;
        let failed = |error| {
            let what = match &config.bind {
                Some(name) => format!("{LISTEN} on {name} port {}", config.port),
                None => format!("{LISTEN} on port {}", config.port),
            };
            Error::system(what, &error)
        };
        let prepare = |socket: &Socket| {
            reuse_address(socket)?;
            device.map_or(Ok(()), |device| sys::bind_to_device(socket, device))
        };
        let socket = listen.bind_with(&listening_socket, &prepare).map_err(failed)?;
        socket.listen(BACKLOG).map_err(failed)?;
        let listener = TcpListener::from_std(socket.into()).map_err(failed)?;
        let local = listener.local_addr().map_err(failed)?;
        // Of an MPTCP socket, Linux does not tell the zone that it is bound to.
        let listen = listen.with_port(local.port());
        let guests = if config.udp_anywhere { Guests::Anyone } else { Guests::default() };
        let udp = UdpDoor::bind(listen, device, guests).map_err(failed)?;
        let also = sctp_addresses(&config).await?;
        let (sender, of_sctp) = mpsc::channel(1);
        let sctp = SctpDoor::new(listen, config.bind_device.clone(), also, sender);
        let limits = LiveLimits::new(config.limits.clone());
        let table = Table::new(limits.clone(), config.one_off);
        let own = OwnOptions {
            device: config.bind_device.clone(),
            send_timeout: config.send_timeout,
            ..OwnOptions::default()
        };
        let control = ControlOptions {
            keep_alive: config.control_keep_alive,
            send_timeout: config.send_timeout,
        };
        let (file, affinity) = (config.file.clone(), config.affinity);
        let count = AtomicU64::new(0);
        let shared = Shared { table, limits, count, udp, sctp, own, control, file, affinity, gate };
        let shared = Arc::new(shared);
        let (asker, asks) = mpsc::channel(MOST_ASKS);
        let handle = ServerHandle(asker);
        Ok(Self { config, listener, of_sctp, asks, handle, shared })
    }

    /// What reaches this server while it runs.
    pub fn handle(&self) -> ServerHandle {
        self.handle.clone()
    }

    /// The port that is open, which the system chose if the configuration says 0.
    pub fn port(&self) -> u16 {
        self.listener.local_addr().map_or(self.config.port, |address| address.port())
    }

    /// Its limits, which can be replaced while it runs.
    pub fn limits(&self) -> LiveLimits {
        self.shared.limits.clone()
    }

    /// Serves tests until `cancel`, or until the first accepted test is over if that is all it is
    /// to serve; then also until the idle time-out if no test comes, to which failed attempts are
    /// none. Running tests are ended with a summary and their clients told.
    pub async fn run(self, tests: Arc<dyn ObserveTests>, cancel: &Cancel) {
        let Self { config, listener, mut of_sctp, mut asks, handle: _reachable, shared } = self;
        let mut greetings = Greetings::new();
        let mut limits = shared.limits.changes();
        // A server that goes on has nothing to do when it is idle.
        let idle_timeout = config.idle_timeout.filter(|_| config.one_off);
        let idle_at = idle_timeout.map(|timeout| Instant::now() + timeout);
        let config = Arc::new(config);
        let running = JoinSet::new();
        let mut hosted = Hosted { config, shared, tests, running, is_closing: false };
        loop {
            if hosted.is_closing && hosted.running.is_empty() {
                return;
            }
            let room_at = greetings.room_at();
            tokio::select! {
                accepted = accept(&listener, &mut of_sctp, room_at) => match accepted {
                    // Of many silent connections, those that have nothing to hope for go first.
                    Ok((_, peer)) if greetings.are_many() && !hosted.is_let_in(peer) => {
                        hosted.tests.turned_away(peer, &Denial::Network.to_string());
                    }
                    Ok((stream, peer)) => {
                        if let Some(peer) = greetings.begin(stream, peer) {
                            hosted.tests.turned_away(peer, "too many silent connections");
                        }
                    }
                    // Out of descriptors, most likely: running tests will give some back.
                    Err(error) => {
                        hosted.tests.cannot_accept(&error);
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
                Some((result, peer)) = greetings.next() => match result {
                    Ok(visitor) => hosted.take_in(visitor, peer, cancel),
                    Err(why) => hosted.tests.turned_away(peer, why),
                },
                Ok(()) = limits.changed() => hosted.shared.table.call_next(),
                Some(ask) = asks.recv() => {
                    // Who asked may have given up.
                    let _ = ask.send(());
                }
                Some(ended) = hosted.running.join_next() => {
                    let was_accepted = ended.unwrap_or(false);
                    if hosted.config.one_off && was_accepted {
                        return;
                    }
                }
                () = idle(idle_at), if !hosted.is_closing => hosted.is_closing = true,
                () = cancel.cancelled() => break,
            }
        }
        let all_ended = async { while hosted.running.join_next().await.is_some() {} };
        // A test that does not end in time is ended with the server.
        let _ = tokio::time::timeout(LAST_TESTS, all_ended).await;
    }
}

/// The tests of a running server.
struct Hosted {
    config: Arc<ServerConfig>,
    shared: Arc<Shared>,
    tests: Arc<dyn ObserveTests>,
    /// Each tells at its end whether its test was accepted.
    running: JoinSet<bool>,
    /// Its patience is over: who is being set up may still become the test, nobody else.
    is_closing: bool,
}

impl Hosted {
    fn is_let_in(&self, peer: SocketAddr) -> bool {
        self.shared.limits.get().networks.admit(peer.ip())
    }

    /// Brings a connection that said its cookie where it belongs.
    fn take_in(&mut self, greeted: Greeted, peer: SocketAddr, cancel: &Cancel) {
        let Greeted { stream, cookie, order } = greeted;
        match self.shared.table.admission(&cookie) {
            _ if !self.is_let_in(peer) => self.turn_away(&stream, peer, Denial::Network),
            Admission::Stream => self.shared.table.hand_over(&cookie, stream, order),
            Admission::Late => refuse(&stream),
            Admission::Control => match self.welcome(peer) {
                Ok(welcome) => {
                    let visitor = Visitor { stream, peer, cookie };
                    self.begin(visitor, welcome, cancel.clone());
                }
                Err(denial) => self.turn_away(&stream, peer, denial),
            },
        }
    }

    fn welcome(&self, peer: SocketAddr) -> Result<Welcome, Denial> {
        if self.is_closing {
            return Err(Denial::Closing);
        }
        let welcome = self.shared.table.welcome(peer.ip())?;
        // With those whose parameters have not come yet.
        let most = 2 * self.shared.limits.get().tests.max(FEWEST_CLIENTS);
        let is_crowd = self.running.len() >= most as usize;
        if is_crowd && matches!(welcome, Welcome::Now(None)) {
            return Err(Denial::Clients { limit: most });
        }
        Ok(welcome)
    }

    /// Runs a client's test, once it is its turn.
    fn begin(&mut self, visitor: Visitor, welcome: Welcome, cancel: Cancel) {
        let (shared, tests) = (self.shared.clone(), self.tests.clone());
        let config = self.config.clone();
        self.running.spawn(async move {
            let promise = match welcome {
                Welcome::Now(promise) => promise,
                Welcome::Later(waiting) => {
                    let limit = shared.limits.get().queue_time;
                    control::prepare(
                        &visitor.stream,
                        shared.control.keep_alive,
                        shared.control.send_timeout,
                    );
                    tests.waits(visitor.peer, waiting.place());
                    match queue::wait(&visitor.stream, waiting, limit, &cancel).await {
                        Ok(promise) => Some(promise),
                        Err(why) => {
                            if let queue::Left::Refused(denial) = why {
                                explain(&visitor.stream, denial);
                            }
                            tests.turned_away(visitor.peer, &why.to_string());
                            return false;
                        }
                    }
                }
            };
            let number = 1 + shared.count.fetch_add(1, Ordering::Relaxed);
            let mut observer = tests.observe(number);
            let test = Arrived { visitor, number, promise };
            host(test, &config, &shared, &*tests, observer.as_mut(), &cancel).await
        });
    }

    fn turn_away(&self, stream: &TcpStream, peer: SocketAddr, denial: Denial) {
        explain(stream, denial);
        self.tests.turned_away(peer, &denial.to_string());
    }
}

/// Waits until then, if ever.
async fn idle(until: Option<Instant>) {
    match until {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// The next connection, not before there is room for it.
async fn accept(
    listener: &TcpListener,
    of_sctp: &mut mpsc::Receiver<(TcpStream, SocketAddr)>,
    room_at: Option<Instant>,
) -> io::Result<(TcpStream, SocketAddr)> {
    if let Some(at) = room_at {
        tokio::time::sleep_until(at).await;
    }
    tokio::select! {
        accepted = listener.accept() => accepted,
        Some(accepted) = of_sctp.recv() => Ok(accepted),
    }
}

/// One port takes TCP and, where the system has it, MPTCP: what arrives as plain TCP is accepted as a
/// plain TCP socket.
fn listening_socket(domain: Domain) -> io::Result<Socket> {
    sys::multipath_socket(domain).or_else(|_| Socket::new(domain, Type::STREAM, None))
}

/// The addresses of `-X`.
async fn sctp_addresses(config: &ServerConfig) -> Result<Vec<IpAddr>, Error> {
    let mut addresses = Vec::new();
    for name in &config.sctp_bind {
        let failed = |error| Error::system(format!("-X {name}"), &error);
        let found = of_family(name, resolve(name, 0).await.map_err(failed)?, config.family)?;
        addresses.push(found[0].ip());
    }
    Ok(addresses)
}

/// Whoever waits for this can give up: the system may not give the files.
async fn open_gate(config: &ServerConfig) -> Result<Option<Gate>, Error> {
    let Some(login) = config.login.clone() else { return Ok(None) };
    let opening = tokio::task::spawn_blocking(move || Gate::open(&login));
    let failed = |error| Error::system("unable to start", &io::Error::other(error));
    opening.await.map_err(failed)?.map(Some)
}

async fn listen_address(config: &ServerConfig) -> Result<Listen, Error> {
    let port = config.port;
    Ok(match (&config.bind, config.family) {
        (Some(name), family) => {
            let found = resolve(name, port).await;
            let found = found.map_err(|error| Error::system(format!("-B {name}"), &error))?;
            Listen::At(of_family(name, found, family)?[0])
        }
        (None, Some(Family::V4)) => Listen::At((Ipv4Addr::UNSPECIFIED, port).into()),
        (None, Some(Family::V6)) => Listen::At((Ipv6Addr::UNSPECIFIED, port).into()),
        (None, None) => Listen::Everywhere { port },
    })
}

/// Lets a server start again at once on a port whose last connections are still winding down. On
/// Windows the same option would let two servers share the port.
fn reuse_address(socket: &Socket) -> io::Result<()> {
    if cfg!(windows) { Ok(()) } else { socket.set_reuse_address(true) }
}

/// Tells a peer that it cannot be served now, in the word that stock clients understand.
fn refuse(stream: &TcpStream) {
    // One byte fits the send buffer of any fresh connection; a peer that is gone needs none.
    let _ = stream.try_write(&[ControlCode::AccessDenied.byte()]);
}

/// The same, and why, for a client that can read it.
fn explain(stream: &TcpStream, denial: Denial) {
    let mut bytes = vec![ControlCode::AccessDenied.byte()];
    bytes.extend_from_slice(&explanation_frame(&denial));
    let _ = stream.try_write(&bytes);
}

/// iperf3's words for a port that cannot be opened.
const LISTEN: &str = "unable to start listener for connections";
const NO_LOGIN: &str = "require-login: needs --rsa-private-key-path and --authorized-users-path";
/// As many tests as clients are counted for, at least: so many may ask for a test at once, and as many
/// run.
const FEWEST_CLIENTS: u32 = 256;
/// What may be asked of the server before it has answered.
const MOST_ASKS: usize = 8;
const BACKLOG: i32 = 1024;
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How long running tests have to end when the server is stopped. Windows ends a process 5 seconds after its
/// console is closed.
const LAST_TESTS: Duration = Duration::from_secs(if cfg!(windows) { 3 } else { 5 });
