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
use linerate_core::units::BitsPerSec;
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
    /// How many it still waits for: a client that opens more holds no sockets here.
    missing: usize,
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

    /// Calls those who wait in vain by limits that have changed.
    pub(super) fn call_next(&self) {
        self.0.serve(&mut self.0.lock());
    }

    /// Gives a data connection, accepted in this place, to its test; closes it if the test has just
    /// gone.
    pub(super) fn hand_over(&self, cookie: &Cookie, stream: TcpStream, order: u64) {
        let mut state = self.0.lock();
        if let Some(test) = state.tests.get_mut(cookie).filter(|test| test.missing > 0)
            && let Some(streams) = &test.streams
        {
            test.missing -= 1;
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
            missing: if streams.is_some() { settings.stream_count() } else { 0 },
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
        Ok(Place { cookie, server_bitrate: limits.server_bitrate, shared: self.0.clone() })
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
    /// What all tests together might move when it began.
    server_bitrate: Option<BitsPerSec>,
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

    /// The test does nothing more; connections with its cookie still come too late.
    pub(super) fn set_over(&self) {
        if let Some(test) = self.shared.lock().tests.get_mut(&self.cookie) {
            test.streams = None;
            test.is_running = false;
            test.bits_per_second = 0;
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
        let limit = self.server_bitrate?.0;
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
#[path = "table_tests.rs"]
mod tests;
