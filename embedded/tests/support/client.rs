//! A client of the engine on the same stack as the server: enough to run every kind of test, and to
//! break off at any point.

use linerate_embedded::engine::flow::{ReceiveFlow, SendFlow, Step, StreamPlan};
use linerate_embedded::engine::protocol::cookie::Cookie;
use linerate_embedded::engine::protocol::greeting;
use linerate_embedded::engine::protocol::parameters::ClientText;
use linerate_embedded::engine::report::SideSummary;
use linerate_embedded::engine::session::{
    Action, ClientConfig, ClientSession, Deadlines, Ending, Event, Phase, StreamEvent, Transmit,
};
use linerate_embedded::engine::stats::{CpuTimes, Sample};
use linerate_embedded::engine::test::{Protocol, Role, StreamId, TestSettings};
use linerate_embedded::engine::time::Instant as EngineInstant;
use smoltcp::iface::SocketHandle;
use smoltcp::socket::{tcp, udp};
use smoltcp::time::Instant;

use super::world::{HOST, Net, SERVER, STREAMS};

pub(crate) struct Client {
    session: ClientSession<'static, STREAMS>,
    cookie: Cookie,
    control: SocketHandle,
    was_connected: bool,
    streams: Vec<Stream>,
    samples_due: u32,
    is_stopped: bool,
    opens_streams: bool,
    pub(crate) ending: Option<Ending>,
}

struct Stream {
    handle: SocketHandle,
    protocol: Protocol,
    /// The server knows it.
    is_connected: bool,
    flow: Option<Flow>,
}

enum Flow {
    Send(SendFlow<0>),
    Receive(ReceiveFlow<8, 0>),
}

