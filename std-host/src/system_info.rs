//! One line that tells a reader of a result which machine and system it came from, in the order of
//! `uname -a`: system, host, release, version, machine. iperf3 prints the same line with `-V` and in
//! its document. And what the command asks of its system before it begins.

/// The line for this machine, such as `Linux host 6.1.0 #1 SMP Debian x86_64`. What the system does
/// not tell is left out.
pub fn system_info() -> String {
    line(crate::sys::system_names())
}

/// Lets this process have as many sockets as the system allows its user; for a command that owns its
/// process, as `linerate` does, and before its first test.
pub fn allow_many_sockets() {
    crate::sys::raise_descriptor_limit();
}

/// Lets this process outlive a file that grows above its user's limit (`ulimit -f`), which is then an
/// error as a full disk is; for a command that owns its process.
pub fn outlive_file_limit() {
    crate::sys::ignore_file_size_signal();
}

/// Lets the calling thread, and all that it begins from then on, run on one CPU alone (`-A`); for a
/// command that owns its process, and before its first test. On Windows threads inherit no CPU: there
/// it is this one and those of streams. A CPU that cannot be had is a test's business to say.
pub fn run_on_cpu(cpu: u16) {
    let _ = crate::sys::pin_thread(cpu);
}

/// Has the memory of a test's streams go back to the system when it is over, instead of staying with
/// the process for its next one; for a command that owns its process.
pub fn return_large_blocks() {
    crate::sys::return_large_blocks();
}

fn line(words: [String; 5]) -> String {
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_system_first_and_stays_on_one_line() {
        let info = system_info();
        let names = ["Linux ", "Darwin ", "FreeBSD ", "Windows "];
        assert!(names.iter().any(|name| info.starts_with(name)), "{info}");
        assert!(!info.contains('\n') && !info.ends_with(' '), "{info:?}");
    }

    #[test]
    fn unknown_words_leave_no_gap() {
        let words = ["Darwin", "", "", "", "aarch64"].map(String::from);
        assert_eq!(line(words), "Darwin aarch64");
    }
}
