//! One test: carries the bytes of its control connection, does what its session says, and gives its
//! streams their turns. Nothing of the protocol is decided here.

use core::mem;

use heapless::Vec;
use linerate_core::accept::Known;
use linerate_core::protocol::code::{ServerError, error_number};
use linerate_core::protocol::cookie::Cookie;
use linerate_core::session::{
    Action, Admission, Command, Phase, ServerConfig, ServerSession, Transmit,
};
use linerate_core::stats::{CpuTimes, Sample};
use linerate_core::test::{Protocol, StreamId};
use linerate_core::time::{Duration, Instant};
use smoltcp::iface::SocketHandle;
use smoltcp::socket::{tcp as tcp_socket, udp as udp_socket};
use smoltcp::wire::IpEndpoint;

use super::server::Stage;
use super::stream::{Flow, Link, Stream, Turn};
use super::{tcp, udp};

/// A test, from its cookie to the close of its control connection.
#[derive(Debug)]
pub(super) struct Test<const N: usize, const T: usize> {
    session: ServerSession<N, T>,
    cookie: Cookie,
    control: SocketHandle,
    peer: IpEndpoint,
    streams: Vec<Stream, N>,
    /// The stream whose turn is first. It changes, because they share what can be sent.
    first: usize,
    /// What the session is to be told next.
    due: Due,
    control_ended: bool,
    /// The control connection has taken all that is to be said.
    is_silent: bool,
    /// The session is over; until then its last bytes may still leave.
    closing: Option<Instant>,
}

/// Answers that the session waits for.
#[derive(Debug, Default)]
struct Due {
    admission: Option<Admission>,
    samples: u8,
    output: bool,
}

impl<const N: usize, const T: usize> Test<N, T> {
    pub(super) fn new(
        now: Instant,
        config: &ServerConfig,
        control: SocketHandle,
        peer: IpEndpoint,
        cookie: Cookie,
    ) -> Self {
        Self {
            session: ServerSession::new(now, *config),
            cookie,
            control,
            peer,
            streams: Vec::new(),
            first: 0,
            due: Due::default(),
            control_ended: false,
            is_silent: false,
            closing: None,
        }
    }

    /// What is known of a test of this name.
    pub(super) fn known(&self, cookie: &Cookie) -> Option<Known> {
        (self.cookie == *cookie).then(|| match self.awaited() {
            Some(Protocol::Tcp) => Known::AwaitingStreams,
            Some(Protocol::Udp | Protocol::Sctp) | None => Known::Running,
        })
    }

    /// Whether a connection of this peer may become a stream.
    pub(super) fn may_be_stream(&self, peer: Option<IpEndpoint>) -> bool {
        self.awaited() == Some(Protocol::Tcp) && peer.is_some_and(|it| it.addr == self.peer.addr)
    }

    /// The client has all it wants; what remains is to close.
    pub(super) fn is_closing(&self) -> bool {
        matches!(self.session.phase(), Phase::Done | Phase::Over)
    }

    /// Takes what came on the control connection, and lets the timers fire.
    pub(super) fn hear(&mut self, stage: &mut Stage<'_, '_, N, T>) {
        while !self.control_ended {
            let socket = stage.sockets.get_mut::<tcp_socket::Socket<'_>>(self.control);
            let session = &mut self.session;
            let taken = socket.can_recv()
                && socket
                    .recv(|bytes| {
                        session.handle_control(stage.now, bytes);
                        (bytes.len(), ())
                    })
                    .is_ok();
            if !taken && socket.may_recv() {
                break;
            }
            if !taken {
                self.control_ended = true;
                self.session.handle_control_closed(stage.now);
            }
            self.settle(stage);
        }
        self.session.handle_timeout(stage.now);
        self.settle(stage);
    }

    pub(super) fn interrupt(&mut self, stage: &mut Stage<'_, '_, N, T>) {
        self.session.handle_command(Command::Interrupt);
        self.settle(stage);
    }

