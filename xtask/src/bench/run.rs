//! One test between two programs: what arrived, what it cost both, and when it left.

use std::fs;
use std::io::{self, Read};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::capture::{Capture, Departure};
use super::document::Received;
use super::network::Network;
use super::tool::Tool;

/// What is run.
pub(super) struct Test<'a> {
    pub(super) client: &'a Tool,
    pub(super) server: &'a Tool,
    pub(super) network: &'a Arc<Network>,
    /// Of the client, beside address, port, time and JSON.
    pub(super) flags: Vec<String>,
    pub(super) seconds: u32,
    pub(super) captures: bool,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) received: Received,
    pub(super) client: Usage,
    pub(super) server: Usage,
    pub(super) departures: Vec<Departure>,
    /// The client's document.
    pub(super) document: Value,
}

/// What a program took, from its start to its end.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Usage {
    pub(super) cpu: Duration,
    pub(super) peak_bytes: u64,
}

impl Test<'_> {
    /// Runs it to its end.
    pub(super) fn run(&self) -> Result<Ran, String> {
        let server = self.start_server()?;
        let capture = match self.captures {
            true => Some(Capture::start(self.network, server.port)?),
            false => None,
        };
        let mut command = self.client.command(|program| self.network.client(program));
        command.args(["-c", self.network.server_address(), "-p", &server.port.to_string()]);
        command.args(["-J", "-t", &self.seconds.to_string()]).args(&self.flags);
        let client = Running::start(&mut command, server.port)?;
        let patience = Duration::from_secs(u64::from(self.seconds)) + TIME_TO_END;
        let (said, client) = client.end(patience).map_err(|why| format!("client: {why}"))?;
        let document: Value = serde_json::from_slice(&said)
            .map_err(|_| format!("client: {}", String::from_utf8_lossy(&said).trim()))?;
        if let Some(error) = document["error"].as_str() {
            return Err(format!("client: {error}"));
        }
        let departures = capture.map_or(Ok(Vec::new()), Capture::finish)?;
        let (said, server) = server.end(TIME_TO_END).map_err(|why| format!("server: {why}"))?;
        let receivers = match self.flags.iter().any(|flag| flag == "-R") {
            true => document.clone(),
            false => serde_json::from_slice(&said).map_err(|e| format!("server: {e}"))?,
        };
        let received = Received::read(&receivers)?;
        Ok(Ran { received, client, server, departures, document })
    }

    /// A server for one test.
    fn start_server(&self) -> Result<Running, String> {
        let mut command = self.server.command(|program| self.network.server(program));
        start_server(&mut command, &["-1", "-J"])
    }
}

/// Starts a server that listens on a port of its own.
pub(super) fn start_server(command: &mut Command, flags: &[&str]) -> Result<Running, String> {
    let port = free_port().map_err(|e| format!("no free port: {e}"))?;
    command.args(["-s", "-p", &port.to_string()]).args(flags);
    let mut server = Running::start(command, port)?;
    let deadline = Instant::now() + TIME_TO_START;
    while !is_listening(server.id(), port) {
        if server.has_ended() {
            let (said, _) = server.end(TIME_TO_START)?;
            return Err(format!("server: {}", String::from_utf8_lossy(&said).trim()));
        }
        if Instant::now() >= deadline {
            return Err(format!("server: it did not listen within {TIME_TO_START:?}"));
        }
        std::thread::sleep(POLL);
    }
    Ok(server)
}

fn free_port() -> io::Result<u16> {
    TcpListener::bind("127.0.0.1:0")?.local_addr().map(|address| address.port())
}

/// By the kernel's tables: a connection would be the server's one client.
#[cfg(target_os = "linux")]
fn is_listening(process: u32, port: u16) -> bool {
    let suffix = format!(":{port:04X}");
    let listens = |line: &str| {
        let mut columns = line.split_whitespace().skip(1);
        let (local, _, state) = (columns.next(), columns.next(), columns.next());
        local.is_some_and(|local| local.ends_with(&suffix)) && state == Some("0A")
    };
    ["tcp", "tcp6"].iter().any(|table| {
        let table = fs::read_to_string(format!("/proc/{process}/net/{table}"));
        table.is_ok_and(|table| table.lines().any(listens))
    })
}

#[cfg(not(target_os = "linux"))]
fn is_listening(_: u32, _: u16) -> bool {
    std::thread::sleep(Duration::from_millis(300));
    true
}

/// A program that runs; killed when dropped before its end.
pub(super) struct Running {
    child: Option<Child>,
    pub(super) port: u16,
    said: Receiver<Vec<u8>>,
    complained: Receiver<Vec<u8>>,
}

impl Running {
    fn start(command: &mut Command, port: u16) -> Result<Self, String> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .map_err(|e| format!("{}: {e}", command.get_program().to_string_lossy()))?;
        let said = read_all(child.stdout.take().expect("stdout is a pipe"));
        let complained = read_all(child.stderr.take().expect("stderr is a pipe"));
        Ok(Self { child: Some(child), port, said, complained })
    }

    pub(super) fn id(&self) -> u32 {
        self.child.as_ref().map_or(0, Child::id)
    }

    fn has_ended(&mut self) -> bool {
        fs::read_to_string(format!("/proc/{}/stat", self.id()))
            .is_ok_and(|stat| stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z')))
    }

    /// Waits for its end: what it said, and what it took.
    fn end(mut self, patience: Duration) -> Result<(Vec<u8>, Usage), String> {
        let said = self.said.recv_timeout(patience);
        let said = said.map_err(|_| format!("it did not end within {patience:?}"))?;
        let child = self.child.take().expect("it is waited for once");
        let usage = usage_of(child).map_err(|e| e.to_string())?;
        // Who says nothing else says why there.
        let said = if said.is_empty() { self.complained.recv().unwrap_or_default() } else { said };
        Ok((said, usage))
    }
}

/// What a program says has to go somewhere, or it would wait for its reader.
fn read_all(mut pipe: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, all) = mpsc::channel();
    std::thread::spawn(move || {
        let mut read = Vec::new();
        let _ = pipe.read_to_end(&mut read);
        let _ = sender.send(read);
    });
    all
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // What has ended cannot be killed, which is just as well.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[cfg(unix)]
fn usage_of(mut child: Child) -> io::Result<Usage> {
    use wait4::Wait4;

    let used = child.wait4()?.rusage;
    Ok(Usage { cpu: used.utime + used.stime, peak_bytes: used.maxrss })
}

#[cfg(not(unix))]
fn usage_of(mut child: Child) -> io::Result<Usage> {
    child.wait().map(|_| Usage::default())
}

/// The most memory that a process has had so far.
pub(super) fn peak_of(process: u32) -> Result<u64, String> {
    let status = fs::read_to_string(format!("/proc/{process}/status"));
    let status = status.map_err(|e| format!("no memory of the process: {e}"))?;
    high_water(&status).ok_or_else(|| "the system does not tell its memory".into())
}

fn high_water(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
}

const TIME_TO_START: Duration = Duration::from_secs(10);
const TIME_TO_END: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_high_water_mark_is_read_in_bytes() {
        assert_eq!(high_water("Name:\tx\nVmHWM:\t    4096 kB\nVmRSS:\t 1 kB\n"), Some(4 << 20));
        assert_eq!(high_water("Name:\tx\n"), None);
    }
}
