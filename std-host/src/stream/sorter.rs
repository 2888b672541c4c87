//! One UDP socket for all streams of a server: a thread reads it and sorts what comes by its sender's
//! address. What a stream's peer sent goes to the stream's mailbox, greetings go to whoever makes streams
//! of them, and the rest is dropped. Needed where the system does not sort, and the same on all systems.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use linerate_core::protocol::greeting::NamedGreeting;
use linerate_core::test::Protocol;
use linerate_core::time::Instant;
use socket2::Socket;

use super::datagrams::{Incoming, Message, bytes_of_each};
use super::intake::SPARED;
use super::mailbox::{Letter, Mailbox};
use super::outcome::{Remedy, remedy};
use super::socket::canonical;
use super::thread::LOOK_INTERVAL;
use super::udp::Rests;
use crate::clock::Clock;
use crate::report::Engine;
use crate::sys::{self, Arrived, Channel, Interest, Route, ThreadTimes, Wake};

/// The socket and who sits at it.
#[derive(Debug)]
pub(super) struct Sorter {
    socket: Arc<Socket>,
    /// That of all times of arrival.
    clock: Clock,
    seats: Mutex<Seats>,
    /// For the thread that reads.
    wake: Wake,
    /// New streams may come.
    is_open: AtomicBool,
    /// Receivers that do not mind if their datagrams wait a little.
    patient: AtomicUsize,
    rounds: Rounds,
    /// Of the thread that reads, as it last looked.
    cpu_ns: AtomicU64,
    queued_ns: AtomicU64,
    /// How the datagrams are read, but for how many at once.
    reads: Reads,
}

#[derive(Debug, Default)]
struct Seats {
    by_peer: HashMap<SocketAddr, Arc<Mailbox>>,
    /// Which places are taken.
    places: Vec<bool>,
    /// How many there have ever been.
    count: u64,
    /// Nobody reads any more.
    is_over: bool,
}

#[derive(Debug, Clone, Copy)]
struct Reads {
    only_headers: bool,
    joins: bool,
    has_times: bool,
}

/// Whoever wants all that has arrived asks for a round, in which the reader empties the socket.
#[derive(Debug, Default)]
struct Rounds {
    asked: AtomicU64,
    done: Mutex<u64>,
    is_done: Condvar,
}

/// One stream's place at the socket. What its peer sends goes nowhere once it is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    sorter: Arc<Sorter>,
    peer: SocketAddr,
    route: Route,
    mailbox: Arc<Mailbox>,
    is_patient: AtomicBool,
    /// The lowest that was free, from zero.
    place: usize,
    /// How many had come with it, and whether nobody else was there then.
    number: u64,
    is_first: bool,
    /// What the socket had dropped before it came.
    socket_drops: Option<u64>,
}

impl Sorter {
    /// Reads this bound socket from now on, until it is closed and the last stream has gone. `greet` gets
    /// what may be a greeting.
    pub(super) fn open(
        socket: Socket,
        greet: impl Fn(&[u8], Arrived) + Send + 'static,
    ) -> io::Result<Arc<Self>> {
        Self::open_with(socket, !sys::SKIPS_RX_COPY, greet)
    }

    /// The same; with `joins` the kernel joins datagrams if it can.
    fn open_with(
        socket: Socket,
        joins: bool,
        greet: impl Fn(&[u8], Arrived) + Send + 'static,
    ) -> io::Result<Arc<Self>> {
        let socket = Arc::new(socket);
        let joined = joins.then(|| Incoming::joined(&socket, 0)).and_then(Result::ok);
        let joins = joined.is_some();
        let incoming = joined.unwrap_or_else(Incoming::greetings).timed(&socket);
        let reads =
            Reads { only_headers: incoming.only_headers(), joins, has_times: incoming.has_times() };
        let channel = Channel::unconnected(socket.clone(), None)?;
        let sorter = Arc::new(Self {
            socket,
            clock: Clock::new(),
            seats: Mutex::default(),
            wake: Wake::new()?,
            is_open: AtomicBool::new(true),
            patient: AtomicUsize::new(0),
            rounds: Rounds::default(),
            cpu_ns: AtomicU64::new(0),
            queued_ns: AtomicU64::new(0),
            reads,
        });
        let reader = Reader {
            sorter: sorter.clone(),
            channel,
            incoming,
            call: 0,
            bundle: Bundle::default(),
        };
        let thread = std::thread::Builder::new().name("udp-port".into());
        thread.spawn(move || reader.run(greet))?;
        Ok(sorter)
    }

