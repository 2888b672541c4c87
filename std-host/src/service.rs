//! A server that something else starts, watches and stops: systemd's protocol of readiness and
//! watchdog, which is a datagram of `KEY=VALUE` lines to the socket named in the environment
//! (sd_notify(3)), the service manager of Windows, and whether anybody sits before the process.

#[cfg(unix)]
use std::ffi::OsStr;
use std::io::{self, IsTerminal};
use std::time::Duration;

#[cfg(unix)]
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Who started this process and wants to hear how it is.
#[derive(Debug)]
pub struct Supervisor {
    #[cfg(unix)]
    socket: UnixDatagram,
    #[cfg(windows)]
    service: linerate_windows::service::Status,
    watchdog: Option<Duration>,
}

impl Supervisor {
    /// The supervisor that the environment names, if there is one and it listens.
    #[cfg(unix)]
    pub fn from_env() -> Option<Self> {
        let own = std::process::id().to_string();
        let text = |name| std::env::var(name).ok();
        let is_watched = text("WATCHDOG_PID").is_none_or(|process| process == own);
        let watchdog = text("WATCHDOG_USEC").filter(|_| is_watched);
        Self::at(&std::env::var_os("NOTIFY_SOCKET")?, watchdog.as_deref()).ok()
    }

    /// The service manager, if it started this process. It watches whether the process lives, and asks
    /// for no signs.
    #[cfg(windows)]
    pub fn from_env() -> Option<Self> {
        let service = linerate_windows::service::current()?;
        Some(Self { service, watchdog: None })
    }

    /// Elsewhere there is none.
    #[cfg(not(any(unix, windows)))]
    pub fn from_env() -> Option<Self> {
        None
    }

    /// `@` begins the name of an abstract socket, which only Linux has.
    #[cfg(unix)]
    fn at(name: &OsStr, watchdog_usec: Option<&str>) -> io::Result<Self> {
        let socket = UnixDatagram::unbound()?;
        socket.connect_addr(&address(name)?)?;
        // A supervisor that does not read must not stop the tests.
        socket.set_nonblocking(true)?;
        let watchdog = watchdog_usec.and_then(|text| text.parse().ok()).filter(|&usec| usec > 0);
        Ok(Self { socket, watchdog: watchdog.map(Duration::from_micros) })
    }

    /// The longest silence between two signs of life before the process is restarted.
    pub const fn watchdog(&self) -> Option<Duration> {
        self.watchdog
    }

    /// The port is open.
    pub fn ready(&self, status: &str) {
        self.send(&format!("READY=1\nSTATUS={status}"));
        #[cfg(windows)]
        self.service.running();
    }

    /// A sign of life, with a line for `systemctl status`.
    pub fn alive(&self, status: &str) {
        self.send(&format!("WATCHDOG=1\nSTATUS={status}"));
    }

    /// The tests are being ended, which Windows has heard when it asked for it.
    pub fn stopping(&self, status: &str) {
        self.send(&format!("STOPPING=1\nSTATUS={status}"));
    }

    /// A message that is lost is followed by the next; the server works without.
    fn send(&self, message: &str) {
        #[cfg(unix)]
        let _ = self.socket.send(message.as_bytes());
        #[cfg(not(unix))]
        let _ = message;
    }
}

#[cfg(target_os = "linux")]
fn address(name: &OsStr) -> io::Result<SocketAddr> {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::ffi::OsStrExt;
    match name.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
        _ => SocketAddr::from_pathname(name),
    }
}

#[cfg(all(unix, not(target_os = "linux")))]
fn address(name: &OsStr) -> io::Result<SocketAddr> {
    SocketAddr::from_pathname(name)
}

/// Whether this process is run by something that keeps its error stream, and not by a person: systemd's
/// journal, the service manager of Windows, or a container whose first process it is.
pub fn is_service() -> bool {
    is_kept() || (std::process::id() == 1 && !io::stderr().is_terminal())
}

/// systemd names device and inode of the stream that it connected, because the variable is inherited
/// by processes whose error stream is another.
#[cfg(unix)]
fn is_kept() -> bool {
    use std::os::fd::AsFd;
    use std::os::unix::fs::MetadataExt;
    let Ok(named) = std::env::var("JOURNAL_STREAM") else { return false };
    let stderr = io::stderr().as_fd().try_clone_to_owned();
    let found = stderr.and_then(|stderr| std::fs::File::from(stderr).metadata());
    found.is_ok_and(|found| named == format!("{}:{}", found.dev(), found.ino()))
}

#[cfg(windows)]
fn is_kept() -> bool {
    linerate_windows::service::current().is_some()
}

#[cfg(not(any(unix, windows)))]
fn is_kept() -> bool {
    false
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_supervisor_hears_the_state() {
        let path = std::env::temp_dir().join(format!("linerate-notify-{}", std::process::id()));
        let listening = UnixDatagram::bind(&path).expect("a path of its own");
        hears(&listening, path.as_os_str());
        std::fs::remove_file(path).expect("ours");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_supervisor_may_have_an_abstract_socket() {
        use std::os::linux::net::SocketAddrExt;
        let name = format!("linerate-notify-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).expect("short enough");
        let listening = UnixDatagram::bind_addr(&address).expect("a name of its own");
        hears(&listening, format!("@{name}").as_ref());
    }

    fn hears(listening: &UnixDatagram, name: &OsStr) {
        let supervisor = Supervisor::at(name, Some("3000000")).expect("it listens");
        assert_eq!(supervisor.watchdog(), Some(Duration::from_secs(3)));
        supervisor.ready("one");
        supervisor.alive("two");
        supervisor.stopping("three");
        for expected in
            ["READY=1\nSTATUS=one", "WATCHDOG=1\nSTATUS=two", "STOPPING=1\nSTATUS=three"]
        {
            let mut bytes = [0; 100];
            let len = listening.recv(&mut bytes).expect("it was sent");
            assert_eq!(std::str::from_utf8(&bytes[..len]), Ok(expected));
        }
    }

    #[test]
    fn a_supervisor_that_is_not_there_or_does_not_watch_is_none() {
        assert!(Supervisor::at("/nowhere/at/all".as_ref(), None).is_err());
        let path = std::env::temp_dir().join(format!("linerate-watch-{}", std::process::id()));
        let _listening = UnixDatagram::bind(&path).expect("a path of its own");
        for usec in [None, Some("0"), Some("soon"), Some("-1")] {
            let supervisor = Supervisor::at(path.as_os_str(), usec).expect("it listens");
            assert_eq!(supervisor.watchdog(), None, "{usec:?}");
        }
        std::fs::remove_file(path).expect("ours");
    }
}
