//! The thread that carries frames between two TAP devices: it reads what either network sends, asks
//! the model of that direction when it arrives, and hands it to the other network at that time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, ErrorKind, PipeReader, Read, Write};
use std::num::NonZeroU64;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time;

use linerate_core::time::{Instant, NANOS_PER_SEC};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::model::{Link, LinkCounts, LinkModel};
use super::noise::{Samples, Spread};
use super::trace::Trace;

/// What a shovel is told to do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Orders {
    /// From the first device to the second, and back.
    pub(super) models: [LinkModel; 2],
    pub(super) seed: u64,
    /// Shorter frames only take the latency, and are not traced.
    pub(super) data_from_bytes: usize,
    /// They come so much later, each way.
    pub(super) later_ns: [u64; 2],
    /// Neither are longer ones that are no datagrams of UDP.
    pub(super) only_udp: bool,
    /// Frames of data that are lost at the start, each way.
    pub(super) first_lost: [u64; 2],
}

/// What others see of a shovel at work.
#[derive(Debug, Default)]
pub(super) struct Shared {
    is_cut: AtomicBool,
    seen: Mutex<Seen>,
}

/// What a shovel has done.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    pub(super) counts: [LinkCounts; 2],
    pub(super) traces: [Trace; 2],
    lateness: Samples,
}

/// The two devices and what is between them.
pub(super) struct Shovel {
    devices: [File; 2],
    links: [Link; 2],
    data_from_bytes: usize,
    later_ns: [u64; 2],
    only_udp: bool,
    first_lost: [u64; 2],
    shared: Arc<Shared>,
    /// Readable when it is time to stop.
    stop: PipeReader,
    clock: time::Instant,
    on_the_way: BinaryHeap<Reverse<Frame>>,
    frames: u64,
    buffer: Box<[u8]>,
}

/// Ordered by the time of arrival; those of the same time as they were sent.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Frame {
    arrives: Instant,
    number: u64,
    way: usize,
    /// Its place in the trace; none for what is not data.
    place: Option<u64>,
    entered: Instant,
    bytes: Rc<[u8]>,
}

impl Shared {
    /// From here on everything is lost, or not any more.
    pub(super) fn set_cut(&self, is_cut: bool) {
        self.is_cut.store(is_cut, Ordering::Relaxed);
    }

    pub(super) fn seen(&self) -> Seen {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().expect("nothing panics while it is held")
    }
}

impl Seen {
    /// How much later than the model said frames arrived.
    pub(super) fn lateness(&self) -> Spread {
        self.lateness.spread()
    }
}

impl Shovel {
    pub(super) fn new(
        devices: [File; 2],
        orders: &Orders,
        shared: Arc<Shared>,
        stop: PipeReader,
    ) -> Self {
        let mut seed = orders.seed;
        let links = orders.models.map(|model| {
            // The two directions must not have the same luck.
            seed = seed.wrapping_mul(2).wrapping_add(1);
            Link::new(model, seed)
        });
        Self {
            devices,
            links,
            data_from_bytes: orders.data_from_bytes,
            later_ns: orders.later_ns,
            only_udp: orders.only_udp,
            first_lost: orders.first_lost,
            shared,
            stop,
            clock: time::Instant::now(),
            on_the_way: BinaryHeap::new(),
            frames: 0,
            buffer: vec![0; MOST_BYTES].into(),
        }
    }

    /// Carries frames until it is told to stop.
    pub(super) fn run(mut self) -> io::Result<()> {
        // The usual slack of 50 microseconds would be most of the noise.
        rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
        loop {
            self.hand_over()?;
            let [there, back, stop] = self.wait()?;
            if stop {
                return Ok(());
            }
            for (way, is_readable) in [there, back].into_iter().enumerate() {
                if is_readable {
                    self.take_from(way)?;
                }
            }
        }
    }

