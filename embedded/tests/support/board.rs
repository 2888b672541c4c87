//! A network namespace with a TAP device, the example on it, and iperf3 beside it.
//! Everything is taken down when it goes out of scope, also by a panic.

use std::io::{BufRead, BufReader};
use std::ops::Add;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant};

use linerate_tests::namespace::{self, Namespace};
use linerate_tests::process::Process;
use linerate_tests::server::Server as RealServer;
use linerate_tests::tool::{Tool, build};
use serde_json::Value;

/// A namespace with a TAP device, and who is to be at its two ends.
#[derive(Debug)]
pub(crate) struct Wire {
    namespace: Namespace,
    /// Each with its prefix length.
    host: String,
    board: String,
}

/// A running server of the example and its wire.
#[derive(Debug)]
pub(crate) struct Board {
    lines: Mutex<Receiver<String>>,
    // Fields are dropped in this order: the server before its network.
    server: Server,
    wire: Wire,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) bytes: u64,
    pub(crate) packets: u64,
    pub(crate) lost: u64,
}

/// What the example tells of a stream.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) role: &'static str,
    pub(crate) sides: Sides,
}

/// Whether this process may do what a board needs. Where it may not, the caller skips and this says
/// so aloud; in continuous integration it is a failure instead.
pub(crate) fn may_make_namespaces() -> bool {
    namespace::may_make_namespaces() && Tool::Iperf3.is_here()
}

impl Wire {
    /// Lays one with these addresses at its ends, each with its prefix length.
    pub(crate) fn new(host: &str, board: &str) -> Self {
        let namespace = Namespace::new();
        namespace.ip("tuntap add dev tap0 mode tap");
        let nodad = if host.contains(':') { "nodad" } else { "" };
        namespace.ip(&format!("address add {host} dev tap0 {nodad}"));
        namespace.ip("link set tap0 up");
        Self { namespace, host: host.to_owned(), board: board.to_owned() }
    }

    /// Runs the example as a client of a real server on the host's end. Both must do well; returns what
    /// the client told of its streams and the server's report.
    pub(crate) fn run_board_as_client(&self, options: &[&str]) -> (Vec<Stream>, Value) {
        let server = RealServer::start_in(&self.namespace, Tool::Iperf3, &["-1", "-J"]);
        let mut command = self.example();
        command.args(["-c", address(&self.host), "-p", &server.port().to_string()]).args(options);
        let client = Process::start(&mut command).wait(LIMIT).unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(client.code, Some(0), "{client}");
        let server = server.wait().unwrap_or_else(|why| panic!("{why}"));
        let report = server.document().unwrap_or_else(|why| panic!("{why}"));
        assert!(report["error"].is_null(), "{server}");
        let lines = client.stdout.lines().filter(|line| line.starts_with("stream "));
        (lines.map(Stream::parse).collect(), report)
    }

    /// The example on the board's end, a server as long as nothing is added.
    fn example(&self) -> Command {
        static EXAMPLE: LazyLock<PathBuf> = LazyLock::new(|| {
            build(&["--package", "linerate-embedded", "--example", "smoltcp_tap"])
        });
        let mut command = self.namespace.command(EXAMPLE.as_path());
        command.args(["tap0", &self.board]);
        command
    }
}

impl Board {
    /// Starts a server at `board` on a wire whose host end is `host`, each with its prefix length.
    pub(crate) fn start(host: &str, board: &str) -> Self {
        let wire = Wire::new(host, board);
        let mut command = wire.example();
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the ip command is there");
        let output = child.stdout.take().expect("it is piped");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                // Nobody listens once the test is over.
                let _ = sender.send(line);
            }
        });
        let board = Self { lines: Mutex::new(lines), server: Server(child), wire };
        board.wait_for_line("ready");
        board
    }

    /// Starts an iperf3 client that prints a document.
    pub(crate) fn start_client(&self, options: &[&str]) -> Process {
        let mut command = self.wire.namespace.within(&Tool::Iperf3.command());
        Process::start(command.args(["-c", address(&self.wire.board), "-J"]).args(options))
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

    /// What the server tells of each of its streams.
    pub(crate) fn streams(&self, count: usize) -> Vec<Stream> {
        (0..count).map(|_| Stream::parse(&self.wait_for_line("stream "))).collect()
    }
}

impl Way {
    pub(crate) fn role_of_board(self) -> &'static str {
        match self {
            Self::ToBoard => "Receiver",
            Self::FromBoard => "Sender",
        }
    }
}

impl Sides {
    /// The sums of a report; with data both ways those of the client's receiving have longer names.
    pub(crate) fn of_report(report: &Value, is_bidirectional_reverse: bool) -> Self {
        let suffix = if is_bidirectional_reverse { "_bidir_reverse" } else { "" };
        let sum = |name: &str| {
            let sum = &report["end"][format!("{name}{suffix}")];
            let number = |key: &str| sum[key].as_u64().unwrap_or(0);
            Sum { bytes: number("bytes"), packets: number("packets"), lost: number("lost_packets") }
        };
        Self { sent: sum("sum_sent"), received: sum("sum_received") }
    }

    /// What the board measured itself.
    pub(crate) fn of_board(&self, way: Way) -> Sum {
        match way {
            Way::ToBoard => self.received,
            Way::FromBoard => self.sent,
        }
    }

    /// What the host measured.
    pub(crate) fn of_host(&self, way: Way) -> Sum {
        match way {
            Way::ToBoard => self.sent,
            Way::FromBoard => self.received,
        }
    }
}

impl Add for Sides {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { sent: self.sent + other.sent, received: self.received + other.received }
    }
}

impl Add for Sum {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            bytes: self.bytes + other.bytes,
            packets: self.packets + other.packets,
            lost: self.lost + other.lost,
        }
    }
}

impl Stream {
    fn parse(line: &str) -> Self {
        let role = if line.contains("Receiver") { "Receiver" } else { "Sender" };
        let side = |name: &str| {
            let (_, text) = line.split_once(name).unwrap_or_else(|| panic!("no {name}: {line}"));
            let number = |before: &str| {
                let text = text.split(before).next().and_then(|text| text.rsplit(' ').next());
                text.and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{line}"))
            };
            Sum { bytes: number(" bytes"), packets: number(" packets"), lost: number(" lost") }
        };
        Self { role, sides: Sides { sent: side(": sent "), received: side("; received ") } }
    }
}

/// Without its prefix length.
fn address(with_prefix: &str) -> &str {
    with_prefix.split('/').next().unwrap_or(with_prefix)
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
