//! The data streams of a test: where their bytes go, the flow that decides about them, and their turns.
//! A turn moves as much as the socket's buffer takes or holds, and no more.

use heapless::Vec;
use linerate_core::flow::{ReceiveFlow, SendFlow, Step, StreamPlan};
use linerate_core::session::StreamEvent;
use linerate_core::stats::Sample;
use linerate_core::test::Role;
use linerate_core::time::Instant;

use crate::net::{Net, Path, Received, Unsent};

/// One stream.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) link: Link,
    flow: Flow,
    /// What was counted is told, and nothing more is sent.
    is_stopped: bool,
    /// The session was told that it is at its end.
    is_ended: bool,
}

/// All streams of a test, in the order of their creation.
pub(crate) type Streams<const N: usize> = Vec<Stream, N>;

/// How a stream is connected.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Link {
    /// By a TCP socket of its own.
    Tcp(usize),
    /// By this UDP socket, which others may share, on this path.
    Udp(usize, Path),
}

/// What moves the stream's data.
#[derive(Debug)]
enum Flow {
    /// Nothing: the test's clock does not run.
    Idle,
    /// This end sends.
    Send(Sender),
    /// This end receives.
    Receive(Receiver),
}

/// Tells late datagrams from duplicates within 448 numbers, and has no percentiles.
type Receiver = ReceiveFlow<8, 0>;
type Sender = SendFlow<0>;

/// What a turn at a stream came to.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Turn {
    /// The session must hear of it.
    pub(crate) event: Option<StreamEvent>,
    /// When the stream may go on; none if that is the network's business.
    pub(crate) wait_until: Option<Instant>,
}

impl Stream {
    pub(crate) const fn new(link: Link) -> Self {
        Self { link, flow: Flow::Idle, is_stopped: false, is_ended: false }
    }

    pub(crate) fn start(&mut self, now: Instant, plan: &StreamPlan) {
        self.flow = match plan.role {
            Role::Sender => Flow::Send(Sender::new(now, plan)),
            Role::Receiver => Flow::Receive(Receiver::new(plan)),
        };
    }

    /// Moves what can be moved now. Datagrams are received by [`receive_datagrams`].
    pub(crate) fn turn(&mut self, now: Instant, net: &mut impl Net, block_bytes: usize) -> Turn {
        let turn = match (self.link, &mut self.flow) {
            (_, Flow::Send(_)) if self.is_stopped => Turn::default(),
            (Link::Tcp(socket), Flow::Send(flow)) => send_bytes(now, net, socket, flow),
            (Link::Udp(socket, path), Flow::Send(flow)) => {
                send_datagrams(now, net, socket, path, block_bytes, flow)
            }
            (Link::Tcp(socket), Flow::Receive(flow)) => receive_bytes(now, net, socket, flow),
            (Link::Udp(..), Flow::Receive(flow)) => at_limit(flow),
            (_, Flow::Idle) => Turn::default(),
        };
        // The session hears once of each stream.
        let event = turn.event.filter(|_| !self.is_ended);
        self.is_ended |= event.is_some();
        Turn { event, ..turn }
    }

    /// Sends nothing more, and takes what has arrived by TCP.
    pub(crate) fn stop(&mut self, now: Instant, net: &mut impl Net) {
        self.is_stopped = true;
        if let (Link::Tcp(socket), Flow::Receive(flow)) = (self.link, &mut self.flow) {
            receive_bytes(now, net, socket, flow);
        }
    }

    /// Takes what has arrived by UDP where the stream has a socket of its own, and says whether any of it
    /// came from its peer.
    pub(crate) fn take_datagrams(&mut self, now: Instant, net: &mut impl Net) -> bool {
        let Link::Udp(socket, own) = self.link else { return false };
        let mut has_come = false;
        while net.receive_datagram(socket, |datagram, path| {
            if path.peer == own.peer {
                has_come = true;
                self.count(now, datagram);
            }
        }) {}
        has_come
    }

