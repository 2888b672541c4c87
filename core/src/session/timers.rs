//! The named timers of a session, as one small table: which are armed, which fires next.

use core::fmt;

use crate::protocol::code::error_number;
use crate::protocol::error_text;
use crate::time::Instant;

/// What a session waits for until a certain time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Timer {
    /// The end of the omitted start.
    Omit,
    /// The end of the test by time. Before the interval, which ends with it.
    TestEnd,
    /// The end of the running interval.
    Interval,
    /// A look at how much of an agreed amount is still in flight.
    ReceiveCheck,
    /// A look at the time of the last arrival of data.
    Silence,
    /// A look at the rate of the test.
    Rate,
    /// A look at the bytes of the test.
    Amount,
    /// The time after which a server that says nothing is worth a word.
    Quiet,
    /// The other end's next step on the control connection.
    Step,
    /// Client: the next look at which UDP greetings have been answered. Server: the next greeting.
    Greeting,
    /// Client: another greeting where the network said that nobody listens.
    Refused,
    /// All data streams being there.
    Streams,
    /// The longest that the agreed test may take.
    TestLimit,
    /// The peer's closing of the control connection.
    Linger,
}

impl Timer {
    const COUNT: usize = 14;
}

impl fmt::Display for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Omit => "end of the omitted start",
            Self::Interval => "end of the interval",
            Self::TestEnd => "end of the test",
            Self::ReceiveCheck => "next look at what is in flight",
            Self::Silence => error_text::text(error_number::NO_DATA).unwrap_or_default(),
            Self::Rate => "next look at the rate",
            Self::Amount => "next look at the bytes",
            Self::Quiet => "the server has not answered yet",
            Self::Step => "the other side did not answer on the control connection",
            Self::Greeting => "a UDP stream was not greeted",
            Self::Refused => "next greeting where nobody listened",
            Self::Streams => "not all data streams were connected",
            Self::TestLimit => "the test ran longer than agreed",
            Self::Linger => "the other side did not close the control connection",
        })
    }
}

/// Deadlines by name. It is asked far more often than it changes.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimerTable {
    /// An unarmed timer fires at [`NEVER`].
    at: [Instant; Timer::COUNT],
    /// The one that fires next; of two at the same time the one that stands first in [`Timer`].
    next: Timer,
}

impl Default for TimerTable {
    fn default() -> Self {
        Self { at: [NEVER; Timer::COUNT], next: ALL[0] }
    }
}

impl TimerTable {
    /// Out of line: it is called in many places, and rarely.
    #[inline(never)]
    pub(super) fn arm(&mut self, timer: Timer, at: Instant) {
        // A deadline at the end of time is one.
        self.set(timer, at.min(LAST));
    }

    fn set(&mut self, timer: Timer, at: Instant) {
        self.at[timer as usize] = at;
        self.next = ALL.into_iter().min_by_key(|&timer| self.at[timer as usize]).unwrap_or(ALL[0]);
    }

    pub(super) fn disarm(&mut self, timer: Timer) {
        self.set(timer, NEVER);
    }

    pub(super) fn disarm_all(&mut self) {
        *self = Self::default();
    }

    /// The timer that fires next; of two at the same time the one that stands first in [`Timer`].
    pub(super) fn next(&self) -> Option<(Timer, Instant)> {
        let at = self.at[self.next as usize];
        (at != NEVER).then_some((self.next, at))
    }

    /// Takes the next timer that is due at `now`.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<Timer> {
        let (timer, at) = self.next()?;
        (at <= now).then(|| {
            self.disarm(timer);
            timer
        })
    }
}

const NEVER: Instant = Instant::from_nanos(u64::MAX);
const LAST: Instant = Instant::from_nanos(u64::MAX - 1);

const ALL: [Timer; Timer::COUNT] = [
    Timer::Omit,
    Timer::TestEnd,
    Timer::Interval,
    Timer::ReceiveCheck,
    Timer::Silence,
    Timer::Rate,
    Timer::Amount,
    Timer::Quiet,
    Timer::Step,
    Timer::Greeting,
    Timer::Refused,
    Timer::Streams,
    Timer::TestLimit,
    Timer::Linger,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_fire_in_order_and_once() {
        let at = Instant::from_nanos;
        let mut timers = TimerTable::default();
        timers.arm(Timer::Step, at(30));
        timers.arm(Timer::Interval, at(20));
        timers.arm(Timer::TestEnd, at(20));
        assert_eq!(timers.next(), Some((Timer::TestEnd, at(20))));
        assert_eq!(timers.take_due(at(19)), None);
        assert_eq!(timers.take_due(at(20)), Some(Timer::TestEnd));
        assert_eq!(timers.take_due(at(20)), Some(Timer::Interval));
        assert_eq!(timers.take_due(at(20)), None);
        timers.disarm(Timer::Step);
        assert_eq!(timers.next(), None);
        timers.arm(Timer::Step, at(u64::MAX));
        assert_eq!(timers.take_due(at(u64::MAX)), Some(Timer::Step));
    }

    #[test]
    fn the_table_names_every_timer_in_its_place() {
        for (index, timer) in ALL.into_iter().enumerate() {
            assert_eq!(timer as usize, index);
        }
    }
}
