//! The calling thread: its CPU time, and the CPU that it runs on.

use std::io;

#[cfg(windows)]
use windows_sys::Win32::{
    Foundation::{ERROR_INVALID_PARAMETER, FILETIME},
    System::{
        SystemInformation::GROUP_AFFINITY,
        Threading::{
            GetActiveProcessorCount, GetActiveProcessorGroupCount, GetCurrentThread,
            GetThreadTimes, SetThreadGroupAffinity,
        },
    },
};

/// CPU time of the calling thread, nanoseconds. Windows gives a whole tick of 15.6 ms to the thread
/// that runs when it is over: shares of a second are right to a few percent. (The exact count,
/// `QueryThreadCycleTime`, is one of cycles, whose length nothing tells on ARM64.)
#[cfg(windows)]
pub fn thread_cpu_ns() -> Option<u64> {
    let [mut created, mut exited, mut kernel, mut user] = [FILETIME::default(); 4];
    // SAFETY: the pseudo-handle of the calling thread is always valid; the four pointers are to
    // records that live through the call.
    let result = unsafe {
        GetThreadTimes(
            GetCurrentThread(),
            &raw mut created,
            &raw mut exited,
            &raw mut kernel,
            &raw mut user,
        )
    };
    (result != 0).then(|| crate::process::nanos(kernel).saturating_add(crate::process::nanos(user)))
}

/// Lets the calling thread run on one CPU alone. CPUs are counted through all processor groups, which
/// have up to 64 each.
///
/// # Errors
/// Of kind `InvalidInput` for a number that this machine does not have, or a CPU that this process
/// may not use.
#[cfg(windows)]
pub fn pin_thread(cpu: u16) -> io::Result<()> {
    let place = place(cpu, &group_sizes())?;
    let affinity =
        GROUP_AFFINITY { Mask: 1 << place.bit, Group: place.group, ..GROUP_AFFINITY::default() };
    // SAFETY: the pseudo-handle of the calling thread is always valid; one record is read, and none is
    // asked for.
    let result = unsafe {
        SetThreadGroupAffinity(GetCurrentThread(), &raw const affinity, std::ptr::null_mut())
    };
    if result != 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error().map(i32::cast_unsigned) {
        Some(ERROR_INVALID_PARAMETER) => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "this process was started for other CPUs",
        )),
        _ => Err(error),
    }
}

#[cfg(windows)]
fn group_sizes() -> Vec<u32> {
    // SAFETY: takes no pointers.
    let groups = unsafe { GetActiveProcessorGroupCount() };
    // SAFETY: takes no pointers; a group that has gone meanwhile has no processors.
    (0..groups).map(|group| unsafe { GetActiveProcessorCount(group) }).collect()
}

/// Where a CPU is.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    group: u16,
    bit: u32,
}

/// Finds a CPU in groups of these sizes.
fn place(cpu: u16, sizes: &[u32]) -> io::Result<Place> {
    let mut bit = u32::from(cpu);
    for (group, &size) in (0..).zip(sizes) {
        if bit < size {
            return Ok(Place { group, bit });
        }
        bit -= size;
    }
    let last = sizes.iter().sum::<u32>().saturating_sub(1);
    let message = format!("this machine has the CPUs 0 to {last}");
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_counted_through_all_groups() {
        for (cpu, sizes, group, bit) in [
            (0, &[4][..], 0, 0),
            (3, &[4], 0, 3),
            (63, &[64, 64], 0, 63),
            (64, &[64, 64], 1, 0),
            (100, &[36, 36, 36], 2, 28),
        ] {
            assert_eq!(place(cpu, sizes).unwrap(), Place { group, bit }, "{cpu} of {sizes:?}");
        }
    }

    #[test]
    fn a_cpu_that_is_not_there_is_refused_with_those_that_are() {
        let refusal = |cpu, sizes: &[u32]| place(cpu, sizes).unwrap_err().to_string();
        assert_eq!(refusal(4, &[4]), "this machine has the CPUs 0 to 3");
        assert_eq!(refusal(u16::MAX, &[64, 48]), "this machine has the CPUs 0 to 111");
    }

    #[cfg(windows)]
    #[test]
    fn a_thread_runs_where_it_is_told_and_knows_its_time() {
        let worker = std::thread::spawn(|| {
            pin_thread(0)?;
            let begin = std::time::Instant::now();
            while thread_cpu_ns() == Some(0) && begin.elapsed().as_secs() < 30 {}
            Ok::<_, io::Error>(thread_cpu_ns())
        });
        assert!(worker.join().unwrap().unwrap() > Some(0));
    }
}
