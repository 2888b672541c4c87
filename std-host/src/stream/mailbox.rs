//! What has come for one stream at a socket that all streams share: of each datagram its beginning, its
//! length and its time. Whoever reads the socket puts it in, a few at a time; the stream's thread takes
//! all at once, by an exchange of vectors, so that nothing is allocated once both are large enough. What
//! finds no room is dropped by this host, and counted.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use linerate_core::time::Instant;

use super::datagrams::START_BYTES;
use crate::sys::Wake;

/// A stream's mailbox.
#[derive(Debug)]
pub(super) struct Mailbox {
    inside: Mutex<Inside>,
    /// Bytes that each of its datagrams should have.
    datagram_bytes: usize,
    wake: Arc<Wake>,
}

#[derive(Debug)]
struct Inside {
    letters: Vec<Letter>,
    /// As many find room.
    most: usize,
    /// Nobody takes any more.
    is_closed: bool,
    dropped: u64,
    /// The stream's thread waits for some.
    is_awaited: bool,
    /// The last call that brought some, and how many it has brought.
    call: u64,
    of_call: u32,
    /// Most that one call brought, and that the kernel had joined.
    most_of_call: u32,
    longest: u32,
}

/// A datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Letter {
    pub(super) arrived: Instant,
    /// That is not to be compared with the times of earlier ones.
    pub(super) is_new_time: bool,
    /// Bytes of all of it.
    pub(super) len: u32,
    /// Its first bytes; those behind its end say nothing.
    start: [u8; START_BYTES],
}

impl Letter {
    /// A datagram of so many bytes, of which these are the first.
    pub(super) fn new(arrived: Instant, is_new_time: bool, bytes: &[u8], len: usize) -> Self {
        let mut start = [0; START_BYTES];
        let known = bytes.len().min(START_BYTES);
        start[..known].copy_from_slice(&bytes[..known]);
        Self { arrived, is_new_time, len: u32::try_from(len).unwrap_or(u32::MAX), start }
    }

    /// What is known of its bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.start[..START_BYTES.min(self.len as usize)]
    }
}

impl Mailbox {
    /// One with room for so many datagrams of so many bytes; `wake` wakes the thread that takes them.
    pub(super) fn new(most: usize, datagram_bytes: usize, wake: Arc<Wake>) -> Self {
        let inside = Inside {
            letters: Vec::new(),
            most,
            is_closed: false,
            dropped: 0,
            is_awaited: false,
            call: 0,
            of_call: 0,
            most_of_call: 0,
            longest: 0,
        };
        Self { inside: Mutex::new(inside), datagram_bytes, wake }
    }

    /// Bytes that each of its datagrams should have.
    pub(super) const fn datagram_bytes(&self) -> usize {
        self.datagram_bytes
    }

    /// What wakes the thread that takes the letters.
    pub(super) fn wake(&self) -> &Arc<Wake> {
        &self.wake
    }

    /// Puts in what the call with this number brought, or a part of that; so many of them were joined at
    /// most.
    pub(super) fn put(&self, call: u64, joined: u32, letters: &[Letter]) {
        let mut inside = self.inside();
        if inside.is_closed {
            return;
        }
        let room = inside.most - inside.letters.len();
        let (kept, dropped) = letters.split_at(room.min(letters.len()));
        inside.letters.extend_from_slice(kept);
        inside.dropped += dropped.len() as u64;
        if inside.call != call {
            (inside.call, inside.of_call) = (call, 0);
        }
        inside.of_call += letters.len() as u32;
        inside.most_of_call = inside.most_of_call.max(inside.of_call);
        inside.longest = inside.longest.max(joined);
        let is_awaited = std::mem::take(&mut inside.is_awaited);
        drop(inside);
        if is_awaited {
            self.wake.wake();
        }
    }

    /// Takes all in exchange for an empty vector.
    pub(super) fn take(&self, letters: &mut Vec<Letter>) {
        letters.clear();
        std::mem::swap(&mut self.inside().letters, letters);
    }

    /// Whether there is nothing. If so, the next that comes wakes the thread.
    pub(super) fn awaits(&self) -> bool {
        let mut inside = self.inside();
        inside.is_awaited = inside.letters.is_empty();
        inside.is_awaited
    }

    /// Takes nothing in any more.
    pub(super) fn close(&self) {
        let mut inside = self.inside();
        inside.is_closed = true;
        inside.letters = Vec::new();
    }

    /// As many datagrams find room.
    pub(super) fn most(&self) -> usize {
        self.inside().most
    }

