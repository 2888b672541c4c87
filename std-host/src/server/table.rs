//! The tests of a server by their cookies: which connection belongs to whom, how many there are, and
//! what all of them take together. The only state that tests share, and the only place where a server
//! counts.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use linerate_core::accept::{Admission, Known};
use linerate_core::protocol::cookie::Cookie;
use linerate_core::session::Denial;
use linerate_core::test::TestSettings;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};

use super::books::HourBooks;
use super::input::Input;
use crate::limits::{LiveLimits, ServerLimits, subscriber};

#[derive(Debug, Clone)]
pub(super) struct Table(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    limits: LiveLimits,
    /// One test, and then the server ends.
    one_off: bool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    tests: HashMap<Cookie, Entry>,
    /// Places kept for clients that have not said yet what to test.
    promised: u32,
    /// Who waits for a place, the first to come in front.
    waiting: VecDeque<Ticket>,
    next_ticket: u64,
    hours: HourBooks,
}

#[derive(Debug)]
struct Entry {
    /// Takes the test's TCP streams while it waits for them.
    streams: Option<mpsc::UnboundedSender<Input>>,
    is_running: bool,
    /// Whose share of the server it takes.
    owner: IpAddr,
    stream_count: u32,
    /// What it moves, by agreement or measured.
    bits_per_second: u64,
    /// Most other tests that ran at a time beside it, of all its time and since somebody asked.
    beside: u32,
    beside_lately: u32,
}

#[derive(Debug)]
struct Ticket {
    number: u64,
    owner: IpAddr,
    turn: oneshot::Sender<()>,
}

/// What becomes of a client that has said its cookie.
#[derive(Debug)]
pub(super) enum Welcome {
    /// It is asked for its test. Where there is a queue a place is kept for it.
    Now(Option<Promise>),
    /// It waits for its turn.
    Later(Waiting),
}

impl Table {
    pub(super) fn new(limits: LiveLimits, one_off: bool) -> Self {
        Self(Arc::new(Shared { limits, one_off, state: Mutex::default() }))
    }

    /// What a connection with this cookie is.
    pub(super) fn admission(&self, cookie: &Cookie) -> Admission {
        Admission::of(self.0.lock().tests.get(cookie).map(|test| match test.streams {
            Some(_) => Known::AwaitingStreams,
            None => Known::Running,
        }))
    }

    /// Whether a client of this address can be asked for its test, has to wait, or can go. What it
    /// will ask for is not known yet.
    pub(super) fn welcome(&self, client: IpAddr) -> Result<Welcome, Denial> {
        let (owner, limits) = (subscriber(client), self.0.limits.get());
        let (most, queue) = self.0.places(&limits);
        let mut state = self.0.lock();
        state.check_hour(owner, &limits)?;
        if state.has_room(most) && state.waiting.is_empty() {
            state.check_address(owner, &limits)?;
            let promise = (queue > 0).then(|| {
                state.promised += 1;
                Promise::new(self.0.clone())
            });
            return Ok(Welcome::Now(promise));
        }
        if queue == 0 {
            return Err(Denial::Tests { limit: most });
        }
        if state.waiting.len() >= queue as usize {
            return Err(Denial::Queue { limit: queue });
        }
        // No address fills the queue where none may fill the server.
        let of_owner = state.waiting.iter().filter(|ticket| ticket.owner == owner).count();
        if let Some(limit) = limits.tests_per_address.filter(|&most| of_owner >= most as usize) {
            return Err(Denial::AddressTests { limit });
        }
        let (sender, receiver) = oneshot::channel();
        let number = state.next_ticket;
        state.next_ticket += 1;
        state.waiting.push_back(Ticket { number, owner, turn: sender });
        let shared = self.0.clone();
        let place = state.waiting.len();
        Ok(Welcome::Later(Waiting { number, place, turn: Some(receiver), shared }))
    }

