//! The data plane: one plain thread a stream, so that no stream waits for another or for the
//! control connections. This module starts them, reads their tallies and ends them; every decision
//! of a stream is made by its flow in `linerate_core::flow`.

mod arrivals;
mod cpu;
mod datagrams;
mod file;
mod handling;
mod intake;
mod listen;
mod looks;
mod mailbox;
mod options;
mod outcome;
mod ports;
mod sctp_door;
mod sink;
mod socket;
mod sorter;
mod source;
mod tcp;
mod thread;
mod udp;
mod udp_door;
mod udp_setup;

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use linerate_core::flow::StreamPlan;
use linerate_core::session::StreamEvent;
use linerate_core::stats::{BUCKETS, FlowDetail, Sample};
use linerate_core::test::{MAX_TCP_BLOCK, MAX_UDP_BLOCK, MIN_UDP_BLOCK, Protocol, Role, StreamId};
use tokio::sync::{mpsc, oneshot};

pub(crate) use cpu::{check_cpu, require_cpu, unusable_cpu};
pub(crate) use file::{DataFile, unusable_file};
pub(crate) use handling::Handling;
pub(crate) use listen::Listen;
pub(crate) use options::{OwnOptions, SocketOptions};
pub(crate) use ports::{LocalPoint, LocalPorts};
pub(crate) use sctp_door::SctpDoor;
pub(crate) use socket::{DataSocket, Ear, Heard, adopt_stream, connect_stream, open_datagrams};
pub(crate) use udp_door::{Guests, UdpDoor};
pub(crate) use udp_setup::Met;

use crate::clock::Clock;
use crate::report::{Engine, Warning};
use crate::sys::{self, Channel};
use handling::{Work, Workshop};
use thread::{Context, Order, Shared};

/// What a stream's thread says of it.
#[derive(Debug)]
pub(crate) struct News {
    /// Which stream.
    pub(crate) id: StreamId,
    /// What happened.
    pub(crate) event: StreamEvent,
    /// What the system said, if it went wrong.
    pub(crate) error: Option<io::Error>,
}

/// The running streams of a test. Dropping it ends the threads and closes the sockets without
/// waiting for either.
#[derive(Debug)]
pub(crate) struct Streams {
    streams: Vec<Stream>,
    warnings: Vec<Warning>,
}

#[derive(Debug)]
struct Stream {
    role: Role,
    socket: DataSocket,
    shared: Arc<Shared>,
    /// Resolves when the final tally is published, or when the thread is gone.
    stopped: Option<oneshot::Receiver<()>>,
    thread: Option<JoinHandle<()>>,
    /// Open as long as the thread has work.
    working: oneshot::Receiver<()>,
}

