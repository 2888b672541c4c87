//! Waiting: for operations to end, for an order, for a time, as exactly as the system can.

use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::ptr::null;
use std::time::Duration;

use windows_sys::Win32::Foundation::{HANDLE, WAIT_FAILED};
use windows_sys::Win32::System::Threading::{
    CREATE_WAITABLE_TIMER_HIGH_RESOLUTION, CreateEventW, CreateWaitableTimerExW, INFINITE,
    SetEvent, SetWaitableTimer, TIMER_ALL_ACCESS, WaitForMultipleObjects,
};

/// What to wait for on a socket; a failed socket ends every wait but `Nothing`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// Data, or the end of it.
    Read,
    /// Room for another operation.
    Write,
    /// The wake or the time only.
    Nothing,
}

/// Ends a wait.
#[derive(Debug)]
pub struct Wake(Event);

impl Wake {
    /// A wake that has not been used.
    ///
    /// # Errors
    /// When the system gives no event.
    pub fn new() -> io::Result<Self> {
        Event::new().map(Self)
    }

    /// Ends the current or the next wait with it.
    pub fn wake(&self) {
        self.0.set();
    }

    pub(crate) fn event(&self) -> &Event {
        &self.0
    }
}

/// An event that is over with the first wait that it ends.
#[derive(Debug)]
pub(crate) struct Event(OwnedHandle);

impl Event {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: no pointers but nulls, which stand for defaults.
        owned(unsafe { CreateEventW(null(), 0, 0, null()) }).map(Self)
    }

    fn set(&self) {
        // SAFETY: the handle is an open event. There is nobody to tell of a failure.
        unsafe { SetEvent(self.raw()) };
    }

    /// The handle, for operations and waits; it lives as long as this.
    pub(crate) fn raw(&self) -> HANDLE {
        self.0.as_raw_handle()
    }
}

/// A timer that can be set to a time from now, in steps of 100 nanoseconds.
#[derive(Debug)]
pub(crate) struct Timer(OwnedHandle);

impl Timer {
    /// One of high resolution since Windows 10 1803; before, it is late by up to a tick of 15.6 ms.
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: no pointers but nulls, which stand for defaults.
        let create = |flags| {
            owned(unsafe { CreateWaitableTimerExW(null(), null(), flags, TIMER_ALL_ACCESS) })
        };
        create(CREATE_WAITABLE_TIMER_HIGH_RESOLUTION).or_else(|_| create(0)).map(Self)
    }

    /// It is signalled after this time, and not before.
    fn set(&self, time: Duration) -> io::Result<()> {
        let steps = i64::try_from(time.as_nanos().div_ceil(100)).unwrap_or(i64::MAX);
        // Negative numbers count from now.
        let due = -steps;
        // SAFETY: the handle is an open timer, and `due` lives through the call.
        let is_set =
            unsafe { SetWaitableTimer(self.0.as_raw_handle(), &raw const due, 0, None, null(), 0) };
        if is_set == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

/// Blocks until one of the events is set or the time is over.
///
/// # Errors
/// When the system refuses to wait.
pub(crate) fn wait_for(
    events: &[&Event],
    timer: &Timer,
    timeout: Option<Duration>,
) -> io::Result<()> {
    let mut handles = [std::ptr::null_mut(); MOST_EVENTS + 1];
    let mut count = 0;
    for event in &events[..events.len().min(MOST_EVENTS)] {
        handles[count] = event.raw();
        count += 1;
    }
    if let Some(time) = timeout.filter(|time| !time.is_zero()) {
        timer.set(time)?;
        handles[count] = timer.0.as_raw_handle();
        count += 1;
    }
    let millis = if timeout.is_some_and(|time| time.is_zero()) { 0 } else { INFINITE };
    if count == 0 {
        return Ok(());
    }
    // SAFETY: as many open handles as the number says, none of them twice.
    match unsafe { WaitForMultipleObjects(count as u32, handles.as_ptr(), 0, millis) } {
        WAIT_FAILED => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

fn owned(handle: HANDLE) -> io::Result<OwnedHandle> {
    if handle.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the handle was made by the caller's call and belongs to nobody else.
    Ok(unsafe { OwnedHandle::from_raw_handle(handle) })
}

const MOST_EVENTS: usize = 2;

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_wake_ends_one_wait() {
        let (wake, timer) = (Wake::new().unwrap(), Timer::new().unwrap());
        wake.wake();
        wake.wake();
        wait_for(&[wake.event()], &timer, None).unwrap();
        let (began, time) = (Instant::now(), Duration::from_millis(5));
        wait_for(&[wake.event()], &timer, Some(time)).unwrap();
        assert!(began.elapsed() >= time);
    }

    #[test]
    fn no_time_is_no_wait() {
        let (wake, timer) = (Wake::new().unwrap(), Timer::new().unwrap());
        wait_for(&[wake.event()], &timer, Some(Duration::ZERO)).unwrap();
        wait_for(&[], &timer, Some(Duration::from_micros(300))).unwrap();
    }
}
