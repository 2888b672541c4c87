//! What the Unix systems have in common: socket options by number, CPU times, datagrams with control
//! messages, and files without a name.

use std::fs::File;
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
#[cfg(any(target_os = "linux", target_os = "freebsd"))]
use std::time::Duration;

use libc::{c_char, c_int, c_void};
use linerate_core::stats::CpuTimes;
use socket2::{SockAddr, Socket, TcpKeepalive};

use super::{Arrived, Forked, KeepAlive};

/// CPU time of the whole process.
pub(crate) fn cpu_times() -> CpuTimes {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is valid for writes of one rusage, which all-zero bytes are.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    let nanos =
        |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    CpuTimes { user_ns: nanos(usage.ru_utime), system_ns: nanos(usage.ru_stime) }
}

/// Raises the soft limit of open files to the hard one: the usual soft limit of 1024 is less than
/// a few clients with many streams need.
pub(crate) fn raise_descriptor_limit() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is valid for writes of one rlimit.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } == 0 {
        limit.rlim_cur = limit.rlim_max;
        // SAFETY: the pointer is valid for reads of one rlimit. Where the system refuses, the old
        // limit stays.
        unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) };
    }
}

/// Splits the process in two. The child has the calling thread only: the command calls this while it
/// is the only one, since what other threads hold would stay held for ever.
pub(crate) fn fork() -> io::Result<Forked> {
    // SAFETY: the process has one thread, so that the child may do whatever its parent may.
    let child = check(unsafe { libc::fork() })?;
    Ok(u32::try_from(child).ok().filter(|&child| child > 0).map_or(Forked::Child, Forked::Parent))
}

/// Waits for the end of a child process: its exit code, or none if a signal ended it.
pub(crate) fn exit_code(child: u32) -> Option<u8> {
    let child = libc::pid_t::try_from(child).ok()?;
    let mut status = 0;
    // SAFETY: the pointer is valid for writes of one int.
    while unsafe { libc::waitpid(child, &raw mut status, 0) } == -1 {
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return None;
        }
    }
    libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status) as u8)
}

