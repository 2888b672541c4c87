//! What every stream's thread shares with the control plane: its orders, its counts, its wake. The
//! thread owns its counters; what it puts here are copies, at most one a millisecond while it is
//! busy, so that no datagram ever pays for a lock.

use std::io;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use linerate_core::flow::StreamPlan;
use linerate_core::session::StreamEvent;
use linerate_core::stats::{BUCKETS, FlowDetail, Sample};
use linerate_core::test::{Protocol, Role, StreamId};
use linerate_core::time::Instant;
use tokio::sync::{mpsc, oneshot};

use super::News;
use super::looks::{Flow, Looks};
use super::sorter::Seat;
use crate::clock::Clock;
use crate::errno;
use crate::report::Engine;
use crate::sys::{Channel, Interest, Wake};

/// What a stream is to do; orders only ever go up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Order {
    /// Move data and count it.
    Run = 0,
    /// Count nothing more.
    Stop = 1,
    /// End the thread.
    Close = 2,
}

/// The side of a stream that both its thread and the control plane hold.
#[derive(Debug)]
pub(super) struct Shared {
    order: AtomicU8,
    wake: Arc<Wake>,
    sample: Mutex<Sample>,
    detail: Mutex<Option<Box<FlowDetail<BUCKETS>>>>,
    engine: OnceLock<Engine>,
}

impl Shared {
    /// With what wakes the thread.
    pub(super) fn new(wake: Arc<Wake>) -> Self {
        Self {
            order: AtomicU8::new(Order::Run as u8),
            wake,
            sample: Mutex::new(Sample::default()),
            detail: Mutex::new(None),
            engine: OnceLock::new(),
        }
    }

    /// Gives an order and sees to it that the thread notices.
    pub(super) fn order(&self, order: Order) {
        self.order.fetch_max(order as u8, Ordering::Release);
        self.wake.wake();
    }