impl Client {
    pub(crate) fn start(now: Instant, net: &mut Net, settings: TestSettings) -> Self {
        let cookie = Cookie::from_random([net.port() as u8; 36]);
        let config = ClientConfig {
            settings,
            packet_rate: None,
            text: ClientText::default(),
            client_version: linerate_embedded::engine::IPERF3_EQUIVALENT,
            interval: None,
            offer: None,
            deadlines: Deadlines::default(),
        };
        let session = ClientSession::new(time(now), config, cookie).expect("few streams");
        Self {
            session,
            cookie,
            control: net.connect(),
            was_connected: false,
            streams: Vec::new(),
            samples_due: 0,
            is_stopped: false,
            opens_streams: true,
            ending: None,
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        self.session.phase()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.ending.is_some()
    }

    /// What was sent and what was received on a stream, in bytes and packets.
    pub(crate) fn counted(&self, index: usize) -> ((u64, u64), (u64, u64)) {
        let summary = self.session.accounts().summary(index).expect("a stream");
        let side = |side: Option<&SideSummary>| {
            side.map_or((0, 0), |side| (side.bytes, side.datagrams.packets))
        };
        (side(summary.sent()), side(summary.received()))
    }

    pub(crate) fn poll(&mut self, now: Instant, net: &mut Net) -> Option<Instant> {
        self.hear(now, net);
        self.session.handle_timeout(time(now));
        self.settle(now, net);
        self.connect_streams(now, net);
        let next_turn = self.move_data(now, net);
        self.speak(net);
        let deadline = self.session.poll_timeout().map(|(_, at)| at);
        let next = [next_turn, deadline].into_iter().flatten().min();
        next.map(|at| Instant::from_micros(at.as_nanos().div_ceil(1000) as i64))
    }

    /// It does everything but that.
    pub(crate) fn never_opens_streams(&mut self) {
        self.opens_streams = false;
    }

    /// Whether the server has said something that it has not taken.
    pub(crate) fn has_news(&self, net: &Net) -> bool {
        net.sockets.get::<tcp::Socket<'_>>(self.control).can_recv()
    }

    /// Whether all of its connections are closed by both ends.
    pub(crate) fn is_closed(&self, net: &Net) -> bool {
        let is_tcp = |stream: &&Stream| stream.protocol == Protocol::Tcp;
        let streams = self.streams.iter().filter(is_tcp).map(|stream| stream.handle);
        streams.chain([self.control]).all(|handle| {
            let state = net.sockets.get::<tcp::Socket<'_>>(handle).state();
            matches!(state, tcp::State::Closed | tcp::State::TimeWait)
        })
    }

    /// Closes its sockets as a program's end does.
    pub(crate) fn close(&mut self, net: &mut Net) {
        self.each_tcp(net, tcp::Socket::close);
    }

    /// Closes its sockets as a program's end does that left something unread.
    pub(crate) fn reset(&mut self, net: &mut Net) {
        self.each_tcp(net, tcp::Socket::abort);
    }

    /// Gives its sockets back. What is not closed yet is as if the machine had lost its memory.
    pub(crate) fn leave(&mut self, net: &mut Net) {
        for stream in self.streams.drain(..) {
            net.sockets.remove(stream.handle);
        }
        net.sockets.remove(self.control);
    }

    fn each_tcp(&mut self, net: &mut Net, end: fn(&mut tcp::Socket<'static>)) {
        let is_tcp = |stream: &&Stream| stream.protocol == Protocol::Tcp;
        for stream in self.streams.iter().filter(is_tcp) {
            end(net.sockets.get_mut(stream.handle));
        }
        end(net.sockets.get_mut(self.control));
    }

    fn hear(&mut self, now: Instant, net: &mut Net) {
        loop {
            let socket = net.sockets.get_mut::<tcp::Socket<'_>>(self.control);
            self.was_connected |= socket.may_send();
            if self.is_over() || !self.was_connected {
                return;
            }
            let mut bytes = [0; 512];
            match socket.recv_slice(&mut bytes) {
                Ok(0) => return,
                Ok(len) => self.session.handle_control(time(now), &bytes[..len]),
                Err(_) => self.session.handle_control_closed(time(now)),
            }
            self.settle(now, net);
        }
    }

    fn speak(&mut self, net: &mut Net) {
        let socket = net.sockets.get_mut::<tcp::Socket<'_>>(self.control);
        while let Some(Transmit::Bytes(bytes)) = self.session.poll_control() {
            match socket.send_slice(bytes) {
                Ok(len) if len > 0 => self.session.consume_control(len),
                _ => return,
            }
        }
        if self.is_over() {
            socket.close();
        }
    }

    fn settle(&mut self, now: Instant, net: &mut Net) {
        loop {
            while let Some(action) = self.session.poll_action() {
                self.perform(now, net, action);
            }
            while let Some(event) = self.session.poll_event() {
                if let Event::Finished(ending) = event {
                    self.ending = Some(ending);
                }
            }
            if self.samples_due == 0 {
                return;
            }
            self.samples_due -= 1;
            let samples: Vec<Sample> = self.streams.iter().map(Stream::sample).collect();
            self.session.handle_samples(time(now), &samples, CpuTimes::default());
        }
    }

    fn perform(&mut self, now: Instant, net: &mut Net, action: Action) {
        match action {
            Action::OpenStream(..) if self.opens_streams => {
                let stream = Stream::open(net, self.session.settings().protocol);
                self.streams.push(stream);
            }
            Action::StartStreams => {
                for (index, stream) in self.streams.iter_mut().enumerate() {
                    let plan = self.session.plan(StreamId::from_index(index)).expect("it runs");
                    stream.flow = Some(Flow::new(time(now), &plan));
                }
            }
            Action::Sample => self.samples_due += 1,
            Action::StopStreams => {
                for stream in &mut self.streams {
                    stream.receive(time(now), net);
                }
                self.is_stopped = true;
            }
            Action::CloseStreams => {
                for stream in self.streams.iter().filter(|it| it.protocol == Protocol::Tcp) {
                    net.sockets.get_mut::<tcp::Socket<'_>>(stream.handle).close();
                }
            }
            _ => {}
        }
    }

    fn connect_streams(&mut self, now: Instant, net: &mut Net) {
        for index in 0..self.streams.len() {
            let cookie = self.cookie;
            let stream = &mut self.streams[index];
            if !stream.is_connected && stream.connect(net, &cookie) {
                stream.is_connected = true;
                let id = StreamId::from_index(index);
                self.session.handle_stream(time(now), id, StreamEvent::Connected);
                self.settle(now, net);
            }
        }
    }

    fn move_data(&mut self, now: Instant, net: &mut Net) -> Option<EngineInstant> {
        let block_bytes = self.session.settings().block_bytes as usize;
        let mut next = None;
        for index in 0..self.streams.len() {
            if self.is_stopped {
                return None;
            }
            let stream = &mut self.streams[index];
            let (wait_until, is_done) = match (&mut stream.flow, stream.protocol) {
                (Some(Flow::Send(flow)), Protocol::Tcp) => {
                    send_tcp(time(now), net.sockets.get_mut(stream.handle), flow)
                }
                (Some(Flow::Send(flow)), Protocol::Udp) => {
                    send_udp(time(now), net.sockets.get_mut(stream.handle), flow, block_bytes)
                }
                _ => (None, stream.receive(time(now), net)),
            };
            next = [next, wait_until].into_iter().flatten().min();
            if is_done {
                let id = StreamId::from_index(index);
                self.session.handle_stream(time(now), id, StreamEvent::LimitReached);
                self.settle(now, net);
            }
        }
        next
    }
}

impl Flow {
    fn new(now: EngineInstant, plan: &StreamPlan) -> Self {
        match plan.role {
            Role::Sender => Self::Send(SendFlow::new(now, plan)),
            Role::Receiver => Self::Receive(ReceiveFlow::new(plan)),
        }
    }
}

impl Stream {
    fn open(net: &mut Net, protocol: Protocol) -> Self {
        let handle = match protocol {
            Protocol::Tcp | Protocol::Sctp => net.connect(),
            Protocol::Udp => {
                let handle = net.datagrams(HOST);
                let socket = net.sockets.get_mut::<udp::Socket<'_>>(handle);
                socket.send_slice(&greeting::HELLO, SERVER).expect("there is room");
                handle
            }
        };
        Self { handle, protocol, is_connected: false, flow: None }
    }

    /// Does its part of the connection; `true` once it stands.
    fn connect(&self, net: &mut Net, cookie: &Cookie) -> bool {
        match self.protocol {
            Protocol::Tcp | Protocol::Sctp => {
                let socket = net.sockets.get_mut::<tcp::Socket<'_>>(self.handle);
                socket.may_send() && socket.send_slice(cookie.as_bytes()).is_ok()
            }
            Protocol::Udp => {
                let socket = net.sockets.get_mut::<udp::Socket<'_>>(self.handle);
                socket.recv().is_ok_and(|(datagram, _)| greeting::is_reply(datagram))
            }
        }
    }

    /// Takes what has arrived; whether that is all it should.
    fn receive(&mut self, now: EngineInstant, net: &mut Net) -> bool {
        let Some(Flow::Receive(flow)) = &mut self.flow else { return false };
        match self.protocol {
            Protocol::Tcp | Protocol::Sctp => {
                let socket = net.sockets.get_mut::<tcp::Socket<'_>>(self.handle);
                while socket.can_recv() {
                    let taken = socket.recv(|bytes| (bytes.len(), bytes.len()));
                    flow.handle_bytes(now, taken.unwrap_or(0) as u64);
                }
            }
            Protocol::Udp => {
                let socket = net.sockets.get_mut::<udp::Socket<'_>>(self.handle);
                while let Ok((datagram, _)) = socket.recv() {
                    flow.handle_datagram(now, datagram, datagram.len());
                }
            }
        }
        flow.is_done()
    }

    fn sample(&self) -> Sample {
        match &self.flow {
            Some(Flow::Send(flow)) => flow.sample(),
            Some(Flow::Receive(flow)) => flow.sample(),
            None => Sample::default(),
        }
    }
}

fn send_tcp(
    now: EngineInstant,
    socket: &mut tcp::Socket<'_>,
    flow: &mut SendFlow<0>,
) -> (Option<EngineInstant>, bool) {
    loop {
        let most = match flow.poll_step(now) {
            Step::Send { bytes } => bytes as usize,
            Step::Wait { until } => return (Some(until), false),
            Step::Done => return (None, socket.send_queue() == 0),
        };
        let taken = socket.send(|buffer| (buffer.len().min(most), buffer.len().min(most)));
        match taken {
            Ok(bytes) if bytes > 0 => flow.handle_sent(now, bytes as u64),
            _ => return (None, false),
        }
    }
}

fn send_udp(
    now: EngineInstant,
    socket: &mut udp::Socket<'_>,
    flow: &mut SendFlow<0>,
    block_bytes: usize,
) -> (Option<EngineInstant>, bool) {
    loop {
        match flow.poll_step(now) {
            Step::Send { .. } => {}
            Step::Wait { until } => return (Some(until), false),
            Step::Done => return (None, true),
        }
        let Ok(datagram) = socket.send(block_bytes, SERVER) else { return (None, false) };
        flow.write_header(now, 0, datagram);
        flow.handle_datagrams_sent(now, 1);
    }
}

fn time(now: Instant) -> EngineInstant {
    EngineInstant::from_nanos(now.total_micros() as u64 * 1000)
}
