//! The data plane: one plain thread a stream, so that no stream waits for another or for the
//! control connections. This module starts them, reads their tallies and ends them; every decision
//! of a stream is made by its flow in `linerate_core::flow`.

mod listen;
mod options;
mod outcome;
mod ports;
mod sctp_door;
mod socket;
mod tcp;
mod thread;
mod udp;
mod udp_door;

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use linerate_core::flow::StreamPlan;
use linerate_core::session::StreamEvent;
use linerate_core::stats::Sample;
use linerate_core::test::{MAX_TCP_BLOCK, MAX_UDP_BLOCK, MIN_UDP_BLOCK, Protocol, Role, StreamId};
use socket2::Socket;
use tokio::sync::{mpsc, oneshot};

pub(crate) use listen::Listen;
pub(crate) use options::{OwnOptions, SocketOptions};
pub(crate) use ports::{LocalPoint, LocalPorts};
pub(crate) use sctp_door::{OpenSctp, SctpDoor};
pub(crate) use socket::{DataSocket, adopt_stream, connect_stream, connect_udp};
pub(crate) use udp_door::UdpDoor;

use crate::clock::Clock;
use crate::sys;
use thread::{Context, Order, Shared};

/// What senders fill their blocks with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Payload {
    /// Random bytes, made once a test.
    Random,
    /// The digits 0 to 9, again and again.
    Digits,
}

/// The running streams of a test. Dropping it ends the threads and closes the sockets without
/// waiting for either.
#[derive(Debug)]
pub(crate) struct Streams {
    streams: Vec<Stream>,
}

#[derive(Debug)]
struct Stream {
    role: Role,
    protocol: Protocol,
    socket: Arc<Socket>,
    shared: Arc<Shared>,
    /// Resolves when the final tally is published, or when the thread is gone.
    stopped: Option<oneshot::Receiver<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Streams {
    /// Runs each plan on the socket at the same place. `events` gets `LimitReached` and `Closed`,
    /// each at most once a stream.
    ///
    /// # Errors
    /// When a plan's block size is none that its protocol can have, or the system gives no thread,
    /// wake or random bytes; what was started is ended again.
    pub(crate) fn start(
        sockets: Vec<DataSocket>,
        plans: Vec<StreamPlan>,
        clock: Clock,
        payload: Payload,
        events: mpsc::UnboundedSender<(StreamId, StreamEvent)>,
    ) -> io::Result<Self> {
        debug_assert_eq!(sockets.len(), plans.len(), "one plan a socket");
        if let Some(plan) = plans.iter().find(|plan| !has_valid_block(plan)) {
            let message = format!("block size of {} bytes", plan.block_bytes);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let senders = plans.iter().filter(|plan| plan.role == Role::Sender);
        let payload = match senders.max_by_key(|plan| plan.block_bytes) {
            Some(plan) => payload.bytes(plan)?,
            None => Arc::default(),
        };
        let mut streams = Self { streams: Vec::with_capacity(plans.len()) };
        for (socket, plan) in sockets.into_iter().zip(plans) {
            streams.streams.push(Stream::start(&socket, plan, clock, &payload, events.clone())?);
        }
        Ok(streams)
    }

    /// What each stream counted and, for TCP senders, what the kernel says, in order of creation.
    pub(crate) fn sample(&self) -> Vec<Sample> {
        self.streams.iter().map(Stream::sample).collect()
    }

    /// Ends the measurement: senders write nothing more, receivers take what has arrived. Returns
    /// when all final tallies can be sampled. Receivers go on reading and discarding until closed.
    pub(crate) async fn stop(&mut self) {
        self.order(Order::Stop);
        for stream in &mut self.streams {
            if let Some(stopped) = &mut stream.stopped {
                // An error means that the thread is gone; its last tally stands.
                let _ = stopped.await;
                stream.stopped = None;
            }
        }
    }

    /// Ends the threads and closes the sockets; returns when that is done.
    pub(crate) async fn close(mut self) {
        self.order(Order::Close);
        let threads: Vec<_> =
            self.streams.drain(..).filter_map(|mut stream| stream.thread.take()).collect();
        // The threads end at once; a blocking task is the place to wait for them all the same.
        let join = tokio::task::spawn_blocking(move || {
            threads.into_iter().for_each(|thread| drop(thread.join()))
        });
        let _ = join.await;
    }

    fn order(&self, order: Order) {
        for stream in &self.streams {
            stream.shared.order(order);
        }
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        self.order(Order::Close);
    }
}

impl Stream {
    fn start(
        socket: &DataSocket,
        plan: StreamPlan,
        clock: Clock,
        payload: &Arc<[u8]>,
        events: mpsc::UnboundedSender<(StreamId, StreamEvent)>,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::new()?);
        let (stopped_sender, stopped) = oneshot::channel();
        let context = Context::new(
            plan.id,
            socket.socket().clone(),
            clock,
            shared.clone(),
            events,
            stopped_sender,
        );
        let payload = payload.clone();
        let work = move || {
            sys::prepare_thread();
            match (plan.protocol, plan.role) {
                (Protocol::Tcp | Protocol::Sctp, Role::Sender) => {
                    tcp::send(context, &plan, &payload)
                }
                (Protocol::Tcp | Protocol::Sctp, Role::Receiver) => tcp::receive(context, &plan),
                (Protocol::Udp, Role::Sender) => udp::send(context, &plan, &payload),
                (Protocol::Udp, Role::Receiver) => udp::receive(context, &plan),
            }
        };
        // Systems cut a thread's name after 15 characters.
        let name = match plan.role {
            Role::Sender => format!("send-{}", plan.id.number()),
            Role::Receiver => format!("receive-{}", plan.id.number()),
        };
        let thread = std::thread::Builder::new().name(name).spawn(work)?;
        Ok(Self {
            role: plan.role,
            protocol: socket.protocol(),
            socket: socket.socket().clone(),
            shared,
            stopped: Some(stopped),
            thread: Some(thread),
        })
    }

    fn sample(&self) -> Sample {
        let tcp = match (self.protocol, self.role) {
            (Protocol::Tcp, Role::Sender) => sys::tcp_stats(&self.socket),
            _ => None,
        };
        Sample { tcp, ..self.shared.sample() }
    }
}

/// Flows and threads divide by the block size, and write headers into it.
fn has_valid_block(plan: &StreamPlan) -> bool {
    match plan.protocol {
        Protocol::Tcp | Protocol::Sctp => (1..=MAX_TCP_BLOCK).contains(&plan.block_bytes),
        Protocol::Udp => (MIN_UDP_BLOCK..=MAX_UDP_BLOCK).contains(&plan.block_bytes),
    }
}

impl Payload {
    /// As many whole blocks of it as one call sends, shared by all streams of a test.
    fn bytes(self, plan: &StreamPlan) -> io::Result<Arc<[u8]>> {
        let block_bytes = plan.block_bytes as usize;
        let blocks = match plan.protocol {
            Protocol::Tcp => tcp::blocks_a_call(block_bytes),
            // One call is one message.
            Protocol::Udp | Protocol::Sctp => 1,
        };
        let mut bytes = vec![0; block_bytes * blocks];
        match self {
            Self::Random => getrandom::fill(&mut bytes).map_err(io::Error::other)?,
            // iperf3 begins each block with the first digit.
            Self::Digits => bytes.chunks_mut(block_bytes.max(1)).for_each(|block| {
                block
                    .iter_mut()
                    .zip(b"0123456789".iter().cycle())
                    .for_each(|(to, from)| *to = *from);
            }),
        }
        Ok(bytes.into())
    }
}

#[cfg(test)]
mod tests;
