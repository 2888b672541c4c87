//! A server of either tool on a free port, of the loopback or of a network namespace.

use std::net::{Ipv6Addr, TcpListener, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

#[cfg(target_os = "linux")]
use crate::namespace::Namespace;
use crate::process::{Ended, Process};
use crate::tool::Tool;

/// A running server, ended when dropped.
#[derive(Debug)]
pub struct Server {
    process: Process,
    port: u16,
}

impl Server {
    /// Starts a server with these options after `-s -p PORT` and waits until it listens. A port that
    /// somebody else took in between is given up for another.
    ///
    /// # Panics
    ///
    /// When no server comes up on any of the ports tried.
    pub fn start(tool: Tool, options: &[&str]) -> Self {
        Self::start_by(tool, || tool.command(), options)
    }

    /// The same in a network namespace.
    ///
    /// # Panics
    ///
    /// As for [`start`](Self::start).
    #[cfg(target_os = "linux")]
    pub fn start_in(namespace: &Namespace, tool: Tool, options: &[&str]) -> Self {
        Self::start_by(tool, || namespace.within(&tool.command()), options)
    }

    fn start_by(tool: Tool, command: impl Fn() -> Command, options: &[&str]) -> Self {
        let mut last = String::new();
        for _ in 0..PORTS_TRIED {
            match Self::try_start(tool, command(), options, free_port()) {
                Ok(server) => return server,
                Err(message) => last = message,
            }
        }
        panic!("no {tool} server came up: {last}");
    }

    /// Starts one by a command of the caller's own making.
    ///
    /// # Panics
    ///
    /// As for [`start`](Self::start).
    pub fn start_as(tool: Tool, command: impl Fn() -> Command, options: &[&str]) -> Self {
        Self::start_by(tool, command, options)
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Sends it a signal such as `INT`.
    pub fn signal(&mut self, name: &str) {
        self.process.signal(name);
    }

    /// The port it listens on, for TCP and UDP.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        self.process.is_running()
    }

    /// Waits for the end of a server that was started for one test (`-1`).
    ///
    /// # Errors
    ///
    /// When it does not end in time.
    pub fn wait(self) -> Result<Ended, String> {
        self.process.wait(TIME_TO_END)
    }

    /// Ends it by a signal such as `INT` and hands back all that it printed.
    ///
    /// # Errors
    ///
    /// When the signal does not end it in time.
    pub fn stop(mut self, signal: &str) -> Result<Ended, String> {
        self.process.signal(signal);
        self.process.wait(TIME_TO_END)
    }

    fn try_start(
        tool: Tool,
        mut command: Command,
        options: &[&str],
        port: u16,
    ) -> Result<Self, String> {
        command.args(["-s", "-p", &port.to_string()]).args(options);
        let mut process = Process::start(&mut command);
        let deadline = Instant::now() + TIME_TO_START;
        loop {
            if !process.is_running() {
                return Err(process.wait(TIME_TO_END)?.to_string());
            }
            // Somebody else may have the UDP half of the port, which ends the server next.
            let is_whole = tool == Tool::Iperf3 || hears_datagrams(process.id(), port);
            if is_listening(process.id(), port) && is_whole {
                std::thread::sleep(SECOND_LOOK);
                if process.is_running() {
                    return Ok(Self { process, port });
                }
                continue;
            }
            if Instant::now() >= deadline {
                drop(process);
                return Err(format!("it did not listen within {TIME_TO_START:?}"));
            }
            std::thread::sleep(POLL);
        }
    }
}

/// A port that nobody uses for TCP or UDP, from below the range that systems hand to outgoing
/// connections, so that no client takes it by chance.
pub fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let start = std::process::id().wrapping_mul(97);
    loop {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let offset = start.wrapping_add(step) % u32::from(LAST_PORT - FIRST_PORT);
        let port = FIRST_PORT + u16::try_from(offset).expect("less than a difference of two ports");
        let any = (Ipv6Addr::UNSPECIFIED, port);
        let any4 = ("0.0.0.0", port);
        let tcp_is_free = TcpListener::bind(any).or_else(|_| TcpListener::bind(any4)).is_ok();
        if tcp_is_free && UdpSocket::bind(any).or_else(|_| UdpSocket::bind(any4)).is_ok() {
            return port;
        }
    }
}

/// Whether anybody listens on a TCP port in the network of a process, found out without a connection:
/// a server would take that for its client.
#[cfg(target_os = "linux")]
pub fn is_listening(process: u32, port: u16) -> bool {
    is_in_table(process, ["tcp", "tcp6"], port, "0A")
}

/// Whether anybody has a UDP port in the network of a process, connected to nobody.
#[cfg(target_os = "linux")]
fn hears_datagrams(process: u32, port: u16) -> bool {
    is_in_table(process, ["udp", "udp6"], port, "07")
}

#[cfg(target_os = "linux")]
fn is_in_table(process: u32, tables: [&str; 2], port: u16, state: &str) -> bool {
    let suffix = format!(":{port:04X}");
    tables.iter().any(|table| {
        std::fs::read_to_string(format!("/proc/{process}/net/{table}")).is_ok_and(|table| {
            table.lines().any(|line| {
                let mut columns = line.split_whitespace().skip(1);
                let (local, _, found) = (columns.next(), columns.next(), columns.next());
                local.is_some_and(|local| local.ends_with(&suffix)) && found == Some(state)
            })
        })
    })
}

/// Elsewhere by trying to take the port, which can collide with the server's own try; the caller
/// then starts another.
#[cfg(not(target_os = "linux"))]
pub fn is_listening(_process: u32, port: u16) -> bool {
    std::thread::sleep(Duration::from_millis(200));
    TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).is_err()
}

#[cfg(not(target_os = "linux"))]
fn hears_datagrams(_process: u32, _port: u16) -> bool {
    true
}

const FIRST_PORT: u16 = 12_000;
const LAST_PORT: u16 = 32_000;
const PORTS_TRIED: usize = 5;
const TIME_TO_START: Duration = Duration::from_secs(10);
const TIME_TO_END: Duration = Duration::from_secs(15);
const POLL: Duration = Duration::from_millis(5);
const SECOND_LOOK: Duration = Duration::from_millis(20);
