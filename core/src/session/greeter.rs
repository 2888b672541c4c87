//! How a client's UDP streams make themselves known to the server, over a network that loses, doubles,
//! delays and reorders. What it decides is whom to greet when; what it is told is who was answered.
//!
//! Between two ends that acknowledge greetings ([`Way::Repeated`]) all streams are greeted at once,
//! and each again every [`REPEAT_NS`] until it is answered or the test starts.
//!
//! Towards any other server ([`Way::Once`]) a copy of a greeting that did arrive would be taken for
//! data, so that each has to be shown lost before it is sent again. One stream is greeted after the
//! other; one without a reply for [`REPLY_NS`] is passed over, since its reply may be what was lost.
//! Once all are greeted the server starts the test, which proves that all arrived. If it does not
//! within [`START_NS`], then a greeting is lost: a single stream without a reply is known to be the
//! one and is greeted again; of several, nobody knows which, and the set-up has failed. A greeting
//! that the network refused did not arrive either. The server numbers streams as their greetings
//! arrive, so that a stream that was greeted again has moved to the end.

use heapless::Vec;

use crate::time::{Instant, NANOS_PER_SEC};

/// What is known of the greetings of up to `N` streams, by the order in which they were opened.
#[derive(Debug)]
pub(super) struct Greeter<const N: usize> {
    way: Way,
    count: usize,
    states: Vec<State, N>,
    /// The streams in the order in which a server that numbers them by arrival has them.
    order: Vec<u16, N>,
    /// Those from here on have still to be looked at for something to do.
    next: usize,
    /// All are greeted, and the last has had its time for a reply.
    awaits_start: bool,
}

/// How greetings are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// All at once, each until it is answered.
    Repeated,
    /// One after the other, and again only those that are known to be lost.
    Once,
}

/// One stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// To be opened and greeted.
    Closed,
    /// Greeted.
    Greeted,
    /// Greeted, but nobody listened.
    Refused,
    /// To be greeted once more.
    Lost,
    /// Known to have arrived.
    Answered,
}

/// What to do with a stream, by the order of opening.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Greet {
    /// Open it and greet.
    First(usize),
    /// Greet once more.
    Again(usize),
}

/// What follows from what happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Nothing.
    Wait,
    /// Look again at this time.
    Look(Instant),
    /// All streams are known to the server.
    Done,
    /// Greetings are lost, and nobody knows which.
    Failed,
}

impl<const N: usize> Greeter<N> {
    /// Begins with the first of `count` streams, at most `N`, or with all of them.
    pub(super) fn new(way: Way, count: usize) -> Self {
        let mut order = Vec::new();
        let mut states = Vec::new();
        for index in 0..count.min(N) {
            let is_due = way == Way::Repeated || index == 0;
            let _room = order.push(index as u16);
            let _room = states.push(if is_due { State::Lost } else { State::Closed });
        }
        let count = states.len();
        Self { way, count, states, order, next: 0, awaits_start: false }
    }

    /// When to look for the first time.
    pub(super) const fn first_look(&self, now: Instant) -> Instant {
        now.plus_nanos(match self.way {
            Way::Repeated => REPEAT_NS,
            Way::Once => REPLY_NS,
        })
    }

    /// What the set-up may take beyond its limit because streams wait for each other.
    pub(super) const fn extra_ns(&self) -> u64 {
        match self.way {
            Way::Repeated => 0,
            Way::Once => REPLY_NS * (self.count as u64).saturating_sub(1),
        }
    }

    /// A greeting to send now. `opened` streams have been opened.
    pub(super) fn poll(&mut self, opened: &mut usize) -> Option<Greet> {
        while self.next < self.count {
            let index = self.next;
            self.next += 1;
            if self.states[index] != State::Lost {
                continue;
            }
            self.states[index] = State::Greeted;
            if index < *opened {
                self.move_to_end(index);
                return Some(Greet::Again(index));
            }
            *opened = index + 1;
            return Some(Greet::First(index));
        }
        None
    }

    /// A stream is known to the server.
    pub(super) fn on_answered(&mut self, now: Instant, index: usize) -> Next {
        match self.states.get(index) {
            Some(State::Greeted | State::Refused | State::Lost) => {}
            _ => return Next::Wait,
        }
        self.states[index] = State::Answered;
        self.number_by_reply(index);
        if self.states.iter().all(|&state| state == State::Answered) {
            return Next::Done;
        }
        let is_newest = self.states.get(index + 1).is_none_or(|&next| next == State::Closed);
        match self.way {
            Way::Once if is_newest => self.go_on(now),
            _ => Next::Wait,
        }
    }

    /// The network says that a greeting found nobody. Tells when to send it again; none if it is
    /// sent again anyway.
    pub(super) fn on_refused(&mut self, now: Instant, index: usize) -> Option<Instant> {
        if self.way == Way::Repeated || self.states.get(index) != Some(&State::Greeted) {
            return None;
        }
        self.states[index] = State::Refused;
        Some(now.plus_nanos(REPEAT_NS))
    }

