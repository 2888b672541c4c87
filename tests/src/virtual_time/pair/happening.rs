//! What happens to the pair: deliveries, arrivals, steps of the senders, and faults.

use linerate_core::accept::Greeting;
use linerate_core::session::{Command, Phase, ServerConfig, ServerSession, StreamEvent};
use linerate_core::test::{End, StreamId};
use linerate_core::time::Instant;

use super::Pair;
use crate::virtual_time::control::{Delivery, other};
use crate::virtual_time::queue::Occurrence;
use crate::virtual_time::setup::Fault;
use crate::virtual_time::stream::{Payload, Stepped, Until};

impl Pair {
    pub(super) fn occur(&mut self, what: Occurrence) {
        match what {
            Occurrence::Control(to, Delivery::Bytes(bytes)) => self.take_control(to, &bytes),
            Occurrence::Control(to, Delivery::Closed) => {
                let own = self.clock(to);
                self.input(to, |session| session.handle_control_closed(own));
            }
            Occurrence::Accepted(index) => self.accept(index),
            Occurrence::Greeted(index) => self.meet(index),
            Occurrence::Answered(index) => {
                self.tell_stream(End::Client, index, StreamEvent::Connected);
            }
            Occurrence::Stream(end, index, event) => self.tell_stream(end, index, event),
            Occurrence::Step(index) => self.step(index),
            Occurrence::Arrival(index, payload) => {
                let receiver = other(self.streams[index].sender);
                let own = self.clock(receiver);
                self.streams[index].arrive(self.now, own, payload);
                if let Some(&opened) = self.greetings.met.get(index)
                    && receiver == End::Client
                    && self.client.phase() == Phase::Streams
                {
                    // Data shows as well as a reply that the greeting came.
                    self.tell_stream(receiver, opened, StreamEvent::Connected);
                }
                if self.streams[index].take_share_reached() {
                    let reached = StreamEvent::ShareReached;
                    self.enqueue(self.now, Occurrence::Stream(receiver, index, reached));
                }
                if self.streams[index].take_limit_reached() {
                    self.tell_stream(receiver, index, StreamEvent::LimitReached);
                }
            }
            Occurrence::Acknowledged(index, bytes) => {
                self.streams[index].acknowledge(bytes);
                self.enqueue_step(self.now, index);
            }
            Occurrence::Samples(end) => self.answer_samples(end),
            Occurrence::Output => {
                let own = self.clock(End::Server);
                let bytes = self.setup.server_output.as_ref().map(|text| text.len() as u32);
                let server = self.server.as_mut().expect("only a server collects its output");
                server.handle_server_output(own, bytes);
            }
            Occurrence::Denied(denial) => {
                let server = self.server.as_mut().expect("only a server denies");
                server.handle_denied(denial);
            }
            Occurrence::Unblocked(end) => {
                self.send_control(end);
                self.close_if_sent(end);
            }
            Occurrence::Fault(fault) => self.strike(fault),
        }
    }

    pub(super) fn take_control(&mut self, to: End, bytes: &[u8]) {
        let own = self.clock(to);
        if to == End::Client || self.server.is_some() {
            return self.input(to, |session| session.handle_control(own, bytes));
        }
        let (consumed, greeting) = self.greeting.read(bytes);
        match greeting {
            Greeting::Incomplete => {}
            Greeting::Foreign(_) => {
                let deliveries = self.control.close(self.now, to);
                self.deliver(deliveries);
            }
            Greeting::Cookie(_) => {
                let config = ServerConfig {
                    interval: self.setup.interval,
                    extension: self.setup.answer,
                    deadlines: self.setup.deadlines,
                    policy: self.setup.policy,
                };
                self.server = Some(Box::new(ServerSession::new(own, config)));
                self.settle();
                self.input(to, |session| session.handle_control(own, &bytes[consumed..]));
            }
        }
    }

    fn accept(&mut self, index: usize) {
        let own = self.clock(End::Server);
        let Some(server) = &mut self.server else { return };
        if let Some((id, role)) = server.handle_stream_accepted(own) {
            assert_eq!(id.index(), index, "streams are numbered in the order they come");
            assert_eq!(role, self.setup.settings.role(End::Server, index));
        }
    }

