//! Many independent cases at once, but only as many as a small machine can run without the cases
//! disturbing each other's timing.

use std::sync::{Condvar, Mutex};

/// Runs every row, a few at a time across all tests of this process, and fails once with all rows
/// that failed. With `LINERATE_LONG` each row runs several times, which finds what fails seldom.
///
/// # Panics
///
/// When any row fails; the message has each with its name.
pub fn run_all<R: Sync>(rows: &[R], one: impl Fn(&R) -> Result<(), String> + Sync) {
    let rounds = if std::env::var_os("LINERATE_LONG").is_some() { 5 } else { 1 };
    let failures: Vec<String> = std::thread::scope(|scope| {
        let one = &one;
        let running: Vec<_> = (0..rounds)
            .flat_map(|_| rows)
            .map(|row| scope.spawn(move || in_turn(|| one(row))))
            .collect();
        running
            .into_iter()
            .filter_map(|row| match row.join() {
                Ok(outcome) => outcome.err(),
                Err(panic) => Some(text_of(panic.as_ref())),
            })
            .collect()
    });
    let (failed, all) = (failures.len(), rows.len() * rounds);
    assert!(failures.is_empty(), "{failed} of {all} rows failed:\n\n{}", failures.join("\n\n"));
}

/// Does something while holding one of the few places.
fn in_turn<T>(work: impl FnOnce() -> T) -> T {
    let _place = Place::take();
    work()
}

struct Place;

impl Place {
    fn take() -> Self {
        let free = FREE.lock().unwrap_or_else(|e| e.into_inner());
        let mut free = FREED.wait_while(free, |free| *free == 0).unwrap_or_else(|e| e.into_inner());
        *free -= 1;
        Self
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        *FREE.lock().unwrap_or_else(|e| e.into_inner()) += 1;
        FREED.notify_one();
    }
}

fn text_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a row panicked").to_owned()
}

static FREE: Mutex<u32> = Mutex::new(3);
static FREED: Condvar = Condvar::new();
