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
}

impl Looks {
    pub(super) fn new(protocol: Protocol, role: Role) -> Self {
        let sender = SenderLooks::new();
        Self { protocol, role, sender, thread: ThreadTimes::of_this_thread() }
    }

    /// Where the stream has a seat, what that dropped counts.
    pub(super) fn look(&mut self, socket: &Arc<Socket>, seat: Option<&Seat>) -> HostView {
        let buffer = match (self.protocol, self.role) {
            (Protocol::Tcp, Role::Sender) if !SEND_BUFFER_BOUNDS_TCP => None,
            (_, Role::Sender) => socket.send_buffer_size().ok(),
            (_, Role::Receiver) => socket.recv_buffer_size().ok(),
        };
        let buffer = buffer.map(|reported| sys::usable_buffer(reported) as u64);
        HostView {
            socket_drops: match (self.protocol, self.role) {
                (Protocol::Udp, Role::Receiver) => {
                    seat.map_or_else(|| sys::socket_drops(socket), Seat::drops)
                }
                _ => None,
            },
            buffer_bytes: buffer,
            thread_cpu_ns: self.thread.cpu_ns(),
            thread_queued_ns: self.thread.queued_ns(),
            tcp: match (self.protocol, self.role) {
                (Protocol::Tcp, Role::Sender) => self.sender.view(socket),
                _ => None,
            },
        }
    }
}
