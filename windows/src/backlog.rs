//! How much may be under way on a byte stream: what counts as sent runs ahead of what has left by as much.
//! Little on a slow path, so that the counts stay true there, and enough on a fast or a long one.

use std::time::{Duration, Instant};

/// The bound, which follows what the path takes.
#[derive(Debug)]
pub(crate) struct Backlog {
    since: Instant,
    /// Bytes that had been sent then.
    sent: u64,
    most: u64,
}

impl Backlog {
    pub(crate) fn new(now: Instant) -> Self {
        Self { since: now, sent: 0, most: LEAST }
    }

    /// Bytes that may follow those that are under way; none if it would be few.
    pub(crate) fn room(&self, pending: u64) -> Option<usize> {
        let room = self.most.saturating_sub(pending);
        usize::try_from(room).ok().filter(|_| room >= LEAST / 4)
    }

    /// Moves the bound if it is time to, when so many bytes have been sent in all; `ideal` asks the system
    /// how much the path holds, if it tells.
    pub(crate) fn adapt(&mut self, now: Instant, sent: u64, ideal: impl FnOnce() -> Option<u64>) {
        let passed = now - self.since;
        if passed < WINDOW {
            return;
        }
        let in_a_window = u128::from(sent - self.sent) * WINDOW.as_nanos() / passed.as_nanos();
        let in_a_window = u64::try_from(in_a_window).unwrap_or(u64::MAX);
        let on_the_path = ideal().unwrap_or(0).saturating_mul(2);
        self.most = in_a_window.max(on_the_path).clamp(LEAST, MOST);
        (self.since, self.sent) = (now, sent);
    }
}

/// Two of the usual blocks.
const LEAST: u64 = 256 << 10;
/// As many large operations as there are.
const MOST: u64 = 16 << 20;
/// How far the counts may run ahead of a path whose content nobody tells.
const WINDOW: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    /// The bound after so many windows of this rate, bytes a second, on a path that holds so much.
    fn bound(bytes_per_sec: u64, ideal: Option<u64>) -> u64 {
        let mut now = Instant::now();
        let mut backlog = Backlog::new(now);
        for window in 1..10 {
            now += WINDOW;
            backlog.adapt(now, window * bytes_per_sec / 50, || ideal);
        }
        backlog.room(0).unwrap() as u64
    }

    #[test]
    fn a_slow_path_has_little_under_way_and_a_fast_or_long_one_much() {
        assert_eq!(bound(1_250_000, None), LEAST, "10 Mbit/s");
        assert_eq!(bound(125_000_000, None), 2_500_000, "1 Gbit/s: 20 ms");
        assert_eq!(bound(5_000_000_000, None), MOST, "40 Gbit/s");
        assert_eq!(bound(1_250_000, Some(4_000_000)), 8_000_000, "the path holds 4 MB");
    }

    #[test]
    fn the_system_is_asked_once_a_window() {
        let now = Instant::now();
        let mut backlog = Backlog::new(now);
        backlog.adapt(now + WINDOW / 2, 0, || unreachable!("too early"));
        let mut asked = 0;
        for half in 2..6 {
            backlog.adapt(now + WINDOW / 2 * half, 0, || {
                asked += 1;
                None
            });
        }
        assert_eq!(asked, 2);
    }

    #[test]
    fn a_pause_ends_in_the_least_bound() {
        let now = Instant::now();
        let mut backlog = Backlog::new(now);
        let sent = 1 << 30;
        backlog.adapt(now + WINDOW, sent, || None);
        assert_eq!(backlog.room(0), Some(MOST as usize));
        backlog.adapt(now + 100 * WINDOW, sent, || None);
        assert_eq!(backlog.room(0), Some(LEAST as usize));
    }

    #[test]
    fn there_is_room_for_more_than_crumbs_or_none() {
        let backlog = Backlog::new(Instant::now());
        let rooms = [0, LEAST / 2, LEAST - LEAST / 4 + 1, LEAST, 2 * LEAST]
            .map(|pending| backlog.room(pending));
        assert_eq!(rooms, [Some(256 << 10), Some(128 << 10), None, None, None]);
    }
}