    /// Waits for a frame, for the end, or until the next arrival; says which of the three files is
    /// readable.
    fn wait(&self) -> io::Result<[bool; 3]> {
        let timeout = self.on_the_way.peek().map(|Reverse(next)| {
            let ns = next.arrives.nanos_since(self.now());
            Timespec {
                tv_sec: (ns / NANOS_PER_SEC).cast_signed(),
                tv_nsec: (ns % NANOS_PER_SEC).cast_signed(),
            }
        });
        let [near, far] = &self.devices;
        let mut files = [
            PollFd::new(near, PollFlags::IN),
            PollFd::new(far, PollFlags::IN),
            PollFd::new(&self.stop, PollFlags::IN),
        ];
        match poll(&mut files, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {
                Ok(files.map(|file| !file.revents().is_empty()))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Takes what a network sends, but not so much that what is due waits for long.
    fn take_from(&mut self, way: usize) -> io::Result<()> {
        for _ in 0..FRAMES_A_TURN {
            let len = match (&self.devices[way]).read(&mut self.buffer) {
                Ok(len) => len,
                Err(error) if is_for_now(&error) => break,
                Err(error) => return Err(error),
            };
            self.put_on_the_way(way, len);
        }
        Ok(())
    }

    fn put_on_the_way(&mut self, way: usize, len: usize) {
        let now = self.now();
        let is_cut = self.shared.is_cut.load(Ordering::Relaxed);
        let is_data = len >= self.data_from_bytes && (!self.only_udp || is_udp(&self.buffer));
        let link = &mut self.links[way];
        let place = is_data.then(|| self.shared.lock().traces[way].send());
        let arrivals: Vec<Instant> = match is_data {
            _ if is_cut => Vec::new(),
            _ if place.is_some_and(|place| place <= self.first_lost[way]) => Vec::new(),
            true => link.send(now, len as u64).collect(),
            false => vec![now.plus_nanos(link.model().latency_ns + self.later_ns[way])],
        };
        let bytes = Rc::<[u8]>::from(&self.buffer[..len]);
        for arrives in arrivals {
            self.frames += 1;
            let (number, bytes) = (self.frames, Rc::clone(&bytes));
            self.on_the_way.push(Reverse(Frame {
                arrives,
                number,
                way,
                place,
                entered: now,
                bytes,
            }));
        }
        self.shared.lock().counts[way] = self.links[way].counts();
    }

    /// Gives every frame that is due to the network at its end.
    fn hand_over(&mut self) -> io::Result<()> {
        while let Some(Reverse(next)) = self.on_the_way.peek() {
            let now = self.now();
            if next.arrives > now {
                break;
            }
            let Some(Reverse(frame)) = self.on_the_way.pop() else { break };
            if self.shared.is_cut.load(Ordering::Relaxed) {
                continue;
            }
            match (&self.devices[1 - frame.way]).write(&frame.bytes) {
                Ok(_) => {}
                Err(error) if is_for_now(&error) => continue,
                Err(error) => return Err(error),
            }
            let mut seen = self.shared.lock();
            seen.lateness.record(now.nanos_since(frame.arrives));
            if let Some(place) = frame.place {
                seen.traces[frame.way].arrive(place, now.nanos_since(frame.entered));
            }
        }
        Ok(())
    }

    fn now(&self) -> Instant {
        let ns = self.clock.elapsed().as_nanos();
        Instant::from_nanos(u64::try_from(ns).expect("no test runs for centuries"))
    }
}

/// An Ethernet frame with a UDP datagram in IPv4 or in IPv6 without further headers.
fn is_udp(frame: &[u8]) -> bool {
    const UDP: u8 = 17;
    match (frame[12], frame[13]) {
        (0x08, 0x00) => frame[14 + 9] == UDP,
        (0x86, 0xdd) => frame[14 + 6] == UDP,
        _ => false,
    }
}

/// Nothing to read, no memory for it, or a device that is not up yet.
fn is_for_now(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
        || error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error())
}

/// No frame of a device with the usual 1500 bytes of packet is longer.
const MOST_BYTES: usize = 2048;
const FRAMES_A_TURN: usize = 32;