    /// The last published counts.
    pub(super) fn sample(&self) -> Sample {
        *self.sample.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last published detail.
    pub(super) fn detail(&self) -> Option<Box<FlowDetail<BUCKETS>>> {
        self.detail.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The last detail of a thread that has published its last.
    pub(super) fn take_detail(&self) -> Option<Box<FlowDetail<BUCKETS>>> {
        self.detail.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// How the data went; known with the last counts.
    pub(super) fn engine(&self) -> Option<Engine> {
        self.engine.get().copied()
    }
}

/// What a thread works with.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) id: StreamId,
    pub(super) channel: Channel,
    /// Its place, if its socket is not its own.
    seat: Option<Arc<Seat>>,
    pub(super) clock: Clock,
    shared: Arc<Shared>,
    news: mpsc::UnboundedSender<News>,
    /// Taken when the final counts are published.
    stopped: Option<oneshot::Sender<()>>,
    publish_due: Instant,
    protocol: Protocol,
    role: Role,
    /// Made by the thread that it is about.
    looks: Option<Looks>,
    look_due: Instant,
    limit_reported: bool,
    share_reported: bool,
}

impl Context {
    pub(super) fn new(
        plan: &StreamPlan,
        (channel, seat): (Channel, Option<Arc<Seat>>),
        clock: Clock,
        shared: Arc<Shared>,
        news: mpsc::UnboundedSender<News>,
        stopped: oneshot::Sender<()>,
    ) -> Self {
        let stopped = Some(stopped);
        let publish_due = Instant::ZERO;
        Self {
            id: plan.id,
            channel,
            seat,
            clock,
            shared,
            news,
            stopped,
            publish_due,
            protocol: plan.protocol,
            role: plan.role,
            looks: None,
            look_due: Instant::ZERO,
            limit_reported: false,
            share_reported: false,
        }
    }

    /// The order in force.
    pub(super) fn is_running(&self) -> bool {
        self.shared.order.load(Ordering::Acquire) == Order::Run as u8
    }

    /// The thread is to end.
    pub(super) fn is_closed(&self) -> bool {
        self.shared.order.load(Ordering::Acquire) == Order::Close as u8
    }

    /// Lets the flow hear what the system says, and publishes what it knows beyond its counts, if the last
    /// time is long enough ago.
    pub(super) fn look_if_due(&mut self, now: Instant, flow: &mut impl Flow) {
        if now >= self.look_due {
            self.look_due = now + LOOK_INTERVAL;
            self.look(now, flow);
        }
    }

    fn look(&mut self, now: Instant, flow: &mut impl Flow) {
        let make = || Looks::new(self.protocol, self.role, self.seat.clone());
        let looks = self.looks.get_or_insert_with(make);
        flow.look(now, looks.look(self.channel.socket()));
        let detail = flow.detail();
        let mut shared = self.shared.detail.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *shared {
            Some(last) => **last = detail,
            None => *shared = Some(Box::new(detail)),
        }
    }

    /// Publishes the counts if the last time is long enough ago.
    pub(super) fn publish_if_due(&mut self, now: Instant, sample: impl FnOnce() -> Sample) {
        if now >= self.publish_due {
            self.publish_due = now + PUBLISH_INTERVAL;
            self.publish(sample());
        }
    }

    /// Publishes the counts.
    pub(super) fn publish(&self, sample: Sample) {
        *self.shared.sample.lock().unwrap_or_else(PoisonError::into_inner) = sample;
    }

    /// Publishes the last counts, and how the data went, and tells whoever waits for it.
    pub(super) fn publish_final(&mut self, flow: &mut impl Flow, engine: Engine) {
        self.look(self.clock.now(), flow);
        self.publish(flow.sample());
        // Said before only by a thread that ends twice, which none does.
        let _ = self.shared.engine.set(engine);
        if let Some(stopped) = self.stopped.take() {
            // Nobody waits when the streams were dropped.
            let _ = stopped.send(());
        }
    }

    /// Tells the session.
    pub(super) fn report(&self, event: StreamEvent) {
        self.tell(event, None);
    }

    /// Tells the session that the connection is over, and by which error if by any.
    pub(super) fn report_closed(&self, error: Option<io::Error>) {
        self.tell(StreamEvent::Closed, error);
    }

    /// Tells the session that the file cannot be read or written.
    pub(super) fn report_file(&self, error: io::Error) {
        let code = errno::number(&error);
        self.tell(StreamEvent::FileFailed { code }, Some(error));
    }

    fn tell(&self, event: StreamEvent, error: Option<io::Error>) {
        // Nobody listens when the session is gone; the order to close follows.
        let _ = self.news.send(News { id: self.id, event, error });
    }

    /// Tells the session, once, that a receiver has all it should; `reached` gives its counts then.
    pub(super) fn report_limit(&mut self, reached: impl FnOnce() -> Option<Sample>) {
        if self.limit_reported {
            return;
        }
        if let Some(sample) = reached() {
            self.limit_reported = true;
            self.publish(sample);
            self.report(StreamEvent::LimitReached);
        }
    }

    /// Tells the session, once, that a receiver has its share, with its counts then.
    pub(super) fn report_share(&mut self, has_share: bool, sample: impl FnOnce() -> Sample) {
        if has_share && !self.share_reported {
            self.share_reported = true;
            self.publish(sample());
            self.report(StreamEvent::ShareReached);
        }
    }

    /// Waits for the socket, an order or `until`, whichever comes first. A wait that the system
    /// refuses becomes a short sleep: the thread stays alive for its orders.
    pub(super) fn wait(&self, interest: Interest, until: Option<Instant>) {
        let timeout = until.map(|until| until - self.clock.now());
        if self.channel.wait(interest, &self.shared.wake, timeout).is_err() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits until it is time for the next departure. A short wait costs least when it looks at nothing
    /// else: orders are seen after it, and counts are published soon after.
    pub(super) fn wait_for_departure(&self, until: Instant, sample: impl FnOnce() -> Sample) {
        let left = until - self.clock.now();
        if left >= PUBLISH_INTERVAL {
            self.publish(sample());
        }
        if left < SHORT_WAIT {
            self.channel.rest(left);
        } else {
            self.wait(Interest::Nothing, Some(until));
        }
    }

    /// Waits for an order or the end of `pause`.
    pub(super) fn pause(&self, pause: Duration) {
        self.wait(Interest::Nothing, Some(self.clock.now() + pause));
    }

    /// Waits until the thread is to end.
    pub(super) fn wait_for_close(&self) {
        while !self.is_closed() {
            self.wait(Interest::Nothing, None);
        }
    }

    /// Waits until the stream is to stop.
    pub(super) fn wait_for_stop(&self) {
        while self.is_running() {
            self.wait(Interest::Nothing, None);
        }
    }
}

/// What the system says is asked for as often as this.
pub(super) const LOOK_INTERVAL: Duration = Duration::from_millis(40);
/// Orders may wait this long.
const SHORT_WAIT: Duration = Duration::from_millis(5);
/// Readers of tallies see them at most this old while a thread is busy.
const PUBLISH_INTERVAL: Duration = Duration::from_millis(1);