    /// Time to greet those again that were refused. Tells when to look for their replies.
    pub(super) fn on_refused_due(&mut self, now: Instant) -> Instant {
        for state in &mut self.states {
            if *state == State::Refused {
                *state = State::Lost;
            }
        }
        self.next = 0;
        now.plus_nanos(if self.awaits_start { START_NS } else { REPLY_NS })
    }

    /// Time to look at what has been answered.
    pub(super) fn on_look(&mut self, now: Instant) -> Next {
        if self.way == Way::Once {
            return self.go_on(now);
        }
        for state in &mut self.states {
            if *state == State::Greeted {
                *state = State::Lost;
            }
        }
        self.next = 0;
        Next::Look(now.plus_nanos(REPEAT_NS))
    }

    /// The server starts the test: it knows all streams, if all were greeted.
    pub(super) fn on_start(&mut self) -> Next {
        if self.states.contains(&State::Closed) { Next::Wait } else { Next::Done }
    }

    /// Streams of which nobody knows whether the server knows them, by the order of opening.
    pub(super) fn unanswered(&self) -> impl Iterator<Item = usize> {
        (0..self.count).filter(|&index| self.states[index] != State::Answered)
    }

    /// Of how many streams it is.
    pub(super) const fn count(&self) -> usize {
        self.count
    }

    /// Which stream, by the order of opening, has this place for the server.
    pub(super) fn opened_as(&self, place: usize) -> usize {
        self.order.get(place).map_or(place, |&index| usize::from(index))
    }

    /// The newest stream has had its time.
    fn go_on(&mut self, now: Instant) -> Next {
        if let Some(next) = self.states.iter().position(|&state| state == State::Closed) {
            self.states[next] = State::Lost;
            self.next = 0;
            return Next::Look(now.plus_nanos(REPLY_NS));
        }
        let is_time_over = core::mem::replace(&mut self.awaits_start, true);
        let is_sending = |state: &State| matches!(state, State::Refused | State::Lost);
        if is_time_over && !self.states.iter().any(is_sending) {
            let mut unanswered = self.unanswered();
            match (unanswered.next(), unanswered.next()) {
                (Some(only), None) => {
                    drop(unanswered);
                    self.states[only] = State::Lost;
                    self.next = 0;
                }
                _ => return Next::Failed,
            }
        }
        Next::Look(now.plus_nanos(START_NS))
    }

    fn move_to_end(&mut self, index: usize) {
        if self.way == Way::Once
            && let Some(at) = self.place_of(index)
        {
            self.order[at..].rotate_left(1);
        }
    }

    /// Replies come in the order of the greetings: a stream whose reply came after those of later
    /// ones was overtaken by them.
    fn number_by_reply(&mut self, index: usize) {
        let is_answered = |&other: &u16| {
            usize::from(other) != index && self.states[usize::from(other)] == State::Answered
        };
        if self.way == Way::Once
            && let Some(at) = self.place_of(index)
            && let Some(last) = self.order.iter().rposition(is_answered)
            && last > at
        {
            self.order[at..=last].rotate_left(1);
        }
    }

    fn place_of(&self, index: usize) -> Option<usize> {
        self.order.iter().position(|&other| usize::from(other) == index)
    }
}

