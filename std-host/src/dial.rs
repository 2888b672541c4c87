//! A client's data streams, opened as the session asks: TCP and SCTP one after the other by tasks, UDP
//! at once, with a greeting that is sent when the session says so and an ear on every socket.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use linerate_core::protocol::cookie::Cookie;
use linerate_core::protocol::greeting;
use linerate_core::session::{Client as ClientExchange, Phase, SessionError, StreamEvent};
use linerate_core::test::{Protocol, StreamId};
use linerate_core::time::Instant;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use crate::config::ClientConfig;
use crate::control::{Backend, MAX_STREAMS, TestSession};
use crate::errno;
use crate::error::{Error, words};
use crate::stream::{
    DataFile, DataSocket, Ear, Heard, LocalPoint, LocalPorts, SocketOptions, connect_stream,
    open_datagrams,
};

/// Opens the client's streams as the session asks.
pub(crate) struct Dialler<'a> {
    config: &'a ClientConfig,
    remote: SocketAddr,
    /// The address of this machine that the control connection has.
    local: SocketAddr,
    cookie: Cookie,
    options: Arc<SocketOptions>,
    ports: LocalPorts,
    inputs: mpsc::UnboundedSender<Opened>,
    dialling: Option<AbortHandle>,
    /// The sockets of UDP streams in the order in which they were opened, until the streams start.
    greeting: Vec<DataSocket>,
    /// Who listens for replies to their greetings.
    ears: JoinSet<()>,
    /// The network said that nobody listens.
    is_refused: bool,
    /// The file that the streams send or store in.
    pub(crate) file: Option<DataFile>,
}

/// What became of a stream.
pub(crate) enum Opened {
    /// It was opened, or could not be.
    Stream(StreamId, io::Result<DataSocket>),
    /// The network said this of its greeting.
    Heard(StreamId, Heard),
}

impl<'a> Dialler<'a> {
    pub(crate) fn new(
        config: &'a ClientConfig,
        control: &TcpStream,
        remote: SocketAddr,
        cookie: Cookie,
        options: SocketOptions,
        ports: LocalPorts,
        inputs: mpsc::UnboundedSender<Opened>,
    ) -> Result<Self, Error> {
        let failed = |error| Error::system("control connection", &error);
        let mut local = control.local_addr().map_err(failed)?;
        local.set_port(0);
        let options = Arc::new(options);
        Ok(Self {
            config,
            remote,
            local,
            cookie,
            options,
            ports,
            inputs,
            dialling: None,
            greeting: Vec::new(),
            ears: JoinSet::new(),
            is_refused: false,
            file: None,
        })
    }

    /// Where the stream at `index` starts.
    fn local_point(&mut self, index: usize) -> io::Result<LocalPoint> {
        if self.config.client_port.is_some() {
            return self.ports.give(self.local.ip(), index).ok_or_else(|| {
                let text = "no local port was kept for this stream";
                io::Error::new(io::ErrorKind::AddrNotAvailable, text)
            });
        }
        let of_sctp = self.options.sctp_addresses();
        let of_sctp = of_sctp.iter().find(|ip| ip.is_ipv4() == self.remote.is_ipv4());
        Ok(match (&self.config.bind, of_sctp) {
            (Some(_), _) => LocalPoint::At(self.local),
            (None, Some(&ip)) => LocalPoint::At((ip, 0).into()),
            (None, None) => LocalPoint::Any,
        })
    }

    /// Keeps the socket of a UDP stream, and listens on it.
    fn listen(&mut self, id: StreamId, socket: DataSocket) -> io::Result<()> {
        debug_assert_eq!(id.index(), self.greeting.len(), "streams are opened in order");
        let ear = Ear::new(&socket)?;
        self.greeting.push(socket);
        let inputs = self.inputs.clone();
        self.ears.spawn(async move {
            let mut answered = false;
            while !answered {
                let input = match ear.next().await {
                    Ok(heard) => {
                        answered = heard == Heard::Answer;
                        Opened::Heard(id, heard)
                    }
                    Err(error) => {
                        answered = true;
                        Opened::Stream(id, Err(error))
                    }
                };
                // The test may be over already.
                answered |= inputs.send(input).is_err();
            }
        });
        Ok(())
    }

    /// The local port that was asked for, for messages.
    fn chosen_port(&self, id: StreamId) -> Option<u16> {
        let first = self.config.client_port?;
        u16::try_from(usize::from(first) + id.index()).ok()
    }
}

impl<'a> Backend for Dialler<'a> {
    type Exchange = ClientExchange<'a, MAX_STREAMS>;
    type Input = Opened;

