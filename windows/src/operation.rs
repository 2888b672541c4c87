//! One overlapped operation of Winsock at a time, with all that it works with in one place that does not
//! move until the system is done with it.

use std::io;
use std::ptr::{NonNull, addr_of, addr_of_mut};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

use windows_sys::Win32::Foundation::{
    ERROR_MR_MID_NOT_FOUND, FALSE, HANDLE, NTSTATUS, RtlNtStatusToDosError, STATUS_PENDING,
};
use windows_sys::Win32::Networking::WinSock::{
    SOCKET, SOCKET_ERROR, WSA_IO_INCOMPLETE, WSA_IO_PENDING, WSAEINVAL, WSAEMSGSIZE,
    WSAGetOverlappedResult,
};
use windows_sys::Win32::System::IO::{CancelIoEx, OVERLAPPED};
use windows_sys::Win32::System::Threading::WaitForSingleObject;

use crate::event::Event;
use crate::flight::{Ended, Slot};

/// What a call begins and what the system works with from then on.
///
/// # Safety
/// `begin` gives the system no pointers but to what the value owns or holds a share in, so that all of it
/// is there and untouched for as long as the value is neither moved nor used.
pub(crate) unsafe trait Call {
    /// Makes the call, and returns what it returned: `SOCKET_ERROR` or not.
    ///
    /// # Safety
    /// `record` is to be valid for the system's writes, and this value is to stay where it is, until the
    /// operation is over.
    unsafe fn begin(&mut self, socket: SOCKET, record: *mut OVERLAPPED) -> i32;

    /// Bytes that it has room for, if it receives: so many are there of a datagram that was cut.
    fn room(&self) -> Option<usize>;
}

/// A slot for one operation after the other on one socket.
#[derive(Debug)]
pub(crate) struct Operation<C> {
    socket: SOCKET,
    /// Set when an operation of this direction ends.
    ended: Arc<Event>,
    /// A call is in the place.
    is_under_way: bool,
    /// The call itself said that it cut a datagram: no more is to be heard of it.
    is_cut: bool,
    place: NonNull<Place<C>>,
}

/// What the system reads and writes.
struct Place<C> {
    record: OVERLAPPED,
    call: Option<C>,
}

// SAFETY: the place belongs to this value alone, and the operation is of the socket, not of a thread. (An
// operation ends early with the thread that began it, as if it were cancelled.)
unsafe impl<C: Send> Send for Operation<C> {}

impl<C> Operation<C> {
    /// The socket has to stay open for as long as this lives.
    pub(crate) fn new(socket: SOCKET, ended: Arc<Event>) -> Self {
        let place = Box::new(Place { record: OVERLAPPED::default(), call: None });
        let place = NonNull::from(Box::leak(place));
        Self { socket, ended, is_under_way: false, is_cut: false, place }
    }

    /// Whether the system is done with the operation.
    fn is_over(&self) -> bool {
        // SAFETY: the place lives as long as this value; the system may write the status meanwhile, which a
        // volatile read of an aligned word allows for.
        let status = unsafe { addr_of!((*self.place.as_ptr()).record.Internal).read_volatile() };
        // What the system wrote before the status is seen after it.
        fence(Ordering::Acquire);
        self.is_cut || status as i32 != STATUS_PENDING
    }

    /// Bytes of an operation that is over, or why it failed; `None` if it is not over after all.
    fn result(&self) -> Option<io::Result<usize>> {
        if self.is_cut {
            return Some(Err(io::Error::from_raw_os_error(WSAEMSGSIZE)));
        }
        let (mut bytes, mut flags) = (0, 0);
        // SAFETY: the record is that of an operation on this socket, and the system is done with it; both
        // numbers live through the call, which does not wait.
        let is_good = unsafe {
            let record = addr_of!((*self.place.as_ptr()).record);
            WSAGetOverlappedResult(self.socket, record, &raw mut bytes, FALSE, &raw mut flags)
        };
        if is_good != FALSE {
            return Some(Ok(bytes as usize));
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(WSA_IO_INCOMPLETE) => None,
            // Winsock says so of everything it has no number for, as what becomes of files.
            Some(WSAEINVAL) => Some(Err(self.cause().unwrap_or(error))),
            _ => Some(Err(error)),
        }
    }

