//! What the system says of a stream, gathered for its flow.

use std::sync::Arc;

use linerate_core::flow::{ReceiveFlow, SendFlow};
use linerate_core::stats::{BUCKETS, FlowDetail, HostView, Sample};
use linerate_core::test::{Protocol, Role};
use linerate_core::time::Instant;
use socket2::Socket;

use super::sorter::Seat;
use crate::sys::{self, SEND_BUFFER_BOUNDS_TCP, SenderLooks, ThreadTimes};

/// Everything one sending thread counts.
pub(super) type Sender = SendFlow<BUCKETS>;

/// A flow, whichever way it goes.
pub(super) trait Flow {
    /// Its counters.
    fn sample(&self) -> Sample;
    /// It hears what the system says.
    fn look(&mut self, now: Instant, view: HostView);
    /// What it knows beyond its counters.
    fn detail(&self) -> FlowDetail<BUCKETS>;
}

impl Flow for Sender {
    fn sample(&self) -> Sample {
        self.sample()
    }

    fn look(&mut self, now: Instant, view: HostView) {
        self.handle_host(now, view);
    }

    fn detail(&self) -> FlowDetail<BUCKETS> {
        self.detail()
    }
}

impl<const WORDS: usize> Flow for ReceiveFlow<WORDS, BUCKETS> {
    fn sample(&self) -> Sample {
        self.sample()
    }

    fn look(&mut self, now: Instant, view: HostView) {
        self.handle_host(now, view);
    }

    fn detail(&self) -> FlowDetail<BUCKETS> {
        self.detail()
    }
}

/// Looks at the socket and at the thread that it is made in.
#[derive(Debug)]
pub(super) struct Looks {
    protocol: Protocol,
    role: Role,
    sender: SenderLooks,
    thread: ThreadTimes,
    /// Where the socket is shared: the stream's place there, and the times of the thread that reads it when
    /// this was made.
    seat: Option<(Arc<Seat>, (u64, u64))>,
}

impl Looks {
    pub(super) fn new(protocol: Protocol, role: Role, seat: Option<Arc<Seat>>) -> Self {
        let seat = seat.filter(|_| role == Role::Receiver);
        let seat = seat.map(|seat| (seat.clone(), seat.reader_ns()));
        let sender = SenderLooks::new();
        Self { protocol, role, sender, thread: ThreadTimes::of_this_thread(), seat }
    }

    pub(super) fn look(&mut self, socket: &Arc<Socket>) -> HostView {
        let buffer = match (self.protocol, self.role) {
            (Protocol::Tcp, Role::Sender) if !SEND_BUFFER_BOUNDS_TCP => None,
            (_, Role::Sender) => socket.send_buffer_size().ok(),
            (_, Role::Receiver) => socket.recv_buffer_size().ok(),
        };
        let buffer = buffer.map(|reported| sys::usable_buffer(reported) as u64);
        let (thread_cpu_ns, thread_queued_ns) = self.thread_ns();
        HostView {
            socket_drops: match (self.protocol, self.role, &self.seat) {
                (_, _, Some((seat, _))) => seat.drops(),
                (Protocol::Udp, Role::Receiver, None) => sys::socket_drops(socket),
                _ => None,
            },
            buffer_bytes: buffer,
            thread_cpu_ns,
            thread_queued_ns,
            tcp: match (self.protocol, self.role) {
                (Protocol::Tcp, Role::Sender) => self.sender.view(socket),
                _ => None,
            },
        }
    }

    /// For how long the thread has run, and could have run and had no CPU; of a receiver at a shared socket
    /// the same of the thread that reads it, where that had more to do.
    fn thread_ns(&self) -> (Option<u64>, Option<u64>) {
        let own = (self.thread.cpu_ns(), self.thread.queued_ns());
        let wanted = |(cpu_ns, queued_ns): (Option<u64>, Option<u64>)| {
            cpu_ns.unwrap_or(0) + queued_ns.unwrap_or(0)
        };
        let Some((seat, (first_cpu_ns, first_queued_ns))) = &self.seat else { return own };
        let (cpu_ns, queued_ns) = seat.reader_ns();
        // Neither is known where the own is not.
        let reader = (
            own.0.map(|_| cpu_ns.saturating_sub(*first_cpu_ns)),
            own.1.map(|_| queued_ns.saturating_sub(*first_queued_ns)),
        );
        if wanted(reader) > wanted(own) { reader } else { own }
    }
}
