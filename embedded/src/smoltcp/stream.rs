//! The data streams of a test: where their bytes go, and the flow that decides about them.

use linerate_core::flow::{ReceiveFlow, SendFlow, StreamPlan};
use linerate_core::session::StreamEvent;
use linerate_core::stats::Sample;
use linerate_core::test::Role;
use linerate_core::time::Instant;
use smoltcp::iface::SocketHandle;
use smoltcp::socket::udp::UdpMetadata;

/// One stream.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) link: Link,
    pub(super) flow: Flow,
    /// The session was told that it is at its end.
    is_ended: bool,
}

/// How a stream is connected.
#[derive(Debug, Clone, Copy)]
pub(super) enum Link {
    /// By a socket of its own.
    Tcp(SocketHandle),
    /// By the common port, to this address of the client and from that of this end.
    Udp(UdpMetadata),
}

/// What moves the stream's data.
#[derive(Debug)]
pub(super) enum Flow {
    /// Nothing: the test's clock does not run.
    Idle,
    /// This end sends.
    Send(Sender),
    /// This end receives.
    Receive(Receiver),
}

/// Tells late datagrams from duplicates within 448 numbers, and has no percentiles.
pub(super) type Receiver = ReceiveFlow<8, 0>;
pub(super) type Sender = SendFlow<0>;

/// What a turn at a stream came to.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Turn {
    /// The session must hear of it.
    pub(super) event: Option<StreamEvent>,
    /// When the stream may go on; none if that is the network's business.
    pub(super) wait_until: Option<Instant>,
}

impl Stream {
    pub(super) const fn new(link: Link) -> Self {
        Self { link, flow: Flow::Idle, is_ended: false }
    }

    pub(super) fn start(&mut self, now: Instant, plan: &StreamPlan) {
        self.flow = match plan.role {
            Role::Sender => Flow::Send(Sender::new(now, plan)),
            Role::Receiver => Flow::Receive(Receiver::new(plan)),
        };
    }

    /// What the session is to hear, which it hears once of each stream.
    pub(super) fn ended(&mut self, turn: Turn) -> Option<StreamEvent> {
        let event = turn.event.filter(|_| !self.is_ended);
        self.is_ended |= event.is_some();
        event
    }

    /// What the flow has counted. The stack tells nothing to go with it.
    pub(super) fn sample(&self) -> Sample {
        match &self.flow {
            Flow::Idle => Sample::default(),
            Flow::Send(flow) => flow.sample(),
            Flow::Receive(flow) => flow.sample(),
        }
    }
}
