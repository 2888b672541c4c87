//! How many tests each address had in its hour. An hour begins with the first test of an address, so
//! that books end in the order in which they began; of too many the oldest is closed early.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// The open books.
#[derive(Debug, Default)]
pub(super) struct HourBooks {
    books: HashMap<IpAddr, Book>,
    /// In the order of their beginning.
    owners: VecDeque<IpAddr>,
}

#[derive(Debug)]
struct Book {
    began: Instant,
    tests: u32,
}

impl HourBooks {
    /// How many seconds the owner has to wait for its next test, if it may have `most` in an hour.
    pub(super) fn wait(&self, owner: IpAddr, most: u32, now: Instant) -> Option<u32> {
        let book = self.books.get(&owner).filter(|book| book.tests >= most)?;
        let left = HOUR.checked_sub(now.saturating_duration_since(book.began))?;
        (!left.is_zero()).then(|| left.as_secs_f64().ceil() as u32)
    }

    /// Notes a test.
    pub(super) fn count(&mut self, owner: IpAddr, now: Instant) {
        self.close_old(now);
        if let Some(book) = self.books.get_mut(&owner) {
            book.tests += 1;
            return;
        }
        if self.owners.len() >= MOST {
            self.close_first();
        }
        self.owners.push_back(owner);
        self.books.insert(owner, Book { began: now, tests: 1 });
    }

    fn close_old(&mut self, now: Instant) {
        while let Some(book) = self.owners.front().and_then(|owner| self.books.get(owner))
            && now.saturating_duration_since(book.began) >= HOUR
        {
            self.close_first();
        }
    }

    fn close_first(&mut self) {
        if let Some(owner) = self.owners.pop_front() {
            self.books.remove(&owner);
        }
    }
}

const HOUR: Duration = Duration::from_secs(3600);
/// Open books: some 5 MB at most.
const MOST: usize = 65_536;

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u32) -> IpAddr {
        std::net::Ipv4Addr::from_bits(number).into()
    }

    #[test]
    fn an_hour_begins_with_the_first_test() {
        let began = Instant::now();
        let at = |secs| began + Duration::from_secs(secs);
        let mut books = HourBooks::default();
        assert_eq!(books.wait(address(1), 2, at(0)), None);
        books.count(address(1), at(0));
        assert_eq!(books.wait(address(1), 2, at(3000)), None);
        books.count(address(1), at(3000));
        assert_eq!(books.wait(address(1), 2, at(3000)), Some(600));
        assert_eq!(books.wait(address(2), 2, at(3000)), None);
        assert_eq!(books.wait(address(1), 2, at(3599)), Some(1));
        assert_eq!(books.wait(address(1), 2, at(3600)), None);
        books.count(address(1), at(3600));
        assert_eq!(books.wait(address(1), 2, at(3600)), None, "a new hour");
        assert_eq!((books.books.len(), books.owners.len()), (1, 1));
    }

    #[test]
    fn books_are_bounded() {
        let now = Instant::now();
        let mut books = HourBooks::default();
        for number in 0..MOST as u32 + 10 {
            books.count(address(number), now);
        }
        assert_eq!((books.books.len(), books.owners.len()), (MOST, MOST));
        assert_eq!(books.wait(address(9), 1, now), None, "the oldest had to go");
        assert_eq!(books.wait(address(10), 1, now), Some(3600));
        books.count(address(1), now + HOUR);
        assert_eq!((books.books.len(), books.owners.len()), (1, 1), "all others are over");
    }
}
