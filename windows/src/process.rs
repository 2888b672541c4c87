//! What the system says about this process.

use linerate_core::stats::CpuTimes;
use windows_sys::Win32::Foundation::FILETIME;
use windows_sys::Win32::System::Threading::{GetCurrentProcess, GetProcessTimes};

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

/// A `FILETIME` counts 100 nanoseconds.
pub(crate) fn nanos(time: FILETIME) -> u64 {
    let ticks = u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime);
    ticks.saturating_mul(100)
}
