//! How a client's streams are opened, from the server's request for them to the start of the test: TCP
//! streams one after the other, UDP streams as the greeter says.

use super::client::{Client, ClientSession};
use super::greeter::{Greet, Greeter, Next, Way};
use super::shared::Shared;
use super::{Action, Phase, SessionError, Timer};
use crate::protocol::extension::Features;
use crate::protocol::greeting::NamedGreeting;
use crate::test::{End, Protocol, StreamId};
use crate::time::Instant;

impl<const N: usize> ClientSession<'_, N> {
    /// The greeting of a UDP stream that was opened under this number, if this session names them;
    /// without, it is [`HELLO`](crate::protocol::greeting::HELLO).
    pub fn named_greeting(&self, id: StreamId) -> Option<NamedGreeting> {
        let index = u16::try_from(id.index()).ok()?;
        let cookie = self.exchange.cookie;
        self.acknowledges_greetings().then_some(NamedGreeting { cookie, index })
    }

    /// The number under which the stream was opened that has the number `id` from the start of the
    /// test on: a server numbers UDP streams in the order in which their greetings arrive.
    pub fn opened_as(&self, id: StreamId) -> StreamId {
        let greeter = self.exchange.greeter.as_ref();
        greeter.map_or(id, |greeter| StreamId::from_index(greeter.opened_as(id.index())))
    }

    /// UDP streams whose greetings are not known to have arrived, by the numbers under which they
    /// were opened or would have been.
    pub fn ungreeted(&self) -> impl Iterator<Item = StreamId> {
        let greeter = self.exchange.greeter.as_ref();
        greeter.into_iter().flat_map(Greeter::unanswered).map(StreamId::from_index)
    }
}

impl<const N: usize> Client<'_, N> {
    /// The server awaits the streams.
    pub(super) fn begin_streams(&mut self, shared: &mut Shared<N>, now: Instant) {
        shared.timers.arm(Timer::Streams, now.plus_nanos(shared.deadlines.streams_ns));
        match shared.settings.protocol {
            Protocol::Udp => self.begin_greeting(shared, now),
            Protocol::Tcp | Protocol::Sctp => self.open_next(shared),
        }
    }

    fn open_next(&mut self, shared: &mut Shared<N>) {
        let role = shared.settings.role(End::Client, self.opened);
        shared.act(Action::OpenStream(StreamId::from_index(self.opened), role));
    }

    /// Of a UDP test, the next stream to greet, if there is one now.
    pub(super) fn poll_greeting(&mut self, shared: &Shared<N>) -> Option<Action> {
        let greeter = self.greeter.as_mut().filter(|_| shared.phase == Phase::Streams)?;
        Some(match greeter.poll(&mut self.opened)? {
            Greet::First(index) => {
                let role = shared.settings.role(End::Client, index);
                Action::OpenStream(StreamId::from_index(index), role)
            }
            Greet::Again(index) => Action::Greet(StreamId::from_index(index)),
        })
    }

    /// The network says that nobody listened where a greeting went.
    pub(super) fn on_refused(&mut self, shared: &mut Shared<N>, now: Instant, id: StreamId) {
        let greeter = self.greeter.as_mut();
        if let Some(again) = greeter.and_then(|greeter| greeter.on_refused(now, id.index())) {
            shared.timers.arm(Timer::Refused, again);
        }
    }

    /// The timers of UDP set-up; `true` if this was one of them.
    pub(super) fn on_greeting_timer(
        &mut self,
        shared: &mut Shared<N>,
        now: Instant,
        timer: Timer,
    ) -> bool {
        match (timer, &mut self.greeter) {
            (Timer::Greeting, Some(greeter)) => {
                let next = greeter.on_look(now);
                self.follow(shared, now, next);
            }
            (Timer::Refused, Some(greeter)) => {
                shared.timers.arm(Timer::Greeting, greeter.on_refused_due(now));
            }
            (Timer::Streams, Some(greeter)) => {
                let error = ungreeted(greeter);
                self.fail(shared, error);
            }
            _ => return false,
        }
        true
    }

    fn begin_greeting(&mut self, shared: &mut Shared<N>, now: Instant) {
        let own = Features::ACKNOWLEDGED_GREETINGS;
        let is_agreed = self.accepted.get().is_some_and(|agreed| agreed.features.contains(own));
        let way = if is_agreed { Way::Repeated } else { Way::Once };
        let greeter = self.greeter.insert(Greeter::new(way, shared.settings.stream_count()));
        shared.timers.arm(Timer::Greeting, greeter.first_look(now));
        let limit_ns = shared.deadlines.streams_ns.saturating_add(greeter.extra_ns());
        shared.timers.arm(Timer::Streams, now.plus_nanos(limit_ns));
    }

    /// The server says that it has all streams, which is worth as much as a reply to each greeting.
    pub(super) fn on_start_told(&mut self, shared: &mut Shared<N>, now: Instant) {
        if shared.phase == Phase::Streams
            && let Some(greeter) = &mut self.greeter
        {
            let next = greeter.on_start();
            self.follow(shared, now, next);
        }
    }

    /// Does what the greeter says.
    fn follow(&mut self, shared: &mut Shared<N>, now: Instant, next: Next) {
        match (next, &self.greeter) {
            (Next::Look(at), _) => shared.timers.arm(Timer::Greeting, at),
            (Next::Done, _) => self.on_all_connected(shared, now),
            (Next::Failed, Some(greeter)) => self.fail(shared, ungreeted(greeter)),
            (Next::Wait | Next::Failed, _) => {}
        }
    }

    pub(super) fn on_connected(&mut self, shared: &mut Shared<N>, now: Instant, id: StreamId) {
        if let Some(greeter) = &mut self.greeter {
            let next = greeter.on_answered(now, id.index());
            return self.follow(shared, now, next);
        }
        if id.index() != self.opened {
            return;
        }
        self.opened += 1;
        if self.opened < shared.settings.stream_count() {
            return self.open_next(shared);
        }
        self.on_all_connected(shared, now);
    }

    fn on_all_connected(&mut self, shared: &mut Shared<N>, now: Instant) {
        for timer in [Timer::Streams, Timer::Greeting, Timer::Refused] {
            shared.timers.disarm(timer);
        }
        shared.await_step(now);
        shared.phase = Phase::Starting;
        self.start_if_ready(shared, now);
    }
}

fn ungreeted<const N: usize>(greeter: &Greeter<N>) -> SessionError {
    let missing = u16::try_from(greeter.unanswered().count()).unwrap_or(u16::MAX);
    SessionError::Ungreeted { missing, of: u16::try_from(greeter.count()).unwrap_or(u16::MAX) }
}
