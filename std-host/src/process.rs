//! The process of a command: its pid file, its terminal, and the server that leaves it. For a program
//! that owns its process, as `linerate` does.

use std::fs::{self, OpenOptions};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::path::PathBuf;

use crate::error::Error;
use crate::small_file::{self, Kind};
use crate::sys::{self, Forked};

/// A file with the number of this process in it (`-I`), for as long as this value lives.
#[derive(Debug)]
pub struct PidFile {
    path: PathBuf,
}

impl PidFile {
    /// Writes the file. One that a process left behind is overwritten; this process's own number in it
    /// is such a one too, because containers give the same number again.
    ///
    /// # Errors
    /// [`Error::System`] when the file names another process that runs, and then it stays as it is; or
    /// when it cannot be written.
    pub fn create(path: impl Into<PathBuf>) -> Result<Self, Error> {
        let path = path.into();
        if let Some(process) = named_by(&path)
            && process != std::process::id()
            && sys::is_running(process)
        {
            return Err(Error::System {
                what: ANOTHER_RUNS.into(),
                message: format!("process {process}, named by {}", path.display()),
                code: None,
            });
        }
        let written =
            create_private(&path).and_then(|mut file| write!(file, "{}", std::process::id()));
        match written {
            Ok(()) => Ok(Self { path }),
            Err(error) => {
                Err(Error::system(format!("unable to write PID file: {}", path.display()), &error))
            }
        }
    }

    /// Removes the file, if it still names this process.
    pub fn remove(&self) {
        if named_by(&self.path) == Some(std::process::id()) {
            // One that cannot be removed is taken for left behind by the next.
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        self.remove();
    }
}

fn named_by(path: &std::path::Path) -> Option<u32> {
    let text = String::from_utf8(small_file::read(path, MOST_BYTES).ok()?).ok()?;
    text.trim().parse().ok().filter(|&process| process > 0)
}

/// A file that its owner alone may read and write, as iperf3 makes it.
fn create_private(path: &std::path::Path) -> io::Result<fs::File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = small_file::open_now(&mut options, path, |kind| kind != Kind::Pipe)?;
    small_file::empty(&file)?;
    Ok(file)
}

/// Which of the two processes this is, after the command has split.
#[derive(Debug)]
pub enum Detached {
    /// The one that was started: it has nothing left to do but to end with this code.
    Starter(u8),
    /// The one that goes on, and says when it no longer needs the terminal.
    Daemon(Readiness),
}

/// Says to the process that was started that the daemon works.
#[derive(Debug)]
pub struct Readiness(PipeWriter);

/// Does something while the terminal at the standard input shows nothing of what is typed. Where the
/// system cannot, or there is no terminal, it is done as it is.
pub fn without_echo<T>(work: impl FnOnce() -> T) -> T {
    let _hidden = sys::Hidden::new();
    work()
}

/// Splits this process: one goes on in a session of its own, with the same working directory and, until
/// it is ready, the same terminal; the other waits for that, or for its end.
///
/// # Errors
/// [`Error::System`] when the system fails to, [`Error::Usage`] when it has no daemons.
pub fn detach() -> Result<Detached, Error> {
    let (reader, writer) = io::pipe().map_err(cannot_detach)?;
    match sys::fork().map_err(cannot_detach)? {
        Forked::Parent(child) => {
            drop(writer);
            Ok(Detached::Starter(wait(reader, child)))
        }
        Forked::Child => Ok(Detached::Daemon(Readiness(writer))),
    }
}

fn cannot_detach(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::Unsupported => Error::Usage(NO_DAEMONS.into()),
        _ => Error::system("unable to become a daemon", &error),
    }
}

fn wait(mut reader: PipeReader, child: u32) -> u8 {
    let mut ready = [0];
    match reader.read(&mut ready) {
        Ok(1) => 0,
        // It ended before, and said why.
        _ => sys::exit_code(child).unwrap_or(1),
    }
}

impl Readiness {
    /// Leaves the terminal and lets the starter end.
    ///
    /// # Errors
    /// [`Error::System`] when the terminal cannot be left.
    pub fn tell(mut self) -> Result<(), Error> {
        sys::leave_terminal().map_err(cannot_detach)?;
        // A starter that was killed meanwhile does not stop the daemon.
        let _ = self.0.write_all(&[1]);
        Ok(())
    }
}

/// Far more than a number has.
const MOST_BYTES: u64 = 1 << 10;
const NO_DAEMONS: &str = "-D: this system has no daemons; start the server as a service, or in a \
    window of its own";
/// iperf3's words, which scripts look for.
const ANOTHER_RUNS: &str = "Another instance of iperf3 appears to be running";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pid_file_lives_as_long_as_its_process_needs_it() {
        let path = scratch("lives");
        let file = PidFile::create(&path).expect("nobody has it");
        assert_eq!(fs::read_to_string(&path).expect("it is there"), std::process::id().to_string());
        drop(file);
        assert!(!path.exists());
    }

    #[test]
    fn what_was_left_behind_is_overwritten() {
        let path = scratch("left");
        let own = std::process::id().to_string();
        for content in ["", "0", "-1", "word", "4294967295", "99999999999", "2147483646\n", &own] {
            fs::write(&path, content).expect("writable");
            let file = PidFile::create(&path);
            assert!(file.is_ok(), "{content:?}: {file:?}");
            drop(file);
            assert!(!path.exists(), "{content:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn file_of_a_running_process_is_left_alone() {
        let path = scratch("runs");
        let parent = std::os::unix::process::parent_id().to_string();
        // Process 1 is another user's in most places, which is no reason to take its file.
        for process in [parent.as_str(), "1"] {
            fs::write(&path, process).expect("writable");
            let error = PidFile::create(&path).expect_err("it runs").to_string();
            assert!(
                error.starts_with("Another instance of iperf3 appears to be running"),
                "{error}"
            );
            assert!(error.contains(process), "{error}");
            assert_eq!(fs::read_to_string(&path).expect("it is there"), process);
        }
        fs::remove_file(&path).expect("ours");
    }

    #[test]
    fn file_that_another_process_took_meanwhile_is_left_alone() {
        let path = scratch("taken");
        let file = PidFile::create(&path).expect("nobody has it");
        fs::write(&path, "12345").expect("writable");
        drop(file);
        assert_eq!(fs::read_to_string(&path).expect("it is there"), "12345");
        fs::remove_file(&path).expect("ours");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_device_that_takes_or_gives_without_end_is_no_pid_file() {
        let error = PidFile::create("/dev/full").expect_err("it takes nothing").to_string();
        assert_eq!(error, "unable to write PID file: /dev/full: No space left on device");
    }

    #[test]
    fn file_that_cannot_be_written_is_named() {
        let path = scratch("none").join("below");
        let error = PidFile::create(&path).expect_err("there is no such folder").to_string();
        assert!(error.starts_with("unable to write PID file: "), "{error}");
        assert!(error.contains(&path.display().to_string()), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn pipe_is_no_pid_file() {
        let path = scratch("pipe");
        let made = std::process::Command::new("mkfifo").arg(&path).status().expect("mkfifo runs");
        assert!(made.success());
        let error = PidFile::create(&path).expect_err("nobody reads it").to_string();
        assert!(error.ends_with(": must be a regular file, not a pipe"), "{error}");
        fs::remove_file(&path).expect("ours");
    }

    fn scratch(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("linerate-pid-{name}-{}", std::process::id()))
    }
}
