//! One test of a server, from its cookie to its end.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use linerate_core::protocol::code::{ServerError, error_number};
use linerate_core::protocol::cookie::Cookie;
use linerate_core::session::{
    Admission, Denial, Server as ServerExchange, ServerConfig as SessionConfig, ServerSession,
};
use linerate_core::test::{End, Protocol, TestSettings};
use linerate_core::time::Instant;
use socket2::SockRef;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::input::Input;
use super::policy::session_config;
use super::table::{Place, Promise};
use super::{NO_LOGIN, ObserveTests, Shared};
use crate::auth::Guest;
use crate::clock::Clock;
use crate::config::ServerConfig;
use crate::control::{self, Backend, Driver, MAX_STREAMS, Records, TestSession};
use crate::errno;
use crate::error::Error;
use crate::observe::{Cancel, Observer};
use crate::report::{Connection, Progress};
use crate::stream::{
    DataFile, DataSocket, Met, SocketOptions, adopt_stream, check_cpu, unusable_cpu, unusable_file,
};
use crate::sys;

/// A client that has said its cookie.
#[derive(Debug)]
pub(super) struct Visitor {
    pub(super) stream: TcpStream,
    pub(super) peer: SocketAddr,
    pub(super) cookie: Cookie,
}

/// A client that is asked for its test.
#[derive(Debug)]
pub(super) struct Arrived {
    pub(super) visitor: Visitor,
    /// The number of its test.
    pub(super) number: u64,
    /// The place that was kept for it, where there is a queue.
    pub(super) promise: Option<Promise>,
}

/// Runs the test; tells whether it was accepted.
pub(super) async fn host(
    test: Arrived,
    config: &ServerConfig,
    shared: &Arc<Shared>,
    tests: &dyn ObserveTests,
    observer: &mut dyn Observer,
    cancel: &Cancel,
) -> bool {
    let Arrived { visitor, number: test_number, promise } = test;
    let Visitor { stream, peer, cookie } = visitor;
    control::prepare(&stream, shared.control.keep_alive, shared.control.send_timeout);
    let clock = Clock::new();
    let session = begin(clock.now(), session_config(config, &shared.limits.get()));
    let connection = Connection {
        end: End::Server,
        test_number,
        peer_host: peer.ip().to_canonical().to_string(),
        peer_port: peer.port(),
        cookie: cookie.to_string(),
        control_mss: sys::mss(&SockRef::from(&stream)),
        path_block_bytes: None,
        time: SystemTime::now(),
        title: None,
        extra_data: None,
        settings: None,
    };
    observer.handle(Progress::Connected(Arc::new(connection.clone())));
    let (sender, inputs) = mpsc::unbounded_channel();
    let mut was_accepted = false;
    let hurrying = promise.is_some().then(|| {
        let (shared, sender) = (shared.clone(), sender.clone());
        tokio::spawn(async move { hurry(&shared, &sender).await }).abort_handle()
    });
    let backend = Host {
        cookie,
        peer,
        shared: shared.clone(),
        tests,
        guest: None,
        sender,
        options: None,
        promise,
        place: Err(Denial::Closing),
        waiting: hurrying,
        connected: Vec::new(),
        file: None,
        cpu: None,
        was_accepted: &mut was_accepted,
    };
    let records = Records::new(connection, config.interval);
    Driver::new(session, backend, stream, clock, inputs, records, observer).run(cancel).await;
    was_accepted
}

/// Tells a client that is asked for its test when others would like to have its place. Who asks for a
/// place in earnest says at once what for.
async fn hurry(shared: &Shared, sender: &mpsc::UnboundedSender<Input>) {
    tokio::time::sleep(PARAMETERS).await;
    while !shared.table.has_waiting() {
        tokio::time::sleep(NEXT_LOOK).await;
    }
    // The test's own receiver lives as long as the test.
    let _ = sender.send(Input::OthersWait);
}

/// As in the client: a session is large, and goes to the heap in a frame of its own.
#[inline(never)]
fn begin(now: Instant, config: SessionConfig) -> Box<ServerSession<MAX_STREAMS, TEXT_BYTES>> {
    Box::new(ServerSession::new(now, config))
}

/// Takes in the client's streams.
struct Host<'a> {
    cookie: Cookie,
    peer: SocketAddr,
    shared: Arc<Shared>,
    tests: &'a dyn ObserveTests,
    /// Who has just logged in.
    guest: Option<Guest>,
    sender: mpsc::UnboundedSender<Input>,
    options: Option<SocketOptions>,
    /// The place that was kept for this test until it takes one.
    promise: Option<Promise>,
    /// Its place, or why it has none.
    place: Result<Place, Denial>,
    /// The task that waits with it: for others to wait until its parameters are here, then for the check
    /// of its login, then for its UDP greetings.
    waiting: Option<AbortHandle>,
    /// The streams with an order that have come while others are missing, each with its order.
    connected: Vec<(u64, DataSocket)>,
    file: Option<DataFile>,
    cpu: Option<u16>,
    was_accepted: &'a mut bool,
}

