//! embassy's executor on the board's own sleep, and embassy's clock on the board's. The executor that
//! embassy has for this core waits by an instruction that QEMU does not wait at.

use core::cell::RefCell;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::Waker;

use critical_section::Mutex;
use embassy_executor::{Spawner, raw};
use embassy_time_driver::Driver;
use embassy_time_queue_utils::Queue;
use static_cell::StaticCell;

use crate::{clock, lan9118, power};

/// Runs tasks for ever, `begin` with the first of them.
///
/// # Panics
///
/// When it is called twice.
pub fn run(begin: impl FnOnce(Spawner)) -> ! {
    static EXECUTOR: StaticCell<raw::Executor> = StaticCell::new();
    let executor: &'static raw::Executor = EXECUTOR.init(raw::Executor::new(core::ptr::null_mut()));
    begin(executor.spawner());
    loop {
        // SAFETY: only this loop polls it, and it does not call itself.
        unsafe { executor.poll() };
        power::sleep_unless(|| {
            lan9118::listen();
            IS_PENDING.swap(false, Ordering::Relaxed) || lan9118::is_frame_waiting()
        });
        lan9118::embassy::wake();
        TIME.wake_due();
    }
}

/// How tasks and wakers tell the executor that it has something to do.
#[unsafe(export_name = "__pender")]
fn pend(_context: *mut ()) {
    IS_PENDING.store(true, Ordering::Relaxed);
}

static IS_PENDING: AtomicBool = AtomicBool::new(false);

/// Who waits for which time.
struct Time(Mutex<RefCell<Queue>>);

impl Time {
    /// Wakes whose time has come, and sets the alarm for the next.
    fn wake_due(&self) {
        critical_section::with(|section| {
            let mut queue = self.0.borrow_ref_mut(section);
            let next = queue.next_expiration(clock::micros());
            clock::wake_at(next);
        });
    }
}

impl Driver for Time {
    fn now(&self) -> u64 {
        clock::micros()
    }

    fn schedule_wake(&self, at: u64, waker: &Waker) {
        critical_section::with(|section| {
            // The alarm is set before the next sleep.
            self.0.borrow_ref_mut(section).schedule_wake(at, waker);
        });
    }
}

embassy_time_driver::time_driver_impl!(static TIME: Time = Time(Mutex::new(RefCell::new(Queue::new()))));