    fn open_stream(&mut self, id: StreamId, session: &TestSession<Self>) {
        let local = self.local_point(id.index());
        let (remote, cookie, port) = (self.remote, self.cookie, self.chosen_port(id));
        let (options, inputs) = (self.options.clone(), self.inputs.clone());
        if options.protocol() == Protocol::Udp {
            let opened = local.and_then(|local| open_datagrams(remote, local, &options));
            return match opened.and_then(|socket| self.listen(id, socket)) {
                Ok(()) => self.greet(id, session),
                // The test's own receiver lives as long as the test.
                Err(error) => drop(inputs.send(Opened::Stream(id, Err(explain(error, port))))),
            };
        }
        let limit = self.config.connect_timeout.unwrap_or(DATA_LIMIT);
        let dialling = tokio::spawn(async move {
            let opening = async { connect_stream(remote, local?, &cookie, &options).await };
            let opened = tokio::time::timeout(limit, opening).await.unwrap_or_else(|_| {
                Err(io::Error::new(io::ErrorKind::TimedOut, "no answer in time"))
            });
            // The test may be over already; then nobody wants the stream.
            let opened = opened.map_err(|error| explain(error, port));
            let _ = inputs.send(Opened::Stream(id, opened));
        });
        self.dialling = Some(dialling.abort_handle());
    }

    fn greet(&mut self, id: StreamId, session: &TestSession<Self>) {
        let Some(socket) = self.greeting.get(id.index()) else { return };
        let sent = match session.named_greeting(id) {
            Some(greeting) => socket.greet(&greeting.hello()),
            None => socket.greet(&greeting::HELLO),
        };
        let input = match sent {
            Ok(true) => return,
            Ok(false) => Opened::Heard(id, Heard::Unsent),
            Err(error) => Opened::Stream(id, Err(error)),
        };
        let _own_receiver_lives = self.inputs.send(input);
    }

    fn take_sockets(&mut self, session: &TestSession<Self>) -> Vec<DataSocket> {
        self.ears.abort_all();
        let mut opened: Vec<_> = self.greeting.drain(..).map(Some).collect();
        let places = (0..opened.len()).map(StreamId::from_index);
        let in_order = places.map(|id| session.opened_as(id).index());
        in_order.filter_map(|index| opened.get_mut(index)?.take()).collect()
    }

    fn file(&self) -> Option<&DataFile> {
        self.file.as_ref()
    }

    fn cpu(&self) -> Option<u16> {
        self.config.affinity
    }

    fn on_input(
        &mut self,
        session: &mut TestSession<Self>,
        sockets: &mut Vec<DataSocket>,
        now: Instant,
        opened: Opened,
    ) -> Result<(), Error> {
        let (id, opened) = match opened {
            Opened::Stream(id, opened) => (id, opened),
            Opened::Heard(id, Heard::Answer) => {
                session.handle_stream(now, id, StreamEvent::Connected);
                return Ok(());
            }
            Opened::Heard(id, heard @ (Heard::Refusal | Heard::Unsent)) => {
                self.is_refused |= heard == Heard::Refusal;
                session.handle_stream(now, id, StreamEvent::Refused);
                return Ok(());
            }
        };
        match opened {
            Ok(socket) => {
                sockets.push(socket);
                session.handle_stream(now, id, StreamEvent::Connected);
                Ok(())
            }
            Err(error) => {
                let code = errno::number(&error);
                session.handle_stream(now, id, StreamEvent::Failed { code });
                Err(Error::Stream {
                    number: id.number(),
                    protocol: self.options.protocol(),
                    port: self.config.port,
                    message: words(&error),
                })
            }
        }
    }

    fn explain(&self, error: SessionError, session: &TestSession<Self>) -> Error {
        // Words that say no more than the number are those of the number, and its cause is known here.
        if let (SessionError::Refused(refusal), Some(text)) = (error, session.explanation())
            && text != error.to_string()
        {
            return Error::Refused { refusal, text: text.to_owned() };
        }
        match error {
            SessionError::Ungreeted { of, .. } => Error::UdpUnanswered {
                port: self.config.port,
                streams: session.ungreeted().map(StreamId::number).collect(),
                of,
                is_refused: self.is_refused,
            },
            SessionError::ControlClosed(Phase::Preparing) if self.config.credentials.is_some() => {
                Error::LoginUnanswered
            }
            _ => Error::Session(error),
        }
    }
}

impl Drop for Dialler<'_> {
    fn drop(&mut self) {
        if let Some(dialling) = &self.dialling {
            dialling.abort();
        }
    }
}

/// A chosen port can be free and yet not be used: towards the same server it carries one connection,
/// and rests for a while after that has ended.
fn explain(error: io::Error, port: Option<u16>) -> io::Error {
    match (error.kind(), port) {
        (io::ErrorKind::AddrNotAvailable | io::ErrorKind::AddrInUse, Some(port)) => {
            let text = format!(
                "local port {port} has a connection to this server, or had one until a minute ago; \
                 choose another --cport"
            );
            io::Error::new(error.kind(), text)
        }
        _ => error,
    }
}

/// How long all data streams together may take to be opened. Datagrams are sent again and again, so
/// that there is nothing to wait for beyond what one connection may take.
pub(crate) fn streams_limit(config: &ClientConfig) -> Duration {
    match config.settings.protocol {
        Protocol::Tcp | Protocol::Sctp => STREAMS_LIMIT,
        Protocol::Udp => config.connect_timeout.unwrap_or(DATA_LIMIT),
    }
}

const STREAMS_LIMIT: Duration = Duration::from_secs(30);
/// How long one data connection may take when nobody says: a few attempts of the system's.
const DATA_LIMIT: Duration = Duration::from_secs(20);
