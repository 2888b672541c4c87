//! Network namespaces of this process: made when asked for, entered by single threads, deleted when
//! dropped, also by a panic. Their names carry the process id, so that suites at once do not meet.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::tool::skipped;

/// A network of its own, with nothing in it but a loopback that is up.
#[derive(Debug)]
pub struct Namespace(String);

/// Whether this process may make namespaces with TAP devices. Where it may not, the caller skips and
/// this says so aloud.
///
/// # Panics
///
/// In continuous integration, where nothing may skip.
pub fn may_make_namespaces() -> bool {
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout == b"0\n");
    if !is_root {
        skipped("network namespaces need root");
    } else if !Path::new("/dev/net/tun").exists() {
        skipped("there is no /dev/net/tun");
    } else {
        return true;
    }
    false
}

impl Namespace {
    /// Makes one.
    ///
    /// # Panics
    ///
    /// When the system does not let it.
    #[expect(clippy::new_without_default, reason = "it changes the system")]
    pub fn new() -> Self {
        delete_those_left_behind();
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let namespace = Self(format!("{PREFIX}{}-{count}", std::process::id()));
        let made = Command::new("ip").args(["netns", "add", &namespace.0]).status();
        assert!(made.is_ok_and(|status| status.success()), "no namespace could be made");
        namespace.ip("link set lo up");
        namespace
    }

    /// Its name, as the `ip` command takes it.
    pub fn name(&self) -> &str {
        &self.0
    }

    /// A command that is replaced by `program` within the namespace, under the same process id.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0]).arg(program);
        command
    }

    /// The same for a command that is already there; its variables are not taken along.
    pub fn within(&self, inner: &Command) -> Command {
        let mut command = self.command(inner.get_program().as_ref());
        command.args(inner.get_args());
        command
    }

    /// Runs the `ip` command with these words in the namespace.
    ///
    /// # Panics
    ///
    /// When it fails.
    pub fn ip(&self, words: &str) {
        let mut command = Command::new("ip");
        let status = command.args(["-n", &self.0]).args(words.split_whitespace()).status();
        assert!(status.is_ok_and(|status| status.success()), "ip {words}");
    }

    /// Runs the `tc` command with these words in the namespace; whether this kernel can do it.
    pub fn tc(&self, words: &str) -> bool {
        let mut command = self.command("tc".as_ref());
        let ended = command.args(words.split_whitespace()).output();
        ended.is_ok_and(|ended| ended.status.success())
    }

    /// UDP datagrams over IPv4 that came here but found no room in their socket.
    ///
    /// # Panics
    ///
    /// When the system does not tell.
    pub fn udp_overflow(&self) -> u64 {
        self.count("/proc/net/snmp", "Udp", "RcvbufErrors")
    }

    /// What the system counted of MPTCP here, by the name of the counter.
    ///
    /// # Panics
    ///
    /// When the system does not tell.
    pub fn mptcp_count(&self, counter: &str) -> u64 {
        self.count("/proc/net/netstat", "MPTcpExt", counter)
    }

    /// Changes a setting of the kernel, by its name as `sysctl` has it.
    ///
    /// # Panics
    ///
    /// When the system does not let it.
    pub fn set(&self, name: &str, value: &str) {
        let path = Path::new("/proc/sys").join(name.replace('.', "/"));
        let written = self.enter(|| std::fs::write(&path, value));
        written.unwrap_or_else(|why| panic!("{name}={value}: {why}"));
    }

    fn count(&self, table: &str, group: &str, counter: &str) -> u64 {
        let output = self.command("cat".as_ref()).arg(table).output();
        let text = String::from_utf8(output.expect("the ip command is there").stdout);
        let text = text.expect("a table of names and numbers");
        let mut rows = text.lines().filter_map(|line| line.strip_prefix(group)?.strip_prefix(": "));
        let (names, numbers) = (rows.next().unwrap_or(""), rows.next().unwrap_or(""));
        let mut columns = names.split(' ').zip(numbers.split(' '));
        let found = columns.find(|(name, _)| *name == counter);
        let number = found.and_then(|(_, number)| number.parse().ok());
        number.unwrap_or_else(|| panic!("{table} has no {counter} of {group}"))
    }

    /// Does something on a thread that is in the namespace. Sockets and devices opened there stay in
    /// it, wherever they are used.
    ///
    /// # Errors
    ///
    /// When it cannot be entered, and those of `work`.
    pub fn enter<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        let file = File::open(Path::new(FOLDER).join(&self.0))?;
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| {
                move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
                work()
            });
            inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let deleted = Command::new("ip").args(["netns", "delete", &self.0]).status();
        if !deleted.is_ok_and(|status| status.success()) {
            eprintln!("the namespace {} could not be deleted", self.0);
        }
    }
}

/// A process that was killed could not clean up, so whoever comes next does: what still runs in its
/// namespaces was started by it.
fn delete_those_left_behind() {
    let entries = std::fs::read_dir(FOLDER).into_iter().flatten().flatten();
    for name in entries.filter_map(|entry| entry.file_name().into_string().ok()) {
        let process = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-'));
        let Some((id, _)) = process.filter(|(id, _)| id.parse::<u32>().is_ok()) else { continue };
        if Path::new("/proc").join(id).exists() {
            continue;
        }
        // Somebody else may have just done the same.
        if let Ok(pids) = Command::new("ip").args(["netns", "pids", &name]).output() {
            let pids = String::from_utf8_lossy(&pids.stdout).into_owned();
            let _ = Command::new("kill").args(pids.split_whitespace()).output();
        }
        let _ = Command::new("ip").args(["netns", "delete", &name]).output();
    }
}

const PREFIX: &str = "linerate-";
/// Where the `ip` command keeps them.
const FOLDER: &str = "/run/netns";