    /// Takes a TCP connection as the next stream; `false` if it is one too many.
    pub(super) fn accept_tcp(
        &mut self,
        stage: &mut Stage<'_, '_, N, T>,
        handle: SocketHandle,
    ) -> bool {
        let socket = stage.sockets.get_mut::<tcp_socket::Socket<'_>>(handle);
        socket.set_nagle_enabled(!self.session.settings().no_delay);
        stage.connections.take(handle);
        self.accept(stage, Link::Tcp(handle))
    }

    /// Gives the streams their turns and sends what the session has to say. Returns when there is
    /// more to do even if nothing comes.
    pub(super) fn work(&mut self, stage: &mut Stage<'_, '_, N, T>) -> Option<Instant> {
        while let Some(greeted) = self.receive_datagrams(stage) {
            let socket = stage.sockets.get_mut::<udp_socket::Socket<'_>>(stage.udp);
            // Without an answer there is no stream; the client will give up.
            if udp::answer(socket, greeted) {
                self.accept(stage, Link::Udp(greeted));
            }
        }
        let next_turn = self.move_data(stage);
        self.speak(stage);
        let deadline = self.session.poll_timeout().map(|(_, at)| at);
        [next_turn, deadline, self.closing].into_iter().flatten().min()
    }

    /// Closes the control connection if everything is said and done, or the time for it is over.
    pub(super) fn close_if_over(&self, stage: &mut Stage<'_, '_, N, T>) -> bool {
        let socket = stage.sockets.get::<tcp_socket::Socket<'_>>(self.control);
        let is_spent = self.is_silent || !socket.may_send();
        let is_over = self.closing.is_some_and(|until| is_spent || stage.now >= until);
        if is_over {
            stage.connections.leave(stage.now, stage.sockets, self.control);
        }
        is_over
    }

    /// The transport of the streams that the client is to open now.
    fn awaited(&self) -> Option<Protocol> {
        (self.session.phase() == Phase::Streams).then(|| self.session.settings().protocol)
    }

    fn accept(&mut self, stage: &mut Stage<'_, '_, N, T>, link: Link) -> bool {
        // The stream is there before the session hears of it, because it may start all of them.
        if self.streams.push(Stream::new(link)).is_err() {
            return false;
        }
        let is_accepted = self.session.handle_stream_accepted(stage.now).is_some();
        if !is_accepted {
            self.streams.pop();
        }
        self.settle(stage);
        is_accepted
    }

    /// Drains the session: does what it says and tells what happened, until it wants nothing more.
    fn settle(&mut self, stage: &mut Stage<'_, '_, N, T>) {
        loop {
            while let Some(action) = self.session.poll_action() {
                self.perform(stage, action);
            }
            while let Some(event) = self.session.poll_event() {
                stage.observer.test_event(event, &self.session);
            }
            if let Some(admission) = self.due.admission.take() {
                self.session.handle_prepared(stage.now, admission);
            } else if self.due.samples > 0 {
                self.due.samples -= 1;
                let samples: Vec<Sample, N> = self.streams.iter().map(Stream::sample).collect();
                self.session.handle_samples(stage.now, &samples, CpuTimes::default());
            } else if mem::take(&mut self.due.output) {
                self.session.handle_server_output(stage.now, None);
            } else {
                return;
            }
        }
    }

    fn perform(&mut self, stage: &mut Stage<'_, '_, N, T>, action: Action) {
        match action {
            Action::OpenStream(..) | Action::Greet(_) => {}
            Action::Prepare => self.due.admission = Some(self.prepare(stage)),
            Action::StartStreams => self.start_streams(stage),
            Action::Sample => self.due.samples += 1,
            Action::StopStreams => self.stop_streams(stage),
            Action::CloseStreams => self.close_streams(stage),
            // Its only test is all that it moves.
            Action::Weigh { .. } => {}
            Action::CollectOutput => self.due.output = true,
            Action::CloseControl => self.closing = Some(stage.now + FAREWELL),
        }
    }

