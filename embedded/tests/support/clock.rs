//! embassy-time's clock, at a stand until it is told to go on. Every thread has its own, so that tests
//! beside each other do not share one.

use std::cell::RefCell;
use std::task::Waker;

/// Lets the clock go on to when the next alarm is due, and wakes whoever asked for it. `false` if nobody
/// did.
pub(crate) fn advance() -> bool {
    let next = CLOCK.with_borrow(|clock| clock.alarms.iter().map(|(at, _)| *at).min());
    let Some(next) = next else { return false };
    let due: Vec<(u64, Waker)> = CLOCK.with_borrow_mut(|clock| {
        clock.now = next;
        clock.alarms.extract_if(.., |(at, _)| *at <= next).collect()
    });
    due.into_iter().for_each(|(_, waker)| waker.wake());
    true
}

/// Microseconds since the thread began.
pub(crate) fn now() -> u64 {
    CLOCK.with_borrow(|clock| clock.now)
}

#[derive(Debug)]
struct Clock {
    now: u64,
    alarms: Vec<(u64, Waker)>,
}

thread_local! {
    static CLOCK: RefCell<Clock> = const { RefCell::new(Clock { now: 1_000_000, alarms: Vec::new() }) };
}

#[derive(Debug)]
struct Driver;

impl embassy_time_driver::Driver for Driver {
    fn now(&self) -> u64 {
        now()
    }

    /// As on chips, a task has one alarm, and the earliest counts.
    fn schedule_wake(&self, at: u64, waker: &Waker) {
        CLOCK.with_borrow_mut(|clock| {
            if at <= clock.now {
                waker.wake_by_ref();
                return;
            }
            match clock.alarms.iter_mut().find(|(_, other)| other.will_wake(waker)) {
                Some((earliest, _)) => *earliest = at.min(*earliest),
                None => clock.alarms.push((at, waker.clone())),
            }
        });
    }
}

embassy_time_driver::time_driver_impl!(static DRIVER: Driver = Driver);