    /// A greeting comes to the server's adapter.
    fn meet(&mut self, index: usize) {
        let Some(server) = &self.server else { return };
        let is_named = server.acknowledges_greetings();
        let is_set_up = server.phase() != Phase::Streams;
        if self.greetings.met.contains(&index) {
            self.greetings.copies += u64::from(!is_named);
            if !is_named || is_set_up {
                return;
            }
        } else if is_set_up {
            return;
        } else {
            self.greetings.met.push(index);
        }
        // The reply leaves before the session hears of the stream.
        for at in self.greetings.send(self.now, End::Server) {
            self.enqueue(at, Occurrence::Answered(index));
        }
        if !is_named {
            self.accept(self.greetings.met.len() - 1);
        } else if self.greetings.met.len() == self.streams.len() {
            // Named streams keep their order, whatever order they come in.
            self.greetings.met.sort_unstable();
            for index in 0..self.streams.len() {
                self.accept(index);
                self.settle();
            }
        }
    }

    /// Both ends mean the same by the number of each UDP stream.
    pub fn agrees_on_numbers(&self) -> bool {
        let places = (0..self.streams.len()).map(StreamId::from_index);
        let opened = places.map(|id| self.client.opened_as(id).index());
        opened.eq(self.greetings.met.iter().copied())
    }

    pub(super) fn tell_stream(&mut self, end: End, index: usize, event: StreamEvent) {
        let own = self.clock(end);
        if event == StreamEvent::Closed {
            // An adapter reports nothing of sockets that it has closed itself.
            if self.closed[end as usize] {
                return;
            }
            self.streams[index].stop(end);
        }
        let id = StreamId::from_index(index);
        self.input(end, |session| session.handle_stream(own, id, event));
    }

    pub(super) fn enqueue_step(&mut self, at: Instant, index: usize) {
        if !std::mem::replace(&mut self.streams[index].is_step_queued, true) {
            self.enqueue(at, Occurrence::Step(index));
        }
    }

    fn step(&mut self, index: usize) {
        let sender = self.streams[index].sender;
        let own = self.clock(sender);
        self.streams[index].is_step_queued = false;
        let stepped = self.streams[index].step(self.now, own);
        match stepped {
            Stepped::Idle | Stepped::Blocked => {}
            Stepped::Wait(Until::Sender(until)) => {
                self.enqueue_step(self.network_time(sender, until), index);
            }
            Stepped::Wait(Until::Network(until)) => self.enqueue_step(until, index),
            Stepped::LimitReached => self.tell_stream(sender, index, StreamEvent::LimitReached),
            Stepped::Sent(payload, arrivals) => {
                for at in arrivals {
                    if let Payload::Bytes(bytes) = payload {
                        let acknowledged = at.plus_nanos(self.setup.data.latency_ns);
                        self.enqueue(acknowledged, Occurrence::Acknowledged(index, bytes));
                    }
                    self.enqueue(at, Occurrence::Arrival(index, payload.clone()));
                }
                self.enqueue_step(self.now, index);
            }
        }
    }

    fn strike(&mut self, fault: Fault) {
        match fault {
            Fault::Interrupt(end) => {
                self.input(end, |session| session.handle_command(Command::Interrupt));
            }
            Fault::Vanish(end) => {
                let deliveries = self.control.close(self.now, end);
                self.deliver(deliveries);
            }
            Fault::Block(end, nanos) => {
                let until = self.now.plus_nanos(nanos).max(self.blocked_until[end as usize]);
                self.blocked_until[end as usize] = until;
                self.enqueue(until, Occurrence::Unblocked(end));
            }
            Fault::Garbage(to, bytes) => self.take_control(to, &bytes),
            Fault::CloseStreams(end) => {
                for index in 0..self.streams.len() {
                    self.tell_stream(end, index, StreamEvent::Closed);
                    self.settle();
                }
            }
            Fault::Stream(end, index, event) => {
                if index < self.streams.len() {
                    self.tell_stream(end, index, event);
                }
            }
        }
    }
}
