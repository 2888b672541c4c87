//! A network namespace with a TAP device, the example server on it, and iperf3 clients beside it.
//! Everything is taken down when it goes out of scope, also by a panic.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant};

use linerate_tests::namespace::{self, Namespace};
use linerate_tests::process::Process;
use linerate_tests::tool::{Tool, build};
use serde_json::Value;

/// A running server and its end of the wire.
#[derive(Debug)]
pub(crate) struct Board {
    lines: Mutex<Receiver<String>>,
    address: String,
    // Fields are dropped in this order: the server before its network.
    server: Server,
    namespace: Namespace,
}

/// Which way data flows, as the test sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    ToBoard,
    FromBoard,
}

/// The two ends of one way in a client's report.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sides {
    pub(crate) sent: Sum,
    pub(crate) received: Sum,
}

/// Numbers of one of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sum {
    pub(crate) bytes: u64,
    pub(crate) lost: u64,
}

/// Whether this process may do what a board needs. Where it may not, the caller skips and this says
/// so aloud; in continuous integration it is a failure instead.
pub(crate) fn may_make_namespaces() -> bool {
    namespace::may_make_namespaces() && Tool::Iperf3.is_here()
}

impl Board {
    /// Starts a server at `board` on a wire whose host end is `host`, each with its prefix length.
    pub(crate) fn start(host: &str, board: &str) -> Self {
        static SERVER: LazyLock<std::path::PathBuf> = LazyLock::new(|| {
            build(&["--package", "linerate-embedded", "--example", "smoltcp_server"])
        });
        let namespace = Namespace::new();
        namespace.ip("tuntap add dev tap0 mode tap");
        let nodad = if host.contains(':') { "nodad" } else { "" };
        namespace.ip(&format!("address add {host} dev tap0 {nodad}"));
        namespace.ip("link set tap0 up");
        let mut command = namespace.command(SERVER.as_path());
        let mut child = command
            .args(["tap0", board])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the ip command is there");
        let output = child.stdout.take().expect("it is piped");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                // Nobody listens once the test is over.
                let _ = sender.send(line);
            }
        });
        let address = board.split('/').next().unwrap_or(board).to_owned();
        let board = Self { lines: Mutex::new(lines), address, server: Server(child), namespace };
        board.wait_for_line("ready");
        board
    }

    /// Starts an iperf3 client that prints a document.
    pub(crate) fn start_client(&self, options: &[&str]) -> Process {
        let mut command = self.namespace.within(&Tool::Iperf3.command());
        Process::start(command.args(["-c", &self.address, "-J"]).args(options))
    }

    /// Runs a client that must do well, and returns its report.
    pub(crate) fn run_client(&self, options: &[&str]) -> Value {
        let ended = self.start_client(options).wait(LIMIT).unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(ended.code, Some(0), "{ended}");
        let report = ended.document().unwrap_or_else(|why| panic!("{why}"));
        assert!(report["error"].is_null(), "{ended}");
        report
    }

    /// Waits for a line that begins so, and passes over all before it.
    pub(crate) fn wait_for_line(&self, beginning: &str) -> String {
        let lines = self.lines.lock().expect("one test uses it");
        let deadline = Instant::now() + LIMIT;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match lines.recv_timeout(left) {
                Ok(line) if line.starts_with(beginning) => return line,
                Ok(_) => {}
                Err(why) => panic!("no line {beginning:?} came from the server: {why}"),
            }
        }
    }

    /// What the server measured on each of its streams: its role, bytes, packets.
    pub(crate) fn measured(&self, streams: usize) -> Vec<(&'static str, u64, u64)> {
        (0..streams)
            .map(|_| {
                let line = self.wait_for_line("stream ");
                let role = if line.contains("Receiver") { "Receiver" } else { "Sender" };
                let number = |before: &str| {
                    let text = line.split(before).next().and_then(|text| text.rsplit(' ').next());
                    text.and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{line}"))
                };
                (role, number(" bytes"), number(" packets"))
            })
            .collect()
    }
}

impl Way {
    pub(crate) fn role_of_board(self) -> &'static str {
        match self {
            Self::ToBoard => "Receiver",
            Self::FromBoard => "Sender",
        }
    }

    /// Both ends of this way; with data both ways the client's own way has the plain names.
    pub(crate) fn sides(self, report: &Value, is_bidirectional: bool) -> Sides {
        let is_second = is_bidirectional && self == Self::FromBoard;
        let suffix = if is_second { "_bidir_reverse" } else { "" };
        let sum = |name: &str| {
            let sum = &report["end"][format!("{name}{suffix}")];
            Sum {
                bytes: sum["bytes"].as_u64().unwrap_or(0),
                lost: sum["lost_packets"].as_u64().unwrap_or(0),
            }
        };
        Sides { sent: sum("sum_sent"), received: sum("sum_received") }
    }
}

impl Sides {
    /// What the client shows of the server.
    pub(crate) fn of_board(&self, way: Way) -> Sum {
        match way {
            Way::ToBoard => self.received,
            Way::FromBoard => self.sent,
        }
    }
}

#[derive(Debug)]
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // Already ended is as good.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const LIMIT: Duration = Duration::from_secs(20);
