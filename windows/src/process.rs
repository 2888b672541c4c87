//! What the system says about this process.

use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};

use linerate_core::stats::CpuTimes;
use windows_sys::Win32::Foundation::{ERROR_ACCESS_DENIED, FILETIME, GetLastError, WAIT_TIMEOUT};
use windows_sys::Win32::System::Threading::{
    GetCurrentProcess, GetProcessId, GetProcessTimes, OpenProcess,
    PROCESS_QUERY_LIMITED_INFORMATION, PROCESS_SYNCHRONIZE, WaitForSingleObject,
};

/// CPU time of the whole process.
pub fn cpu_times() -> CpuTimes {
    let [mut created, mut exited, mut kernel, mut user] = [FILETIME::default(); 4];
    // SAFETY: the pseudo-handle of this process is always valid; the four pointers are to records
    // that live through the call. It fails only for handles without rights, and leaves zeros then.
    unsafe {
        GetProcessTimes(
            GetCurrentProcess(),
            &raw mut created,
            &raw mut exited,
            &raw mut kernel,
            &raw mut user,
        )
    };
    CpuTimes { user_ns: nanos(user), system_ns: nanos(kernel) }
}

/// Whether there is a process of this number that has not ended. One that this user may not look at
/// runs, too.
pub fn is_running(process: u32) -> bool {
    let rights = PROCESS_SYNCHRONIZE | PROCESS_QUERY_LIMITED_INFORMATION;
    // SAFETY: every number may be asked for; what comes back is a handle of ours, or none.
    let handle = unsafe { OpenProcess(rights, 0, process) };
    if handle.is_null() {
        // SAFETY: it reads a number of this thread.
        return unsafe { GetLastError() } == ERROR_ACCESS_DENIED;
    }
    // SAFETY: the handle is open, and nobody else has it.
    let handle = unsafe { OwnedHandle::from_raw_handle(handle) };
    // Numbers are multiples of four, and the system overlooks what is added to one.
    // SAFETY: the handle is open and has the right to be asked.
    let is_itself = unsafe { GetProcessId(handle.as_raw_handle()) } == process;
    // SAFETY: the handle is open and has the right to be waited for; nothing is waited for.
    is_itself && unsafe { WaitForSingleObject(handle.as_raw_handle(), 0) } == WAIT_TIMEOUT
}

/// A `FILETIME` counts 100 nanoseconds.
pub(crate) fn nanos(time: FILETIME) -> u64 {
    let ticks = u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime);
    ticks.saturating_mul(100)
}