impl Streams {
    /// Runs each plan on the socket at the same place. `news` gets `LimitReached`, `ShareReached`,
    /// `Closed` and `FileFailed`, each at most once a stream.
    ///
    /// # Errors
    /// When a plan's block size is none that its protocol can have, its file cannot be opened, or the
    /// system gives no thread, wake or random bytes; what was started is ended again.
    pub(crate) fn start(
        sockets: Vec<DataSocket>,
        plans: Vec<StreamPlan>,
        clock: Clock,
        handling: Handling,
        news: mpsc::UnboundedSender<News>,
    ) -> io::Result<Self> {
        debug_assert_eq!(sockets.len(), plans.len(), "one plan a socket");
        if let Some(plan) = plans.iter().find(|plan| !has_valid_block(plan)) {
            let message = format!("block size of {} bytes", plan.block_bytes);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let cpu = handling.cpu();
        let mut workshop = Workshop::new(handling, &plans)?;
        let mut streams = Self { streams: Vec::with_capacity(plans.len()), warnings: Vec::new() };
        for (socket, plan) in sockets.into_iter().zip(plans) {
            let channel = socket.line().channel()?;
            let work = workshop.work(&channel, socket.line().seat(), &plan)?;
            let news = news.clone();
            let stream = Stream::start(socket, channel, plan, clock, cpu, work, news)?;
            streams.streams.push(stream);
        }
        streams.warnings = workshop.into_warnings();
        Ok(streams)
    }

    /// Help that was asked for and is not there.
    pub(crate) fn take_warnings(&mut self) -> Vec<Warning> {
        std::mem::take(&mut self.warnings)
    }

    /// What each stream counted and, for TCP senders, what the kernel says, in order of creation.
    pub(crate) fn sample(&self) -> Vec<Sample> {
        self.streams.iter().map(Stream::sample).collect()
    }

    /// What each stream knows beyond its counts, some milliseconds ago, in order of creation; none before it
    /// has moved anything.
    pub(crate) fn details(&self) -> Vec<Option<Box<FlowDetail<BUCKETS>>>> {
        self.streams.iter().map(|stream| stream.shared.detail()).collect()
    }

    /// The same once all are stopped, for good.
    pub(crate) fn take_details(&self) -> Vec<Option<Box<FlowDetail<BUCKETS>>>> {
        self.streams.iter().map(|stream| stream.shared.take_detail()).collect()
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

    /// How the data went, once all are stopped: one account a direction, of senders first.
    pub(crate) fn engines(&self) -> Vec<Engine> {
        let of = |role| {
            let streams = self.streams.iter().filter(move |stream| stream.role == role);
            streams
                .filter_map(|stream| stream.shared.engine())
                .reduce(|all, one| all.joined(one).unwrap_or(all))
        };
        [Role::Sender, Role::Receiver].into_iter().filter_map(of).collect()
    }

    /// Ends the threads and closes the sockets; returns when that is done.
    pub(crate) async fn close(mut self) {
        self.order(Order::Close);
        for mut stream in self.streams.drain(..) {
            // Nothing is sent: the end of the thread's work is the end of the channel.
            let _ = (&mut stream.working).await;
            if let Some(thread) = stream.thread.take() {
                // A panic was told of where it happened; its stream's last counts stand.
                let _ = thread.join();
            }
        }
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
        socket: DataSocket,
        channel: Channel,
        plan: StreamPlan,
        clock: Clock,
        cpu: Option<u16>,
        work: Work,
        news: mpsc::UnboundedSender<News>,
    ) -> io::Result<Self> {
        let seat = socket.line().seat().cloned();
        let wake = seat.as_ref().map(|seat| Ok(seat.mailbox().wake().clone()));
        let wake = wake.unwrap_or_else(|| sys::Wake::new().map(Arc::new))?;
        let shared = Arc::new(Shared::new(wake));
        let (stopped_sender, stopped) = oneshot::channel();
        let context =
            Context::new(&plan, (channel, seat), clock, shared.clone(), news, stopped_sender);
        let (at_work, working) = oneshot::channel();
        let work = move || {
            let _at_work: oneshot::Sender<()> = at_work;
            sys::prepare_thread();
            if let Some(cpu) = cpu {
                // Whoever asked for it was told already if it cannot be.
                let _ = sys::pin_thread(cpu);
            }
            match work {
                Work::SendBytes(source, at_end) => tcp::send(context, &plan, source, at_end),
                Work::ReceiveBytes(sink) => tcp::receive(context, &plan, sink),
                Work::SendDatagrams(outgoing) => udp::send(context, &plan, outgoing),
                Work::ReceiveDatagrams(incoming) => udp::receive(context, &plan, incoming),
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
            socket,
            shared,
            stopped: Some(stopped),
            thread: Some(thread),
            working,
        })
    }

    fn sample(&self) -> Sample {
        let tcp = match (self.socket.protocol(), self.role) {
            (Protocol::Tcp, Role::Sender) => sys::tcp_stats(self.socket.socket()),
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

#[cfg(test)]
mod handling_tests;
#[cfg(test)]
mod tests;