/// Bytes for a client's free texts: as much as its parameters may have.
const TEXT_BYTES: usize = 8192;

impl Host<'_> {
    fn stop_waiting(&mut self) {
        if let Some(waiting) = self.waiting.take() {
            waiting.abort();
        }
    }

    /// Finds the test a place and gets ready for its streams.
    fn make_room(&mut self, session: &TestSession<Self>) {
        let settings = session.settings();
        if let Err((told, error)) = self.equip(settings) {
            let _ = self.sender.send(Input::Unfit(told, error));
            return;
        }
        let options = SocketOptions::new(settings, session.text().congestion());
        let options = options.with_own(self.shared.own.clone());
        if settings.protocol == Protocol::Sctp
            && let Err(error) = self.shared.sctp.open()
        {
            let told = sctp_error(&error);
            let error = Error::system(told.to_string(), &error);
            let _ = self.sender.send(Input::Unfit(told, error));
            return;
        }
        let is_stream = settings.protocol.is_stream();
        let streams = is_stream.then(|| self.sender.clone());
        let (promise, client) = (self.promise.take(), self.peer.ip());
        self.place = self.shared.table.enter(self.cookie, client, settings, promise, streams);
        self.options = Some(options.clone());
        if is_stream || self.place.is_err() {
            // The test's own receiver lives as long as the test.
            let _ = self.sender.send(Input::Prepared);
            return;
        }
        self.await_greetings(session, options);
    }

    /// Gets ready for the client's UDP streams.
    fn await_greetings(&mut self, session: &TestSession<Self>, options: SocketOptions) {
        let (shared, sender, client) = (self.shared.clone(), self.sender.clone(), self.peer.ip());
        let count = session.settings().stream_count();
        // A stream that cannot be made is missed by the session when its time is over.
        let greeting = if session.acknowledges_greetings() {
            let mut set_up = shared.udp.set_up_named(client, self.cookie, count);
            let _own_receiver_lives = sender.send(Input::Prepared);
            tokio::spawn(async move {
                let mut missing = count;
                while missing > 0 {
                    let input = match set_up.next(&options).await {
                        Ok(Met::Stream(index, socket)) => {
                            missing -= 1;
                            Input::Greeted(Some(index), socket)
                        }
                        Ok(Met::Stranger(from)) => Input::Strayed(from),
                        Err(_) => continue,
                    };
                    if sender.send(input).is_err() {
                        return;
                    }
                }
            })
        } else {
            tokio::spawn(async move {
                let mut set_up = shared.udp.set_up(client).await;
                let mut is_wanted = sender.send(Input::Prepared).is_ok();
                let mut greeted = 0;
                while is_wanted && greeted < count {
                    if let Ok(socket) = set_up.next(&options).await {
                        is_wanted = sender.send(Input::Greeted(None, socket)).is_ok();
                        greeted += 1;
                    }
                }
            })
        };
        self.waiting = Some(greeting.abort_handle());
    }

    /// Takes a stream that has its place in the order of creation. Roles hang on the order, and
    /// neither cookies nor datagrams keep it.
    fn take_in_order(
        &mut self,
        session: &mut TestSession<Self>,
        sockets: &mut Vec<DataSocket>,
        now: Instant,
        order: u64,
        socket: DataSocket,
    ) {
        self.connected.push((order, socket));
        if self.connected.len() == session.settings().stream_count() {
            self.connected.sort_unstable_by_key(|&(order, _)| order);
            for (_, socket) in self.connected.drain(..) {
                accept(session, sockets, now, socket);
            }
        }
    }
}