    /// Gives a data connection, accepted in this place, to its test; closes it if the test has just
    /// gone.
    pub(super) fn hand_over(&self, cookie: &Cookie, stream: TcpStream, order: u64) {
        let state = self.0.lock();
        if let Some(streams) = state.tests.get(cookie).and_then(|test| test.streams.as_ref()) {
            // A test that has just ended takes nothing more; the connection closes with it.
            let _ = streams.send(Input::Connected(stream, order));
        }
    }

    /// Takes a place for a test whose parameters were accepted. `streams` gets its TCP streams; none
    /// for a test without.
    pub(super) fn enter(
        &self,
        cookie: Cookie,
        client: IpAddr,
        settings: &TestSettings,
        promise: Option<Promise>,
        streams: Option<mpsc::UnboundedSender<Input>>,
    ) -> Result<Place, Denial> {
        let (owner, limits) = (subscriber(client), self.0.limits.get());
        let test = Entry {
            streams,
            is_running: false,
            owner,
            stream_count: settings.stream_count() as u32,
            bits_per_second: settings.asked_bits_per_second().unwrap_or(0),
            beside: 0,
            beside_lately: 0,
        };
        let (most, _) = self.0.places(&limits);
        let mut state = self.0.lock();
        if let Some(promise) = promise {
            promise.keep(&mut state);
        }
        if let Err(denial) = state.check(cookie, &test, settings, most, &limits) {
            // The place that was kept for it is another's.
            self.0.serve(&mut state);
            return Err(denial);
        }
        if limits.tests_per_hour.is_some() {
            state.hours.count(owner, Instant::now());
        }
        state.tests.insert(cookie, test);
        drop(state);
        Ok(Place { cookie, shared: self.0.clone() })
    }
}

impl Shared {
    /// A panic of one test must not take the others with it; the state is whole between any two lines.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many tests there may be at once, and how many clients may wait.
    fn places(&self, limits: &ServerLimits) -> (u32, u32) {
        if self.one_off { (1, 0) } else { (limits.tests, limits.queue) }
    }

    /// Calls those in front of the queue for whom there is room.
    fn serve(&self, state: &mut State) {
        let (most, _) = self.places(&self.limits.get());
        while state.has_room(most) {
            let Some(ticket) = state.waiting.pop_front() else { return };
            if ticket.turn.send(()).is_ok() {
                state.promised += 1;
            }
        }
    }
}

impl State {
    fn has_room(&self, most: u32) -> bool {
        self.tests.len() as u64 + u64::from(self.promised) < u64::from(most)
    }

    /// Whether there is room for all that a test asks for.
    fn check(
        &self,
        cookie: Cookie,
        test: &Entry,
        settings: &TestSettings,
        most: u32,
        limits: &ServerLimits,
    ) -> Result<(), Denial> {
        if self.tests.contains_key(&cookie) {
            return Err(Denial::SameName);
        }
        if !self.has_room(most) {
            return Err(Denial::Tests { limit: most });
        }
        self.check_address(test.owner, limits)?;
        self.check_hour(test.owner, limits)?;
        self.check_streams(test.stream_count, limits)?;
        self.check_bitrate(settings.asked_bits_per_second(), limits)
    }

    fn check_address(&self, owner: IpAddr, limits: &ServerLimits) -> Result<(), Denial> {
        let Some(limit) = limits.tests_per_address else { return Ok(()) };
        let count = self.tests.values().filter(|test| test.owner == owner).count();
        if count < limit as usize { Ok(()) } else { Err(Denial::AddressTests { limit }) }
    }

    fn check_hour(&self, owner: IpAddr, limits: &ServerLimits) -> Result<(), Denial> {
        let Some(limit) = limits.tests_per_hour else { return Ok(()) };
        match self.hours.wait(owner, limit, Instant::now()) {
            None => Ok(()),
            Some(wait_secs) => Err(Denial::HourlyTests { limit, wait_secs }),
        }
    }

    fn check_streams(&self, asked: u32, limits: &ServerLimits) -> Result<(), Denial> {
        let (limit, taken) =
            (limits.streams_in_all, self.tests.values().map(|test| test.stream_count).sum::<u32>());
        if taken.saturating_add(asked) > limit {
            return Err(Denial::ServerStreams { asked, taken, limit });
        }
        Ok(())
    }