    fn count(&mut self, now: Instant, datagram: &[u8]) {
        if let Flow::Receive(flow) = &mut self.flow {
            flow.handle_datagram(now, datagram, datagram.len());
        }
    }

    /// What the flow has counted. The stack tells nothing to go with it.
    pub(crate) fn sample(&self) -> Sample {
        match &self.flow {
            Flow::Idle => Sample::default(),
            Flow::Send(flow) => flow.sample(),
            Flow::Receive(flow) => flow.sample(),
        }
    }
}

/// Gives the datagrams of a socket that streams share to each of them, up to one that belongs to none and
/// that `stop` wants to see.
pub(crate) fn receive_datagrams(
    now: Instant,
    net: &mut impl Net,
    socket: usize,
    streams: &mut [Stream],
    mut stop: impl FnMut(&[u8], Path) -> bool,
) -> Option<Path> {
    let mut stopped_by = None;
    while stopped_by.is_none() {
        let is_there = net.receive_datagram(socket, |datagram, path| {
            let is_its = |link| matches!(link, Link::Udp(_, own) if own.peer == path.peer);
            match streams.iter_mut().find(|stream| is_its(stream.link)) {
                Some(stream) => stream.count(now, datagram),
                None => stopped_by = stop(datagram, path).then_some(path),
            }
        });
        if !is_there {
            break;
        }
    }
    stopped_by
}

impl Link {
    /// The number of the socket.
    pub(crate) const fn socket(self) -> usize {
        match self {
            Self::Tcp(socket) | Self::Udp(socket, _) => socket,
        }
    }
}

fn receive_bytes(now: Instant, net: &mut impl Net, socket: usize, flow: &mut Receiver) -> Turn {
    loop {
        let received = net.receive(socket, |bytes| {
            flow.handle_bytes(now, bytes.len() as u64);
            bytes.len()
        });
        match received {
            Received::Bytes => {}
            Received::Nothing => return at_limit(flow),
            Received::End => {
                return Turn { event: Some(StreamEvent::Closed), wait_until: None };
            }
        }
    }
}

fn at_limit(flow: &Receiver) -> Turn {
    Turn { event: flow.is_done().then_some(StreamEvent::LimitReached), wait_until: None }
}

fn send_bytes(now: Instant, net: &mut impl Net, socket: usize, flow: &mut Sender) -> Turn {
    loop {
        let most = match flow.poll_step(now) {
            Step::Send { bytes } => usize::try_from(bytes).unwrap_or(usize::MAX),
            Step::Wait { until } => return Turn { wait_until: Some(until), event: None },
            Step::Done => {
                let is_acknowledged = net.unacknowledged_bytes(socket) == 0;
                let event = is_acknowledged.then_some(StreamEvent::LimitReached);
                return Turn { event, wait_until: None };
            }
        };
        // The payload is what the buffer holds already.
        let has_room = net.send(socket, |room| {
            let bytes = room.len().min(most);
            flow.handle_sent(now, bytes as u64);
            bytes
        });
        if !has_room {
            let event = (!net.may_send(socket)).then_some(StreamEvent::Closed);
            return Turn { event, wait_until: None };
        }
    }
}

fn send_datagrams(
    now: Instant,
    net: &mut impl Net,
    socket: usize,
    path: Path,
    bytes: usize,
    flow: &mut Sender,
) -> Turn {
    loop {
        match flow.poll_step(now) {
            Step::Send { .. } => {}
            Step::Wait { until } => return Turn { wait_until: Some(until), event: None },
            Step::Done => return Turn { event: Some(StreamEvent::LimitReached), wait_until: None },
        }
        match net.send_datagram(socket, path, bytes, |room| flow.write_header(now, 0, room)) {
            Ok(()) => flow.handle_datagrams_sent(now, 1),
            Err(Unsent::Full) => return Turn::default(),
            Err(Unsent::Unreachable) => {
                return Turn { event: Some(StreamEvent::Closed), wait_until: None };
            }
        }
    }
}