    /// Gets ready for the client's streams: sockets must listen before it is told to connect.
    fn prepare(&self, stage: &mut Stage<'_, '_, N, T>) -> Admission {
        let settings = self.session.settings();
        match settings.protocol {
            Protocol::Tcp => {
                stage.connections.await_streams(stage.sockets, settings.stream_count());
            }
            Protocol::Udp => {
                let most = udp::most_datagram_bytes(
                    stage.config.mtu_bytes,
                    self.peer.addr,
                    stage.sockets.get(stage.udp),
                );
                if settings.block_bytes > most {
                    return Admission::Deny(ServerError::new(error_number::UDP_BLOCK_SIZE));
                }
            }
            Protocol::Sctp => return Admission::Deny(ServerError::new(error_number::NO_SCTP)),
        }
        Admission::Accept
    }

    fn start_streams(&mut self, stage: &mut Stage<'_, '_, N, T>) {
        stage.connections.await_no_streams(stage.sockets);
        for (index, stream) in self.streams.iter_mut().enumerate() {
            if let Some(plan) = self.session.plan(StreamId::from_index(index)) {
                stream.start(stage.now, &plan);
            }
        }
    }

    /// Receivers take what has arrived; senders write only in their turns, which are over.
    fn stop_streams(&mut self, stage: &mut Stage<'_, '_, N, T>) {
        self.receive_datagrams(stage);
        for stream in &mut self.streams {
            if let (Link::Tcp(handle), Flow::Receive(flow)) = (stream.link, &mut stream.flow) {
                tcp::receive(stage.now, stage.sockets.get_mut(handle), flow);
            }
        }
    }

    /// A TCP stream's end is sent at once: a stock client that receives reads on until it comes.
    fn close_streams(&mut self, stage: &mut Stage<'_, '_, N, T>) {
        stage.connections.await_no_streams(stage.sockets);
        for stream in mem::take(&mut self.streams) {
            if let Link::Tcp(handle) = stream.link {
                stage.connections.leave(stage.now, stage.sockets, handle);
            }
        }
    }

    /// Gives arrived datagrams to their streams, up to a greeting that is awaited.
    fn receive_datagrams(
        &mut self,
        stage: &mut Stage<'_, '_, N, T>,
    ) -> Option<udp_socket::UdpMetadata> {
        let awaited = (self.awaited() == Some(Protocol::Udp)).then_some(self.peer.addr);
        let socket = stage.sockets.get_mut::<udp_socket::Socket<'_>>(stage.udp);
        udp::sort(stage.now, socket, &mut self.streams, awaited)
    }

    fn move_data(&mut self, stage: &mut Stage<'_, '_, N, T>) -> Option<Instant> {
        let datagram_bytes = self.session.settings().block_bytes as usize;
        let count = self.streams.len();
        self.first = (self.first + 1) % count.max(1);
        let mut next = None;
        for index in (self.first..count).chain(0..self.first) {
            // An event may end the test, and the streams with it.
            let Some(stream) = self.streams.get_mut(index) else { break };
            let turn = match (stream.link, &mut stream.flow) {
                (Link::Tcp(handle), flow) => {
                    tcp::turn(stage.now, stage.sockets.get_mut(handle), flow)
                }
                (Link::Udp(peer), Flow::Send(flow)) => {
                    let socket = stage.sockets.get_mut(stage.udp);
                    udp::send(stage.now, socket, peer, datagram_bytes, flow)
                }
                (Link::Udp(_), _) => Turn::default(),
            };
            let event = stream.ended(turn);
            next = [next, turn.wait_until].into_iter().flatten().min();
            if let Some(event) = event {
                self.session.handle_stream(stage.now, StreamId::from_index(index), event);
                self.settle(stage);
            }
        }
        next
    }

    /// Sends what the session has to say, as much as the control connection takes.
    fn speak(&mut self, stage: &mut Stage<'_, '_, N, T>) {
        let socket = stage.sockets.get_mut::<tcp_socket::Socket<'_>>(self.control);
        loop {
            let taken = match self.session.poll_control() {
                None => break self.is_silent = true,
                Some(Transmit::Bytes(bytes)) => socket.send_slice(bytes).unwrap_or(0),
                // None was announced, so nothing of it is to be sent.
                Some(Transmit::ServerOutput) => 0,
            };
            if taken == 0 {
                break self.is_silent = false;
            }
            self.session.consume_control(taken);
        }
    }
}

/// How long the last bytes may take.
const FAREWELL: Duration = Duration::from_secs(1);