/// Between two greetings of a stream whose server acknowledges them, and before one again that found
/// nobody.
const REPEAT_NS: u64 = NANOS_PER_SEC / 5;
/// How long a reply is waited for before the next stream is greeted.
const REPLY_NS: u64 = NANOS_PER_SEC;
/// How long the start of the test is waited for before a greeting is taken for lost.
const START_NS: u64 = 2 * NANOS_PER_SEC;

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec as StdVec;

    use super::*;

    const NOBODY: [i32; 0] = [];
    const SEC: u64 = NANOS_PER_SEC;

    struct Run {
        greeter: Greeter<8>,
        opened: usize,
        now: Instant,
    }

    impl Run {
        fn new(way: Way, count: usize) -> Self {
            Self { greeter: Greeter::new(way, count), opened: 0, now: Instant::ZERO }
        }

        /// Who is greeted now, counted from one; negative for those that were greeted before.
        fn greeted(&mut self) -> StdVec<i32> {
            let number = |greet| match greet {
                Greet::First(index) => index as i32 + 1,
                Greet::Again(index) => -(index as i32) - 1,
            };
            core::iter::from_fn(|| self.greeter.poll(&mut self.opened)).map(number).collect()
        }

        fn look_after(&mut self, nanos: u64) -> Next {
            self.now = self.now.plus_nanos(nanos);
            self.greeter.on_look(self.now)
        }

        fn answer(&mut self, index: usize) -> Next {
            self.greeter.on_answered(self.now, index)
        }

        fn order(&self) -> StdVec<usize> {
            (0..self.greeter.count()).map(|place| self.greeter.opened_as(place)).collect()
        }
    }

    #[test]
    fn repeated_greetings_go_to_all_that_are_unanswered_and_keep_their_numbers() {
        let mut run = Run::new(Way::Repeated, 4);
        assert_eq!(run.greeted(), [1, 2, 3, 4]);
        assert_eq!(run.greeted(), NOBODY);
        assert_eq!(run.answer(2), Next::Wait);
        assert_eq!(run.look_after(REPEAT_NS), Next::Look(Instant::from_nanos(2 * REPEAT_NS)));
        assert_eq!(run.greeted(), [-1, -2, -4]);
        assert_eq!(run.greeter.on_refused(run.now, 0), None, "it is repeated anyway");
        assert_eq!(
            (run.answer(3), run.answer(0), run.answer(0)),
            (Next::Wait, Next::Wait, Next::Wait)
        );
        assert!(run.greeter.unanswered().eq([1]));
        assert_eq!(run.answer(1), Next::Done);
        assert_eq!(run.order(), [0, 1, 2, 3]);
    }

    #[test]
    fn streams_are_greeted_one_after_the_other_as_replies_come() {
        let mut run = Run::new(Way::Once, 3);
        assert_eq!(run.greeted(), [1]);
        assert_eq!(run.answer(0), Next::Look(Instant::from_nanos(REPLY_NS)));
        assert_eq!(run.greeted(), [2]);
        run.answer(1);
        assert_eq!(run.greeted(), [3]);
        assert_eq!(run.answer(2), Next::Done);
    }

    #[test]
    fn a_start_proves_that_all_arrived_whose_replies_were_lost() {
        let mut run = Run::new(Way::Once, 2);
        run.greeted();
        assert_eq!(run.greeter.on_start(), Next::Wait, "not all are greeted");
        run.look_after(REPLY_NS);
        assert_eq!(run.greeted(), [2], "the next is greeted though the first has no reply");
        assert_eq!(run.greeter.on_start(), Next::Done);
        assert_eq!(run.order(), [0, 1]);
    }

    #[test]
    fn a_single_lost_greeting_is_repeated_and_numbered_last() {
        let mut run = Run::new(Way::Once, 3);
        run.greeted();
        run.look_after(REPLY_NS);
        run.greeted();
        run.answer(1);
        run.greeted();
        assert_eq!(run.answer(2), Next::Look(run.now.plus_nanos(START_NS)));
        assert_eq!(run.greeted(), NOBODY, "it may have arrived");
        assert_eq!(run.look_after(START_NS), Next::Look(Instant::from_nanos(SEC + 2 * START_NS)));
        assert_eq!(run.greeted(), [-1]);
        assert_eq!(run.order(), [1, 2, 0]);
        run.look_after(START_NS);
        assert_eq!(run.greeted(), [-1], "the copy was lost, too");
        assert_eq!(run.answer(0), Next::Done);
        assert_eq!(run.order(), [1, 2, 0]);
    }

    #[test]
    fn of_several_without_a_reply_none_is_repeated() {
        let mut run = Run::new(Way::Once, 2);
        run.greeted();
        run.look_after(REPLY_NS);
        run.greeted();
        assert_eq!(run.look_after(REPLY_NS), Next::Look(Instant::from_nanos(2 * SEC + START_NS)));
        assert_eq!(run.look_after(START_NS), Next::Failed);
        assert_eq!(run.greeted(), NOBODY);
        assert!(run.greeter.unanswered().eq([0, 1]));
    }

    #[test]
    fn a_refused_greeting_is_repeated_since_it_did_not_arrive() {
        let mut run = Run::new(Way::Once, 2);
        run.greeted();
        assert_eq!(run.greeter.on_refused(run.now, 0), Some(Instant::from_nanos(REPEAT_NS)));
        assert_eq!(run.greeter.on_refused(run.now, 0), None, "told once");
        assert_eq!(run.greeted(), NOBODY);
        run.greeter.on_refused_due(run.now);
        assert_eq!(run.greeted(), [-1]);
        run.look_after(REPLY_NS);
        assert_eq!(run.greeted(), [2]);
        run.greeter.on_refused(run.now, 0);
        run.greeter.on_refused_due(run.now);
        assert_eq!(run.greeted(), [-1]);
        assert_eq!(run.order(), [1, 0], "it arrives after the second");
    }

    #[test]
    fn a_reply_that_comes_later_than_those_of_later_streams_tells_the_order_of_arrival() {
        let mut run = Run::new(Way::Once, 3);
        run.greeted();
        run.look_after(REPLY_NS);
        run.greeted();
        run.answer(1);
        run.greeted();
        run.answer(0);
        assert_eq!(run.order(), [1, 0, 2]);
        assert_eq!(run.answer(2), Next::Done);
        assert_eq!(run.order(), [1, 0, 2]);
    }
}