    /// Bytes of all the datagrams that are in it.
    pub(super) fn bytes(&self) -> u64 {
        self.inside().letters.iter().map(|letter| u64::from(letter.len)).sum()
    }

    /// Datagrams that found no room.
    pub(super) fn dropped(&self) -> u64 {
        self.inside().dropped
    }

    /// Most that the kernel had joined, and that one call brought.
    pub(super) fn rows(&self) -> (u32, u32) {
        let inside = self.inside();
        (inside.longest, inside.most_of_call)
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use socket2::{Domain, Socket, Type};

    use super::*;
    use crate::sys::{Channel, Interest};

    fn mailbox(most: usize) -> Mailbox {
        Mailbox::new(most, 1400, Arc::new(Wake::new().unwrap()))
    }

    fn letters(numbers: std::ops::Range<u64>) -> Vec<Letter> {
        let letter = |number: u64| {
            Letter::new(Instant::from_nanos(number), false, &number.to_be_bytes(), 1400)
        };
        numbers.map(letter).collect()
    }

    #[test]
    fn letters_come_out_once_and_in_order() {
        let mailbox = mailbox(100);
        let mut taken = Vec::new();
        mailbox.put(1, 1, &letters(0..3));
        mailbox.put(1, 1, &letters(3..4));
        assert_eq!(mailbox.bytes(), 4 * 1400);
        mailbox.take(&mut taken);
        assert_eq!(taken, letters(0..4));
        mailbox.put(2, 1, &letters(4..6));
        mailbox.take(&mut taken);
        assert_eq!(taken, letters(4..6));
        mailbox.take(&mut taken);
        assert_eq!((taken, mailbox.rows(), mailbox.dropped()), (vec![], (1, 4), 0));
    }

    #[test]
    fn what_finds_no_room_is_counted_and_the_rest_stays() {
        let mailbox = mailbox(5);
        let mut taken = Vec::new();
        for (call, numbers) in (0..).zip([0..4, 4..8, 8..10]) {
            mailbox.put(call, 1, &letters(numbers));
        }
        mailbox.take(&mut taken);
        assert_eq!((taken.as_slice(), mailbox.dropped()), (&letters(0..5)[..], 3 + 2));
        mailbox.put(3, 1, &letters(10..12));
        mailbox.take(&mut taken);
        assert_eq!((taken, mailbox.dropped()), (letters(10..12), 5));
    }

    #[test]
    fn two_vectors_go_to_and_fro() {
        let mailbox = mailbox(1000);
        let mut taken = Vec::new();
        let mut places = Vec::new();
        for call in 0..6 {
            mailbox.put(call, 1, &letters(0..700));
            mailbox.take(&mut taken);
            places.push((taken.as_ptr(), taken.capacity()));
        }
        assert_eq!((places[2], places[3]), (places[4], places[5]), "nothing is allocated anew");
    }

    #[test]
    fn a_closed_one_takes_nothing_and_counts_nothing() {
        let mailbox = mailbox(2);
        mailbox.put(0, 1, &letters(0..1));
        mailbox.close();
        mailbox.put(1, 1, &letters(0..9));
        let mut taken = letters(0..1);
        mailbox.take(&mut taken);
        assert_eq!((taken, mailbox.dropped()), (vec![], 0));
    }

    #[test]
    fn who_waits_is_woken_and_nobody_else() {
        let mailbox = mailbox(10);
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
        let channel = Channel::new(socket.into()).unwrap();
        let waits = |time| {
            let begin = std::time::Instant::now();
            channel.wait(Interest::Nothing, mailbox.wake(), Some(time)).unwrap();
            begin.elapsed() >= time
        };
        let moment = Duration::from_millis(10);
        mailbox.put(0, 1, &letters(0..1));
        assert!(waits(moment), "nobody waited");
        assert!(!mailbox.awaits(), "there is something");
        mailbox.take(&mut Vec::new());
        assert!(mailbox.awaits());
        mailbox.put(1, 1, &letters(0..1));
        assert!(!waits(Duration::from_secs(30)));
        mailbox.put(1, 1, &letters(0..1));
        assert!(waits(moment), "once is enough");
    }

    #[test]
    fn a_letter_has_no_more_bytes_than_its_datagram() {
        for (bytes, len) in [(0, 0), (4, 4), (24, 24), (24, 9000), (49, 9000)] {
            let letter = Letter::new(Instant::ZERO, false, &vec![7; bytes], len);
            assert_eq!(letter.bytes(), vec![7; bytes.min(24)], "{len}");
        }
    }
}
