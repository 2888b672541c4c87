//! What the pair does for a session that asks: the work of an adapter.

use linerate_core::session::{Action, Denial, StreamEvent};
use linerate_core::stats::{CpuTimes, Sample};
use linerate_core::test::{End, Protocol};
use linerate_core::time::Instant;

use super::Pair;
use crate::virtual_time::control::other;
use crate::virtual_time::queue::Occurrence;
use crate::virtual_time::stream::Stream;

impl Pair {
    pub(super) fn perform(&mut self, end: End, action: Action) {
        let own = self.clock(end);
        match action {
            Action::OpenStream(id, role) => {
                assert_eq!(role, self.setup.settings.role(end, id.index()));
                self.open(id.index());
            }
            Action::Greet(id) => self.greet(id.index()),
            Action::Prepare => {
                let admission = self.setup.admission;
                let server = self.server.as_mut().expect("only a server prepares");
                server.handle_prepared(own, admission);
            }
            Action::StartStreams => self.start_streams(end),
            Action::Sample if self.setup.sample_delay_ns > 0 => {
                let at = self.now.plus_nanos(self.setup.sample_delay_ns);
                self.enqueue(at, Occurrence::Samples(end));
            }
            Action::Sample => self.answer_samples(end),
            Action::StopStreams => self.streams.iter_mut().for_each(|stream| stream.stop(end)),
            Action::CloseStreams => self.close_streams(end),
            Action::CollectOutput => {
                let at = self.now.plus_nanos(self.setup.sample_delay_ns);
                self.enqueue(at, Occurrence::Output);
            }
            // Others move as much as the setup says.
            Action::Weigh { bits_per_second } => {
                let limit = self.setup.policy.server_bitrate.expect("it is weighed").rate.0;
                let measured = bits_per_second + self.setup.others_bits_per_second;
                if measured > limit {
                    let denial = Denial::ServerMeasured { measured, limit };
                    self.enqueue(self.now, Occurrence::Denied(denial));
                }
            }
            Action::CloseControl => {
                self.is_closing[end as usize] = true;
                self.close_if_sent(end);
            }
        }
    }

    pub(super) fn close_if_sent(&mut self, end: End) {
        if self.is_closing[end as usize] && !self.is_blocked(end) {
            let deliveries = self.control.close(self.now, end);
            self.deliver(deliveries);
        }
    }

    pub(super) fn is_blocked(&self, end: End) -> bool {
        self.now < self.blocked_until[end as usize]
    }

    /// The client opens a stream: TCP shows its cookie after the handshake, UDP a greeting at once.
    fn open(&mut self, index: usize) {
        let latency_ns = self.setup.control_latency_ns;
        let after = |trips: u64| self.now.plus_nanos(trips * latency_ns);
        let (back, there) = (after(2), after(3));
        if self.setup.failing_stream == Some(index) {
            let failed = StreamEvent::Failed { code: 111 };
            return self.enqueue(back, Occurrence::Stream(End::Client, index, failed));
        }
        if self.setup.settings.protocol == Protocol::Udp {
            return self.greet(index);
        }
        self.enqueue(there, Occurrence::Accepted(index));
        self.enqueue(back, Occurrence::Stream(End::Client, index, StreamEvent::Connected));
    }

    fn greet(&mut self, index: usize) {
        for at in self.greetings.send(self.now, End::Client) {
            self.enqueue(at, Occurrence::Greeted(index));
        }
    }

    pub(super) fn start_streams(&mut self, end: End) {
        let own = self.clock(end);
        for index in 0..self.streams.len() {
            let id = self.streams[index].id;
            let plan = self.endpoint(end).and_then(|session| session.plan(id));
            let plan = plan.expect("known once the clock runs");
            self.streams[index].start(end, self.now, own, plan);
            if self.streams[index].take_share_reached() {
                self.enqueue(self.now, Occurrence::Stream(end, index, StreamEvent::ShareReached));
            }
            if self.streams[index].take_limit_reached() {
                self.enqueue(self.now, Occurrence::Stream(end, index, StreamEvent::LimitReached));
            }
            if self.streams[index].sender == end {
                self.enqueue_step(self.now, index);
            }
        }
    }

    pub(super) fn close_streams(&mut self, end: End) {
        if std::mem::replace(&mut self.closed[end as usize], true) {
            return;
        }
        let at = self.now.plus_nanos(self.setup.data.latency_ns);
        for index in 0..self.streams.len() {
            self.streams[index].stop(end);
            if self.setup.settings.protocol.is_stream() {
                self.enqueue(at, Occurrence::Stream(other(end), index, StreamEvent::Closed));
            }
        }
    }

    pub(super) fn answer_samples(&mut self, end: End) {
        let own = self.clock(end);
        let samples: Vec<Sample> = self.streams.iter().map(|stream| stream.sample(end)).collect();
        let receiving = self.streams.iter_mut().filter(|stream| stream.sender != end);
        receiving.for_each(Stream::cut_detail);
        let used_ns = own.nanos_since(Instant::ZERO);
        let cpu = CpuTimes { user_ns: used_ns / 10, system_ns: used_ns / 20 };
        self.input(end, |session| session.handle_samples(own, &samples, cpu));
    }
}