impl Backend for Host<'_> {
    type Exchange = ServerExchange<MAX_STREAMS, TEXT_BYTES>;
    type Input = Input;

    /// Before a login has been checked the test takes no place, which others could need.
    fn prepare(&mut self, session: &TestSession<Self>) {
        self.stop_waiting();
        if self.shared.gate.is_none() {
            if self.shared.limits.get().require_login {
                // Required since the limits were read again, by a server that began without keys.
                let told = ServerError::new(error_number::AUTH);
                let _ = self.sender.send(Input::Unfit(told, Error::Usage(NO_LOGIN.into())));
                return;
            }
            return self.make_room(session);
        }
        let (shared, sender, peer) = (self.shared.clone(), self.sender.clone(), self.peer.ip());
        let token = session.text().auth_token().map(str::to_owned);
        let checking = tokio::spawn(async move {
            if let Some(gate) = &shared.gate {
                // The test's own receiver lives as long as the test.
                let _ = sender.send(Input::Judged(gate.admit(token, peer).await));
            }
        });
        self.waiting = Some(checking.abort_handle());
    }

    fn on_input(
        &mut self,
        session: &mut TestSession<Self>,
        sockets: &mut Vec<DataSocket>,
        now: Instant,
        input: Input,
    ) -> Result<(), Error> {
        match (input, &self.options) {
            (Input::Prepared, _) => {
                *self.was_accepted = self.place.is_ok();
                let admission = match &self.place {
                    Ok(_) => Admission::Accept,
                    Err(denial) => Admission::NotAllowed(*denial),
                };
                session.handle_prepared(now, admission);
            }
            (Input::OthersWait, _) => session.handle_others_wait(now),
            (Input::Unfit(told, error), _) => {
                session.handle_prepared(now, Admission::Deny(told));
                return Err(error);
            }
            (Input::Judged(Ok(guest)), _) => {
                self.guest = Some(guest);
                self.make_room(session);
            }
            (Input::Judged(Err(refusal)), _) => {
                let error = ServerError::new(error_number::AUTH);
                session.handle_prepared(now, Admission::Deny(error));
                return Err(Error::Login(refusal));
            }
            (Input::Greeted(None, socket), _) => accept(session, sockets, now, socket),
            (Input::Greeted(Some(index), socket), _) => {
                self.take_in_order(session, sockets, now, index.into(), socket);
            }
            (Input::Strayed(from), _) => self.tests.turned_away(from, STRAYED),
            (Input::Connected(stream, order), Some(options)) => {
                let socket = adopt_stream(stream, options)
                    .map_err(|error| Error::system("unable to accept a stream", &error))?;
                self.take_in_order(session, sockets, now, order, socket);
            }
            (Input::Connected(..), None) => {}
        }
        Ok(())
    }

    fn on_server_output(
        &mut self,
        session: &mut TestSession<Self>,
        now: Instant,
        bytes: Option<u32>,
    ) {
        session.handle_server_output(now, bytes);
    }

    fn on_agreed(&mut self, session: &TestSession<Self>, connection: &mut Connection) {
        connection.settings = Some(*session.settings());
        connection.title = session.text().title().map(str::to_owned);
        connection.extra_data = session.text().extra_data().map(str::to_owned);
    }

    fn take_guest(&mut self) -> Option<Guest> {
        self.guest.take()
    }

    fn on_started(&mut self) {
        if let Ok(place) = &self.place {
            place.set_running();
        }
    }

    fn on_over(&mut self) {
        if let Ok(place) = &self.place {
            place.set_over();
        }
    }

    fn file(&self) -> Option<&DataFile> {
        self.file.as_ref()
    }

    fn cpu(&self) -> Option<u16> {
        self.cpu
    }

    fn concurrent_tests(&self) -> u32 {
        self.place.as_ref().map_or(0, Place::beside_lately)
    }

    fn concurrent_tests_in_all(&self) -> u32 {
        self.place.as_ref().map_or(0, Place::beside)
    }

    fn weigh(&self, bits_per_second: u64) -> Option<Denial> {
        self.place.as_ref().ok()?.weigh(bits_per_second)
    }
}

impl Host<'_> {
    /// Gets the CPU and the file for the streams of a test, or says why it cannot be: what to tell the
    /// client, and this end's own words.
    fn equip(&mut self, settings: &TestSettings) -> Result<(), (ServerError, Error)> {
        let told = |number, error: &io::Error| ServerError { number, errno: errno::number(error) };
        if let Some(cpu) = settings.server_affinity {
            match check_cpu(cpu) {
                Err(error) if error.kind() != io::ErrorKind::Unsupported => {
                    let told = told(error_number::AFFINITY, &error);
                    return Err((told, unusable_cpu(cpu, &error)));
                }
                _ => {}
            }
        }
        self.cpu = settings.server_affinity.or(self.shared.affinity);
        let Some(path) = &self.shared.file else { return Ok(()) };
        let file = DataFile::new(path.clone(), End::Server, settings.direction);
        let file =
            file.map_err(|error| (told(error_number::FILE, &error), unusable_file(path, &error)))?;
        self.file = Some(file);
        Ok(())
    }
}

/// Brings a stream into the test, if it awaits one.
fn accept<'a>(
    session: &mut TestSession<Host<'a>>,
    sockets: &mut Vec<DataSocket>,
    now: Instant,
    socket: DataSocket,
) {
    sockets.push(socket);
    if session.handle_stream_accepted(now).is_none() {
        sockets.pop();
    }
}

/// What the client is told when the SCTP port cannot be opened.
fn sctp_error(error: &io::Error) -> ServerError {
    let errno = errno::number(error);
    match error.kind() {
        // Somebody else has the port; anything else means that there is no SCTP.
        io::ErrorKind::AddrInUse => ServerError { number: STREAM_LISTENER, errno },
        _ => ServerError { number: error_number::NO_SCTP, errno },
    }
}

/// How long a client may take to say what to test where others wait: several round trips by satellite.
const PARAMETERS: Duration = Duration::from_secs(5);
/// How soon a client that took longer while nobody waited notices that somebody does.
const NEXT_LOOK: Duration = Duration::from_secs(1);
const STRAYED: &str =
    "its datagrams belong to a test of another address; --udp-anywhere lets them in";
/// iperf3's number for data connections that cannot be listened for.
const STREAM_LISTENER: i32 = 202;

impl Drop for Host<'_> {
    fn drop(&mut self) {
        self.stop_waiting();
    }
}