    /// The socket.
    pub(super) fn socket(&self) -> &Arc<Socket> {
        &self.socket
    }

    /// Lets no new stream come; the socket is closed when the last has gone.
    pub(super) fn close(&self) {
        self.is_open.store(false, Ordering::Release);
        self.wake.wake();
    }

    /// A place for the peer at this canonical address, with room for so many datagrams of so many bytes.
    /// Another of the same peer gets nothing more.
    ///
    /// # Errors
    /// When the socket is closed, or the system gives no wake.
    pub(super) fn seat(
        self: &Arc<Self>,
        peer: SocketAddr,
        route: Route,
        (most, datagram_bytes): (usize, usize),
    ) -> io::Result<Seat> {
        let mailbox = Arc::new(Mailbox::new(most, datagram_bytes, Arc::new(Wake::new()?)));
        let socket_drops = sys::socket_drops(&self.socket);
        let mut seats = self.seats();
        if seats.is_over {
            return Err(io::ErrorKind::NotConnected.into());
        }
        seats.count += 1;
        let place = seats.take_place();
        let (number, is_first) = (seats.count, seats.by_peer.is_empty());
        seats.by_peer.insert(peer, mailbox.clone());
        drop(seats);
        let is_patient = AtomicBool::new(false);
        let sorter = self.clone();
        Ok(Seat { sorter, peer, route, mailbox, is_patient, place, number, is_first, socket_drops })
    }