/// Has the system answer a write above the limit of file sizes with an error alone.
pub(crate) fn ignore_file_size_signal() {
    // SAFETY: no handler runs for a signal that is ignored.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// Begins a session without a terminal; what is written to the standard streams goes nowhere.
pub(crate) fn leave_terminal() -> io::Result<()> {
    let nowhere = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    // SAFETY: takes no pointers.
    check(unsafe { libc::setsid() })?;
    for stream in [libc::STDIN_FILENO, libc::STDOUT_FILENO, libc::STDERR_FILENO] {
        // SAFETY: takes no pointers; `nowhere` is open, and nothing owns the standard streams.
        check(unsafe { libc::dup2(nowhere.as_raw_fd(), stream) })?;
    }
    Ok(())
}

/// A terminal at the standard input that shows nothing of what is typed, until this is dropped.
#[derive(Debug)]
pub(crate) struct Hidden(libc::termios);

impl Hidden {
    pub(crate) fn new() -> io::Result<Self> {
        let mut terminal = MaybeUninit::<libc::termios>::zeroed();
        // SAFETY: the pointer is valid for writes of one termios, which all-zero bytes are.
        let terminal = unsafe {
            check(libc::tcgetattr(libc::STDIN_FILENO, terminal.as_mut_ptr()))?;
            terminal.assume_init()
        };
        let mut hiding = terminal;
        // Nor is Ctrl-C a signal: it is for who reads the characters.
        hiding.c_lflag &= !(libc::ECHO | libc::ECHONL | libc::ICANON | libc::ISIG);
        hiding.c_cc[libc::VMIN] = 1;
        hiding.c_cc[libc::VTIME] = 0;
        // SAFETY: the pointer is valid for reads of one termios.
        check(unsafe { libc::tcsetattr(libc::STDIN_FILENO, libc::TCSAFLUSH, &raw const hiding) })?;
        Ok(Self(terminal))
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        // SAFETY: the pointer is valid for reads of one termios. There is nobody to tell of a failure.
        let _ = unsafe { libc::tcsetattr(libc::STDIN_FILENO, libc::TCSANOW, &raw const self.0) };
    }
}

/// Whether a process runs, whoever owns it.
pub(crate) fn is_running(process: u32) -> bool {
    let Ok(process) = libc::pid_t::try_from(process) else { return false };
    // SAFETY: signal 0 is none; the system only looks for the process.
    let found = check(unsafe { libc::kill(process, 0) });
    found.map_or_else(|error| error.raw_os_error() == Some(libc::EPERM), |_| true)
}

/// What `uname` tells.
pub(crate) fn system_names() -> [String; 5] {
    let mut names = MaybeUninit::<libc::utsname>::zeroed();
    // SAFETY: the pointer is valid for writes of one utsname, which all-zero bytes are.
    let names = unsafe {
        libc::uname(names.as_mut_ptr());
        names.assume_init()
    };
    let word = |chars: &[c_char]| {
        #[allow(clippy::unnecessary_cast, reason = "the type differs between systems")]
        let bytes: Vec<_> = chars.iter().map(|&char| char as u8).take_while(|&b| b != 0).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    [
        word(&names.sysname),
        word(&names.nodename),
        word(&names.release),
        word(&names.version),
        word(&names.machine),
    ]
}

/// The descriptor's number.
pub(crate) fn socket_number(socket: &Socket) -> i32 {
    socket.as_raw_fd()
}

/// `SO_REUSEADDR`, which on Unix never lets two sockets listen on a port or take a connection's.
pub(crate) fn reuse_ended(socket: &Socket) -> io::Result<()> {
    socket.set_reuse_address(true)
}

/// A file in the directory for temporary files, which goes with its last descriptor.
pub(super) fn unnamed_file() -> io::Result<File> {
    let directory = ["TMPDIR", "TEMP", "TMP"].iter().find_map(std::env::var_os);
    let directory = directory.map_or_else(std::env::temp_dir, PathBuf::from);
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let path = directory.join(format!("linerate-{:016x}", u64::from_ne_bytes(random)));
    let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

/// Keep-alive of a TCP socket.
pub(crate) fn set_keep_alive(socket: &Socket, wanted: KeepAlive) -> io::Result<()> {
    socket.set_keepalive(true)?;
    let mut parameters = TcpKeepalive::new();
    if let Some(idle) = wanted.idle {
        parameters = parameters.with_time(idle);
    }
    if let Some(interval) = wanted.interval {
        parameters = parameters.with_interval(interval);
    }
    if let Some(count) = wanted.count {
        parameters = parameters.with_retries(count);
    }
    socket.set_tcp_keepalive(&parameters)
}

/// Every system but Windows marks by `set_traffic_class`.
#[derive(Debug)]
pub(crate) struct Mark;

pub(crate) fn mark_connected(_socket: &Socket, _class: u8) -> io::Result<Mark> {
    Ok(Mark)
}

/// Name of the congestion control of a TCP socket.
#[cfg(any(target_os = "linux", target_os = "freebsd"))]
pub(crate) fn congestion(socket: &Socket) -> Option<String> {
    let name = socket.tcp_congestion().ok()?;
    let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
    Some(String::from_utf8_lossy(name).into_owned())
}

/// Types that any bytes are a valid value of, so that the kernel may fill or read them.
///
/// # Safety
/// Implementors have no padding and no invalid bit patterns.
pub(super) unsafe trait Plain: Copy {}
// SAFETY: integers have neither padding nor invalid bit patterns.
unsafe impl Plain for c_int {}
// SAFETY: as above.
unsafe impl Plain for u64 {}

/// Sets a socket option.
pub(super) fn set_option<T: Plain>(
    socket: &Socket,
    level: c_int,
    name: c_int,
    value: T,
) -> io::Result<()> {
    let len = size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` lives through the call and has `len` readable bytes.
    check(unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast::<c_void>(), len)
    })
    .map(drop)
}

/// Sets a socket option that has no fixed size.
#[cfg(target_os = "linux")]
pub(super) fn set_bytes(
    socket: &Socket,
    level: c_int,
    name: c_int,
    value: &[u8],
) -> io::Result<()> {
    let len = value.len() as libc::socklen_t;
    // SAFETY: `value` lives through the call and has `len` readable bytes.
    check(unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, name, value.as_ptr().cast::<c_void>(), len)
    })
    .map(drop)
}

/// Reads a socket option into `buffer` and returns how much of it the kernel filled.
pub(super) fn option_bytes(
    socket: &Socket,
    level: c_int,
    name: c_int,
    buffer: &mut [u8],
) -> io::Result<usize> {
    let mut len = buffer.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes to `buffer`, any of which are valid `u8`s.
    check(unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            level,
            name,
            buffer.as_mut_ptr().cast::<c_void>(),
            &raw mut len,
        )
    })?;
    Ok((len as usize).min(buffer.len()))
}

/// Reads a socket option that is an `int`.
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub(super) fn option(socket: &Socket, level: c_int, name: c_int) -> io::Result<c_int> {
    let mut bytes = [0; size_of::<c_int>()];
    option_bytes(socket, level, name, &mut bytes)?;
    Ok(c_int::from_ne_bytes(bytes))
}

/// Asks a socket a question that `ioctl` answers with an `int`.
pub(super) fn ioctl_int(socket: &Socket, request: IoctlRequest) -> io::Result<c_int> {
    let mut value: c_int = 0;
    // SAFETY: callers pass requests that write one int, and `value` is one.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), request, &raw mut value) })?;
    Ok(value)
}

/// The type of an `ioctl` request here.
#[cfg(all(target_os = "linux", target_env = "musl"))]
pub(super) type IoctlRequest = c_int;
/// The type of an `ioctl` request here.
#[cfg(not(all(target_os = "linux", target_env = "musl")))]
pub(super) type IoctlRequest = libc::c_ulong;

#[cfg(target_os = "linux")]
pub(super) fn u64_at(record: &[u8], filled: usize, offset: usize) -> Option<u64> {
    let bytes = record.get(..filled)?.get(offset..offset + 8)?;
    Some(u64::from_ne_bytes(bytes.try_into().ok()?))
}

/// CPU time of the calling thread, nanoseconds.
pub(super) fn thread_clock() -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is valid for writes of one timespec.
    check(unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) }).ok()?;
    let (seconds, nanos) = (u64::try_from(time.tv_sec).ok()?, u64::try_from(time.tv_nsec).ok()?);
    Some(seconds * 1_000_000_000 + nanos)
}

/// A part of a record the kernel filled `filled` bytes of, or `None` where it is shorter.
pub(super) fn u32_at(record: &[u8], filled: usize, offset: usize) -> Option<u32> {
    let bytes = record.get(..filled)?.get(offset..offset + 4)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

/// Receives one datagram; `destination` finds the local address in one control message, given its
/// level, type and data.
pub(super) fn recv_with_control(
    socket: &Socket,
    buffer: &mut [u8],
    destination: fn(c_int, c_int, &[u8]) -> Option<SocketAddr>,
) -> io::Result<Arrived> {
    let mut control = Control::EMPTY;
    // SAFETY: every pointer in `message` stays valid through the call with the length beside it;
    // the address storage is socket2's, which takes the length the kernel wrote.
    let ((len, message), from) = unsafe {
        SockAddr::try_init(|storage, storage_len| {
            let mut part =
                libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
            let mut message: libc::msghdr = std::mem::zeroed();
            message.msg_name = storage.cast();
            message.msg_namelen = *storage_len;
            message.msg_iov = &raw mut part;
            message.msg_iovlen = 1;
            control.lend_to(&mut message);
            let len = check_len(libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0))?;
            *storage_len = message.msg_namelen;
            Ok((len, message))
        })?
    };
    let from = from.as_socket().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
    Ok(Arrived { len, from, to: find_control(&message, destination) })
}

/// What `find` finds in a control message of a received `message`.
fn find_control<T>(
    message: &libc::msghdr,
    find: fn(c_int, c_int, &[u8]) -> Option<T>,
) -> Option<T> {
    let mut found = None;
    each_control(message, |level, kind, data| {
        found = found.take().or_else(|| find(level, kind, data))
    });
    found
}

/// Goes through the control messages of a received `message`: level, type and data of each.
pub(super) fn each_control(message: &libc::msghdr, mut take: impl FnMut(c_int, c_int, &[u8])) {
    // SAFETY: the kernel set `msg_control` and `msg_controllen` to a chain of whole headers within
    // the caller's buffer, which outlives this call; the macros stay inside of it.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(message);
        while let Some(found) = header.as_ref() {
            let head = libc::CMSG_LEN(0) as usize;
            #[allow(clippy::unnecessary_cast, reason = "the type differs between systems")]
            let len = (found.cmsg_len as usize).saturating_sub(head);
            let data = std::slice::from_raw_parts(libc::CMSG_DATA(header), len);
            take(found.cmsg_level, found.cmsg_type, data);
            header = libc::CMSG_NXTHDR(message, header);
        }
    }
}

/// The local address of an `in6_pktinfo`: the address, then the index of the interface, which
/// makes the scope of a link-local one.
pub(super) fn ipv6_destination(data: &[u8]) -> Option<SocketAddr> {
    let octets: [u8; 16] = data.get(..16)?.try_into().ok()?;
    let index = u32_at(data, data.len(), 16)?;
    let address = std::net::Ipv6Addr::from(octets);
    let scope = if address.is_unicast_link_local() { index } else { 0 };
    Some(std::net::SocketAddrV6::new(address, 0, 0, scope).into())
}

/// A timeout for `ppoll`, at most 68 years, which the seconds of every system can hold.
#[cfg(any(target_os = "linux", target_os = "freebsd"))]
pub(super) fn timespec(timeout: Duration) -> libc::timespec {
    libc::timespec {
        tv_sec: timeout.as_secs().min(i32::MAX as u64) as _,
        tv_nsec: timeout.subsec_nanos() as _,
    }
}

/// The result of a system call that says -1 for an error.
pub(super) fn check(result: c_int) -> io::Result<c_int> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// The number of bytes of a system call that says -1 for an error.
pub(super) fn check_len(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Room for control messages, aligned as their headers must be.
#[repr(align(8))]
pub(super) struct Control([u8; CONTROL_BYTES]);

impl Control {
    pub(super) const EMPTY: Self = Self([0; CONTROL_BYTES]);

    /// Has the kernel write there; for as long as it does, this has to stay where it is.
    pub(super) fn lend_to(&mut self, message: &mut libc::msghdr) {
        message.msg_control = self.0.as_mut_ptr().cast();
        message.msg_controllen = CONTROL_BYTES as _;
    }
}

/// Control messages to send.
#[cfg(target_os = "linux")]
pub(super) struct Outgoing {
    room: Control,
    filled: usize,
}

#[cfg(target_os = "linux")]
impl Outgoing {
    pub(super) const EMPTY: Self = Self { room: Control::EMPTY, filled: 0 };

    /// Adds one, of at most 32 bytes; three fit.
    pub(super) fn push(&mut self, level: c_int, kind: c_int, data: &[u8]) {
        let len = data.len() as u32;
        // SAFETY: the macro calculates with a number.
        let (message_len, space) = unsafe { (libc::CMSG_LEN(len), libc::CMSG_SPACE(len)) };
        let header =
            libc::cmsghdr { cmsg_len: message_len as _, cmsg_level: level, cmsg_type: kind };
        let room = &mut self.room.0[self.filled..][..space as usize];
        // SAFETY: the header and the data behind it lie in `room`, which is aligned for it, as all that
        // was filled before has a length of whole words.
        unsafe {
            let at = room.as_mut_ptr().cast::<libc::cmsghdr>();
            at.write(header);
            std::ptr::copy_nonoverlapping(data.as_ptr(), libc::CMSG_DATA(at), data.len());
        }
        self.filled += space as usize;
    }

    /// Has a message that is sent carry them; until then this has to stay where it is.
    pub(super) fn lend_to(&mut self, message: &mut libc::msghdr) {
        if self.filled > 0 {
            message.msg_control = self.room.0.as_mut_ptr().cast();
            message.msg_controllen = self.filled as _;
        }
    }
}

const CONTROL_BYTES: usize = 128;