    fn check_bitrate(&self, asked: Option<u64>, limits: &ServerLimits) -> Result<(), Denial> {
        let Some(limit) = limits.server_bitrate.map(|rate| rate.0) else { return Ok(()) };
        let taken = self.bits_per_second();
        // One without a rate of its own takes at least something.
        if taken.saturating_add(asked.unwrap_or(1)) > limit {
            return Err(Denial::ServerBitrate { asked, taken, limit });
        }
        Ok(())
    }

    /// What all tests move.
    fn bits_per_second(&self) -> u64 {
        self.tests.values().fold(0, |sum, test| sum.saturating_add(test.bits_per_second))
    }
}

/// A place kept for a client that is asked for its test; given back when dropped.
#[derive(Debug)]
pub(super) struct Promise {
    shared: Arc<Shared>,
    is_kept: bool,
}

impl Promise {
    const fn new(shared: Arc<Shared>) -> Self {
        Self { shared, is_kept: false }
    }

    /// Gives the place to whoever holds the state.
    fn keep(mut self, state: &mut State) {
        state.promised -= 1;
        self.is_kept = true;
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        if !self.is_kept {
            let mut state = self.shared.lock();
            state.promised -= 1;
            self.shared.serve(&mut state);
        }
    }
}

/// A client's place in the queue, given up when dropped.
#[derive(Debug)]
pub(super) struct Waiting {
    number: u64,
    place: usize,
    /// None once its turn has come.
    turn: Option<oneshot::Receiver<()>>,
    shared: Arc<Shared>,
}

impl Waiting {
    /// Its place in the queue when it came, from one.
    pub(super) const fn place(&self) -> usize {
        self.place
    }

    /// Waits for its turn, and then has a place. Loses nothing if dropped.
    pub(super) async fn turn(&mut self) -> Promise {
        match &mut self.turn {
            // The sender goes only when it is sent, or with this ticket.
            Some(turn) => _ = turn.await,
            None => std::future::pending().await,
        }
        self.turn = None;
        Promise::new(self.shared.clone())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if self.turn.is_none() {
            return;
        }
        let mut state = self.shared.lock();
        let before = state.waiting.len();
        state.waiting.retain(|ticket| ticket.number != self.number);
        if state.waiting.len() == before {
            // Its turn came as it went.
            state.promised -= 1;
            self.shared.serve(&mut state);
        }
    }
}

/// A test's place in the table, given back when dropped.
#[derive(Debug)]
pub(super) struct Place {
    cookie: Cookie,
    shared: Arc<Shared>,
}

impl Place {
    /// All streams are there.
    pub(super) fn set_running(&self) {
        let mut state = self.shared.lock();
        if let Some(test) = state.tests.get_mut(&self.cookie) {
            test.streams = None;
            test.is_running = true;
        }
        let running = state.tests.values_mut().filter(|test| test.is_running);
        let running: Vec<_> = running.collect();
        let others = running.len().saturating_sub(1) as u32;
        for test in running {
            test.beside = test.beside.max(others);
            test.beside_lately = test.beside_lately.max(others);
        }
    }

    /// Most other tests that ran at a time since this was asked last.
    pub(super) fn beside_lately(&self) -> u32 {
        let mut state = self.shared.lock();
        let running = state.tests.values().filter(|test| test.is_running).count();
        let Some(test) = state.tests.get_mut(&self.cookie) else { return 0 };
        let others = running.saturating_sub(1) as u32;
        std::mem::replace(&mut test.beside_lately, others)
    }

    /// Most other tests that ran at a time beside this one so far.
    pub(super) fn beside(&self) -> u32 {
        self.shared.lock().tests.get(&self.cookie).map_or(0, |test| test.beside)
    }