    /// Whether no stream is there.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.seats().by_peer.is_empty()
    }

    /// Whether the thread that reads has nothing more to do.
    fn is_over(&self) -> bool {
        if self.is_open.load(Ordering::Acquire) {
            return false;
        }
        let mut seats = self.seats();
        seats.is_over = seats.by_peer.is_empty();
        seats.is_over
    }

    fn seats(&self) -> MutexGuard<'_, Seats> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat {
    pub(super) fn socket(&self) -> &Arc<Socket> {
        &self.sorter.socket
    }

    /// A number that tells the streams of the socket apart, which the first has from the system.
    pub(super) fn socket_number(&self) -> i32 {
        let place = i32::try_from(self.place).unwrap_or(i32::MAX);
        sys::socket_number(self.socket()).saturating_add(place)
    }

    /// The way to the peer.
    pub(super) fn route(&self) -> &Route {
        &self.route
    }

    pub(super) fn mailbox(&self) -> &Mailbox {
        &self.mailbox
    }

    /// The clock of the times in the mailbox.
    pub(super) fn clock(&self) -> Clock {
        self.sorter.clock
    }

    /// Datagrams of one row may share a time of arrival.
    pub(super) fn joins(&self) -> bool {
        self.sorter.reads.joins
    }

    /// The datagrams of this stream may wait a little for each other.
    pub(super) fn be_patient(&self) {
        if !self.is_patient.swap(true, Ordering::Relaxed) {
            self.sorter.patient.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Has all that has arrived by now go to the mailbox; returns the number of the round.
    pub(super) fn gather(&self) -> u64 {
        let round = self.sorter.rounds.ask();
        self.sorter.wake.wake();
        round
    }

    /// Waits for the end of a round, but not for longer than that; returns whether it has ended.
    pub(super) fn has_gathered(&self, round: u64, timeout: Duration) -> bool {
        self.sorter.rounds.wait(round, timeout)
    }

    /// Datagrams that this host dropped: what the socket did is known where it dropped none, and where
    /// nobody else's can be among them.
    pub(super) fn drops(&self) -> Option<u64> {
        let dropped = self.mailbox.dropped();
        let was_alone = || self.is_first && self.sorter.seats().count == self.number;
        let grown = sys::socket_drops(self.socket())
            .zip(self.socket_drops)
            .map(|(last, first)| last.saturating_sub(first))
            .filter(|&grown| grown == 0 || was_alone());
        grown.map(|grown| grown + dropped).or((dropped > 0).then_some(dropped))
    }

    /// For how long the thread that reads the socket has run, and could have run and had no CPU; zero where
    /// the system does not tell.
    pub(super) fn reader_ns(&self) -> (u64, u64) {
        let Sorter { cpu_ns, queued_ns, .. } = &*self.sorter;
        (cpu_ns.load(Ordering::Relaxed), queued_ns.load(Ordering::Relaxed))
    }

    pub(super) fn engine(&self, joins_arrivals: bool) -> Engine {
        let Reads { only_headers, has_times, .. } = self.sorter.reads;
        let (row, call) = self.mailbox.rows();
        Engine::DatagramsReceived {
            row,
            call,
            only_headers,
            shares_arrivals: joins_arrivals,
            kernel_times: has_times,
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if *self.is_patient.get_mut() {
            self.sorter.patient.fetch_sub(1, Ordering::Relaxed);
        }
        let mut seats = self.sorter.seats();
        if seats.by_peer.get(&self.peer).is_some_and(|found| Arc::ptr_eq(found, &self.mailbox)) {
            seats.by_peer.remove(&self.peer);
        }
        seats.places[self.place] = false;
        drop(seats);
        self.sorter.wake.wake();
    }
}

impl Seats {
    fn take_place(&mut self) -> usize {
        let free = self.places.iter().position(|is_taken| !is_taken);
        let place = free.unwrap_or_else(|| {
            self.places.push(false);
            self.places.len() - 1
        });
        self.places[place] = true;
        place
    }
}

impl Rounds {
    fn ask(&self) -> u64 {
        self.asked.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// The last that was asked for.
    fn asked(&self) -> u64 {
        self.asked.load(Ordering::Acquire)
    }

    /// All that had arrived when this was the last one is in the mailboxes.
    fn finish(&self, number: u64) {
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        if *done < number {
            *done = number;
            self.is_done.notify_all();
        }
    }

    fn wait(&self, number: u64, timeout: Duration) -> bool {
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.is_done.wait_timeout_while(done, timeout, |done| *done < number);
        *waited.unwrap_or_else(PoisonError::into_inner).0 >= number
    }
}

/// The thread that reads the socket.
struct Reader {
    sorter: Arc<Sorter>,
    channel: Channel,
    incoming: Incoming,
    /// The number of the last call.
    call: u64,
    bundle: Bundle,
}

/// Datagrams of one sender on their way to its mailbox.
#[derive(Default)]
struct Bundle {
    from: Option<SocketAddr>,
    mailbox: Option<Arc<Mailbox>>,
    letters: Vec<Letter>,
    /// Most of them that the kernel had joined.
    joined: u32,
}

impl Reader {
    fn run(mut self, greet: impl Fn(&[u8], Arrived)) {
        sys::prepare_thread();
        let sorter = self.sorter.clone();
        let room = sorter.socket.recv_buffer_size().unwrap_or(0) as u64 / SPARED;
        let mut rests = Rests::new(sorter.clock.now(), room);
        let times = ThreadTimes::of_this_thread();
        let mut look_due = Instant::ZERO;
        while !sorter.is_over() {
            let now = sorter.clock.now();
            if now >= look_due {
                look_due = now + LOOK_INTERVAL;
                sorter.cpu_ns.store(times.cpu_ns().unwrap_or(0), Ordering::Relaxed);
                sorter.queued_ns.store(times.queued_ns().unwrap_or(0), Ordering::Relaxed);
            }
            let (round, held) = (sorter.rounds.asked(), self.incoming.held_bytes());
            let error = self.read(&greet, held);
            match error.as_ref().map(|error| remedy(Protocol::Udp, error)) {
                None => sorter.rounds.finish(round),
                Some(Remedy::Wait) => {
                    sorter.rounds.finish(round);
                    let came = self.incoming.held_bytes();
                    let rest = rests.after(sorter.clock.now(), came);
                    self.pass_time(rest, came == held);
                }
                Some(Remedy::Again) => sys::forget_errors(&sorter.socket),
                // Nothing that a port is told ends it, but it must not spin on an error that stays.
                Some(Remedy::Pause(_) | Remedy::GiveUp) => {
                    sys::forget_errors(&sorter.socket);
                    self.wait(Interest::Nothing, Some(PAUSE));
                }
            }
        }
    }

    /// Leaves the empty socket alone for a while, if somebody's datagrams may wait that long, or until more
    /// has come.
    fn pass_time(&self, rest: Option<Duration>, is_idle: bool) {
        let Sorter { reads, patient, socket, .. } = &*self.sorter;
        let may_rest = reads.has_times && patient.load(Ordering::Relaxed) > 0;
        if let Some(rest) = rest.filter(|_| may_rest) {
            return self.channel.rest(rest);
        }
        if is_idle {
            // What the network said may be all that ended the last wait.
            sys::forget_errors(socket);
        }
        self.wait(Interest::Read, None);
    }

    /// Sorts what is there, until there is an error; or as much as the socket can have held when `held`
    /// bytes had been in it, of a flood that does not end.
    fn read(&mut self, greet: &impl Fn(&[u8], Arrived), held: u64) -> Option<io::Error> {
        let most = 2 * self.sorter.socket.recv_buffer_size().unwrap_or(0) as u64;
        while self.incoming.held_bytes() - held <= most {
            if let Err(error) = self.sort(greet) {
                return Some(error);
            }
        }
        None
    }

    /// Sorts what one call brings.
    fn sort(&mut self, greet: &impl Fn(&[u8], Arrived)) -> io::Result<()> {
        let Self { sorter, channel, incoming, call, bundle } = self;
        *call += 1;
        incoming.receive(channel, sorter.clock, |message| {
            let Some(from) = message.from else { return };
            if bundle.from != Some(from) {
                bundle.deliver(*call);
                bundle.from = Some(from);
                bundle.mailbox = sorter.seats().by_peer.get(&canonical(from)).cloned();
            }
            let before = bundle.letters.len();
            let usual = bundle.mailbox.as_ref().map_or(0, |mailbox| mailbox.datagram_bytes());
            each_datagram(message, usual, |bytes, len| {
                if bundle.mailbox.is_some() && NamedGreeting::of_hello(bytes).is_none() {
                    let Message { arrived, is_new_time, .. } = *message;
                    bundle.letters.push(Letter::new(arrived, is_new_time, bytes, len));
                } else if sorter.is_open.load(Ordering::Acquire) {
                    greet(bytes, Arrived { len: bytes.len(), from, to: message.to });
                }
            });
            bundle.joined = bundle.joined.max((bundle.letters.len() - before) as u32);
        })?;
        bundle.deliver(*call);
        Ok(())
    }

    fn wait(&self, interest: Interest, timeout: Option<Duration>) {
        if self.channel.wait(interest, &self.sorter.wake, timeout).is_err() {
            std::thread::sleep(PAUSE);
        }
    }
}

impl Bundle {
    /// Brings them there; who sent them is found anew for what comes next.
    fn deliver(&mut self, call: u64) {
        if let Some(mailbox) = self.mailbox.take().filter(|_| !self.letters.is_empty()) {
            mailbox.put(call, self.joined, &self.letters);
        }
        self.letters.clear();
        (self.from, self.joined) = (None, 0);
    }
}

/// What is known of each datagram of a message, and its length; the stream's have usually so many bytes.
fn each_datagram(message: &Message<'_>, usual: usize, mut take: impl FnMut(&[u8], usize)) {
    if message.bytes.len() < message.len || message.len == 0 {
        return take(message.bytes, message.len);
    }
    let each = bytes_of_each(message.datagram_bytes, message.len, usual);
    message.bytes.chunks(each).for_each(|bytes| take(bytes, bytes.len()));
}

/// How long the port is left alone after an error that may stay.
const PAUSE: Duration = Duration::from_millis(1);

#[cfg(test)]
#[path = "sorter_tests.rs"]
mod tests;