    /// Why an operation that is over failed, by the system's own status.
    fn cause(&self) -> Option<io::Error> {
        // SAFETY: the place lives as long as this value, and the system is done with it.
        let status = unsafe { addr_of!((*self.place.as_ptr()).record.Internal).read() };
        // SAFETY: takes a number.
        let code = unsafe { RtlNtStatusToDosError(status as NTSTATUS) };
        let is_known = code != 0 && code != ERROR_MR_MID_NOT_FOUND;
        is_known.then(|| io::Error::from_raw_os_error(code as i32))
    }
}

impl<C: Call> Slot for Operation<C> {
    type Work = C;

    fn start(&mut self, work: C) -> Result<(), (io::Error, C)> {
        debug_assert!(!self.is_under_way, "one at a time");
        // SAFETY: no operation is under way, so the place is this value's alone.
        let place = unsafe { self.place.as_mut() };
        place.record = OVERLAPPED::default();
        place.record.Internal = STATUS_PENDING as usize;
        place.record.hEvent = self.ended.raw();
        let call = place.call.insert(work);
        // SAFETY: the place stays where it is until the operation is over: `finish` takes the call out of
        // it only then, and dropping waits for it.
        let result =
            unsafe { call.begin(self.socket, addr_of_mut!((*self.place.as_ptr()).record)) };
        (self.is_under_way, self.is_cut) = (true, false);
        if result != SOCKET_ERROR {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() == Some(WSA_IO_PENDING) {
            return Ok(());
        }
        // SAFETY: nothing is under way, so the place is this value's alone again.
        let place = unsafe { self.place.as_mut() };
        if is_cut(&error) && place.call.as_ref().is_some_and(|call| call.room().is_some()) {
            self.is_cut = true;
            return Ok(());
        }
        self.is_under_way = false;
        Err((error, place.call.take().expect("it was put there above")))
    }

    fn has_ended(&self) -> bool {
        self.is_under_way && self.is_over()
    }

    fn finish(&mut self) -> Option<Ended<C>> {
        if !self.has_ended() {
            return None;
        }
        let result = self.result()?;
        // SAFETY: the operation is over, so the place is this value's alone.
        let place = unsafe { self.place.as_mut() };
        let work = place.call.take()?;
        self.is_under_way = false;
        let result = match (result, work.room()) {
            (Err(error), Some(room)) if is_cut(&error) => Ok(room),
            (result, _) => result,
        };
        Some(Ended { work, result })
    }

    fn cancel(&mut self) {
        // SAFETY: the record is that of an operation on this socket, which may be over already.
        unsafe { CancelIoEx(self.socket as HANDLE, addr_of!((*self.place.as_ptr()).record)) };
    }
}

/// A datagram that did not fit is cut, which is no failure.
fn is_cut(error: &io::Error) -> bool {
    error.raw_os_error() == Some(WSAEMSGSIZE)
}

impl<C> Drop for Operation<C> {
    fn drop(&mut self) {
        if self.is_under_way && !self.is_over() {
            // SAFETY: as in `cancel`.
            unsafe { CancelIoEx(self.socket as HANDLE, addr_of!((*self.place.as_ptr()).record)) };
            if !self.ends_soon() {
                // The system may write there for ever, so the memory is left to it.
                return;
            }
        }
        // SAFETY: the place was leaked from a box by `new`, and the system is done with it.
        drop(unsafe { Box::from_raw(self.place.as_ptr()) });
    }
}

impl<C> Operation<C> {
    /// Waits for the end of an operation that was cancelled.
    fn ends_soon(&self) -> bool {
        for _ in 0..MOST_NAPS {
            if self.is_over() {
                return true;
            }
            // SAFETY: the event is open. It may be set for another operation, which costs a nap.
            unsafe { WaitForSingleObject(self.ended.raw(), NAP.as_millis() as u32) };
        }
        self.is_over()
    }
}

/// How long the end of a cancelled operation is waited for, in pieces.
const NAP: Duration = Duration::from_millis(10);
const MOST_NAPS: u32 = 200;