    /// Notes what the test moves. Where all of them together move too much, the one that moves the
    /// most has to go.
    pub(super) fn weigh(&self, bits_per_second: u64) -> Option<Denial> {
        let limit = self.shared.limits.get().server_bitrate?.0;
        let mut state = self.shared.lock();
        state.tests.get_mut(&self.cookie)?.bits_per_second = bits_per_second;
        let measured = state.bits_per_second();
        let is_most = state.tests.values().all(|test| test.bits_per_second <= bits_per_second);
        (measured > limit && is_most).then_some(Denial::ServerMeasured { measured, limit })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.tests.remove(&self.cookie);
        self.shared.serve(&mut state);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use linerate_core::test::{Direction, Protocol};
    use linerate_core::units::BitsPerSec;

    use super::*;

    fn table(change: impl FnOnce(&mut ServerLimits)) -> Table {
        let mut limits = ServerLimits::DEFAULT;
        change(&mut limits);
        Table::new(LiveLimits::new(limits), false)
    }

    fn address(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    fn cookie(number: u8) -> Cookie {
        Cookie::from_bytes([number; Cookie::LEN])
    }

    /// Test `number` of this address, with these settings.
    fn enter_with(
        table: &Table,
        number: u8,
        from: u8,
        change: impl FnOnce(&mut TestSettings),
    ) -> Result<Place, Denial> {
        let mut settings = TestSettings::new(Protocol::Tcp);
        change(&mut settings);
        table.enter(cookie(number), address(from), &settings, None, None)
    }

    fn enter(table: &Table, number: u8, from: u8) -> Result<Place, Denial> {
        enter_with(table, number, from, |_| ())
    }

    fn waits(table: &Table, from: u8) -> Waiting {
        match table.welcome(address(from)) {
            Ok(Welcome::Later(waiting)) => waiting,
            other => panic!("{other:?}"),
        }
    }

    fn promised(table: &Table, from: u8) -> Promise {
        match table.welcome(address(from)) {
            Ok(Welcome::Now(Some(promise))) => promise,
            other => panic!("{other:?}"),
        }
    }

    async fn has_turn(waiting: &mut Waiting) -> Option<Promise> {
        tokio::time::timeout(Duration::from_millis(10), waiting.turn()).await.ok()
    }

    fn denied<T>(result: Result<T, Denial>) -> Denial {
        result.err().expect("it is not allowed")
    }

    #[test]
    fn places_are_counted_in_all_and_by_address() {
        let table = table(|l| (l.tests, l.tests_per_address) = (3, Some(2)));
        let first = enter(&table, 1, 1).expect("room");
        let _second = enter(&table, 2, 1).expect("room");
        assert_eq!(denied(enter(&table, 3, 1)), Denial::AddressTests { limit: 2 });
        assert_eq!(denied(table.welcome(address(1))), Denial::AddressTests { limit: 2 });
        assert_eq!(denied(enter(&table, 1, 2)), Denial::SameName);
        let _third = enter(&table, 3, 2).expect("room");
        assert_eq!(denied(enter(&table, 4, 3)), Denial::Tests { limit: 3 });
        assert_eq!(denied(table.welcome(address(3))), Denial::Tests { limit: 3 });
        drop(first);
        let _fourth = enter(&table, 4, 1).expect("a place was given back");
    }

    #[test]
    fn streams_and_rates_are_added_up() {
        let table = table(|l| {
            (l.streams_in_all, l.server_bitrate) = (8, Some(BitsPerSec(1000)));
        });
        let rate = |rate| Some(BitsPerSec(rate));
        let first = enter_with(&table, 1, 1, |s| (s.parallel, s.bitrate) = (3, rate(200)));
        let first = first.expect("room");
        let both_ways = enter_with(&table, 2, 2, |s| {
            (s.parallel, s.direction) = (3, Direction::Bidirectional);
        });
        assert_eq!(denied(both_ways), Denial::ServerStreams { asked: 6, taken: 3, limit: 8 });
        let second = enter_with(&table, 2, 2, |s| s.bitrate = rate(401));
        let denial = Denial::ServerBitrate { asked: Some(401), taken: 600, limit: 1000 };
        assert_eq!(denied(second), denial);
        let second = enter_with(&table, 2, 2, |s| s.bitrate = rate(400)).expect("room");
        let denial = Denial::ServerBitrate { asked: None, taken: 1000, limit: 1000 };
        assert_eq!(denied(enter(&table, 3, 3)), denial);
        drop(first);
        let third = enter(&table, 3, 3).expect("without a rate it may take what is there");
        assert_eq!(third.weigh(600), None);
        assert_eq!(second.weigh(500), None, "too much, but another moves more");
        let denial = Denial::ServerMeasured { measured: 1101, limit: 1000 };
        assert_eq!(third.weigh(601), Some(denial));
    }

    #[test]
    fn tests_beside_each_other_are_counted_at_their_most() {
        let table = table(|_| ());
        let places: Vec<_> = (0..3).map(|n| enter(&table, n, n).expect("room")).collect();
        places[0].set_running();
        assert_eq!((places[0].beside(), places[0].beside_lately()), (0, 0));
        places[1].set_running();
        places[2].set_running();
        let [first, second, third] = places.try_into().expect("three");
        assert_eq!((first.beside(), third.beside()), (2, 2));
        drop(second);
        drop(third);
        assert_eq!(first.beside_lately(), 2, "they are gone, and have been there");
        assert_eq!(first.beside_lately(), 0);
        assert_eq!(first.beside(), 2);
    }

    #[tokio::test]
    async fn first_come_is_first_served_and_who_goes_is_skipped() {
        let table = table(|l| (l.tests, l.queue) = (1, 3));
        let promise = promised(&table, 1);
        let mut first = waits(&table, 2);
        let second = waits(&table, 3);
        let mut third = waits(&table, 4);
        assert_eq!(denied(table.welcome(address(5))), Denial::Queue { limit: 3 });
        assert!(has_turn(&mut first).await.is_none());
        drop(second);
        let mut fourth = waits(&table, 5);
        let settings = TestSettings::new(Protocol::Tcp);
        let place = table.enter(cookie(1), address(1), &settings, Some(promise), None);
        assert!(has_turn(&mut first).await.is_none());
        drop(place);
        assert!(has_turn(&mut third).await.is_none(), "it is the turn of the first");
        // Nobody passes by.
        let mut fifth = waits(&table, 6);
        let promise = has_turn(&mut first).await.expect("its turn");
        drop(promise);
        // It goes as its turn comes.
        drop(third);
        drop(has_turn(&mut fourth).await.expect("its turn"));
        drop(has_turn(&mut fifth).await.expect("its turn"));
        drop(promised(&table, 7));
        assert!(enter(&table, 9, 9).is_ok(), "all places were given back");
    }

    #[tokio::test]
    async fn a_refused_test_leaves_its_place_to_the_next() {
        let table = table(|l| (l.tests, l.queue, l.streams_in_all) = (1, 1, 1));
        let promise = promised(&table, 1);
        let mut next = waits(&table, 2);
        let mut settings = TestSettings::new(Protocol::Tcp);
        settings.parallel = 2;
        let refused = table.enter(cookie(1), address(1), &settings, Some(promise), None);
        assert_eq!(denied(refused), Denial::ServerStreams { asked: 2, taken: 0, limit: 1 });
        assert!(has_turn(&mut next).await.is_some());
    }

    #[test]
    fn no_address_fills_the_queue_where_none_may_fill_the_server() {
        let table = table(|l| (l.tests, l.queue, l.tests_per_address) = (1, 5, Some(1)));
        let _promise = promised(&table, 1);
        let _waiting = waits(&table, 1);
        assert_eq!(denied(table.welcome(address(1))), Denial::AddressTests { limit: 1 });
        let _other = waits(&table, 2);
    }

    #[test]
    fn an_hour_holds_so_many_tests_of_an_address() {
        let table = table(|l| l.tests_per_hour = Some(2));
        drop(enter(&table, 1, 1).expect("room"));
        drop(enter(&table, 2, 1).expect("room"));
        let denial = denied(enter(&table, 3, 1));
        assert!(matches!(denial, Denial::HourlyTests { limit: 2, wait_secs: 3590..=3600 }));
        assert_eq!(denied(table.welcome(address(1))).told(), denial.told());
        drop(enter(&table, 3, 2).expect("another address has its own"));
    }
}
