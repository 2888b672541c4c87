//! The firmware on an emulated board: QEMU with one image, a network for it, and its log as lines. The
//! machine ends with the value, also by a panic. `cargo xtask firmware` builds the images.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use defmt_decoder::{DecodeError, Table};
use serde_json::Value;

use crate::client;
use crate::namespace::Namespace;
use crate::process::Process;
use crate::server::free_port;
use crate::tool::Tool;

/// A running board.
#[derive(Debug)]
pub struct Board<'n> {
    lines: Mutex<Receiver<String>>,
    /// Its address.
    pub host: &'static str,
    /// The port of TCP and of UDP.
    pub port: u16,
    machine: Machine,
    /// Where the address is known, if it is not everywhere.
    namespace: Option<&'n Namespace>,
}

/// What a board is, beside its image.
#[derive(Debug, Clone, Copy, Default)]
pub struct Setup<'a> {
    /// Words that the image reads when it starts.
    pub arguments: &'a [&'a str],
    /// Time goes by instructions, of which a thousand take a microsecond, and the real one stands
    /// still for the image.
    pub counts_instructions: bool,
}

/// What one stream of a test has measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measured {
    /// What the board was: `Sender` or `Receiver`.
    pub role: String,
    /// Bytes of data.
    pub bytes: u64,
    /// From the start of the stream to its end.
    pub duration: Duration,
    /// Datagrams.
    pub packets: u64,
    /// Those of them that did not come.
    pub lost: u64,
    /// Bytes that the other end says it has moved.
    pub peer_bytes: u64,
}

/// What an image has taken since its start.
#[derive(Debug, Clone, Copy)]
pub struct Costs {
    /// Time in which the core did not sleep.
    pub busy: Duration,
    /// The deepest that the stack ever was.
    pub stack_bytes: u64,
}

impl<'n> Board<'n> {
    /// Starts an image on a network that reaches it by a port of the loopback, with IPv4 only. The
    /// image reaches the host's loopback as 10.0.2.2.
    ///
    /// # Panics
    ///
    /// When it does not come up.
    pub fn start(image: &str, setup: Setup<'_>) -> Self {
        let port = free_port();
        let forward = |protocol| format!("hostfwd={protocol}:127.0.0.1:{port}-:{PORT}");
        let network = format!("user,model=lan9118,{},{}", forward("tcp"), forward("udp"));
        let mut command = Command::new(QEMU);
        let machine = command.args(["-nic", &network]);
        Self::start_by(machine, image, setup, ("127.0.0.1", port), None)
    }

    /// Starts one on a TAP device of a namespace, which then has the addresses of the board's gateway.
    ///
    /// # Panics
    ///
    /// When it does not come up.
    pub fn start_in(namespace: &'n Namespace, host: &'static str, image: &str) -> Self {
        namespace.ip("tuntap add dev tap0 mode tap");
        namespace.ip("address add 10.0.2.2/24 dev tap0");
        namespace.ip("address add fd00::2/64 dev tap0 nodad");
        namespace.ip("link set tap0 up");
        let mut command = namespace.command(Path::new(QEMU));
        command.args(["-nic", "tap,model=lan9118,ifname=tap0,script=no,downscript=no"]);
        Self::start_by(&mut command, image, Setup::default(), (host, PORT), Some(namespace))
    }

    fn start_by(
        command: &mut Command,
        image: &str,
        setup: Setup<'_>,
        (host, port): (&'static str, u16),
        namespace: Option<&'n Namespace>,
    ) -> Self {
        let path = path_of(image);
        let file = std::fs::read(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
        let table = Table::parse(&file).expect("the table of the log is whole");
        let table = table.expect("the image has a log");
        let arguments = [image].into_iter().chain(setup.arguments.iter().copied());
        let arguments = arguments.map(|argument| format!(",arg={argument}"));
        let semihosting = format!("enable=on,target=native{}", arguments.collect::<String>());
        command.args(["-machine", "mps2-an385", "-display", "none", "-monitor", "none"]);
        command.args(["-serial", "null", "-semihosting-config", &semihosting]);
        if setup.counts_instructions {
            command.args(["-icount", "shift=0"]);
        }
        let machine = command.arg("-kernel").arg(&path).stdin(Stdio::null());
        let machine = machine.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut machine = machine.unwrap_or_else(|why| panic!("{QEMU}: {why}"));
        let output = machine.stdout.take().expect("it is piped");
        let errors = machine.stderr.take().expect("it is piped");
        let (sender, lines) = channel();
        let messages = sender.clone();
        std::thread::spawn(move || decode(output, &table, &sender));
        std::thread::spawn(move || pass_on_first(errors, &messages));
        let (lines, machine) = (Mutex::new(lines), Machine(machine));
        let board = Self { lines, host, port, machine, namespace };
        board.wait_for_line("ready");
        board
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.machine.0.id()
    }

    /// The next line of the log, if it comes within `limit`.
    pub fn line(&self, limit: Duration) -> Option<String> {
        self.lines.lock().expect("one thread reads").recv_timeout(limit).ok()
    }

    /// Waits for a line that begins so, and passes over all before it.
    ///
    /// # Panics
    ///
    /// When it does not come, with what came.
    pub fn wait_for_line(&self, beginning: &str) -> String {
        let deadline = Instant::now() + LIMIT;
        let mut others = Vec::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.line(left) {
                Some(line) if line.starts_with(beginning) => return line,
                Some(line) => others.push(line),
                None => panic!("no line {beginning:?} came, but:\n{}", others.join("\n")),
            }
        }
    }

    /// What the streams of a test measured, in their order.
    ///
    /// # Panics
    ///
    /// When the lines do not come.
    pub fn measured(&self, streams: usize) -> Vec<Measured> {
        let lines = (0..streams).map(|_| self.wait_for_line("stream "));
        lines
            .map(|line| Measured {
                role: before(&line, ":").to_owned(),
                bytes: number(&line, " bytes"),
                duration: Duration::from_millis(number(&line, " ms")),
                packets: number(&line, " packets"),
                lost: number(&line, " lost"),
                peer_bytes: number(&line, " at the peer"),
            })
            .collect()
    }

    /// What the image has taken until the end of a test, after the lines of its streams.
    ///
    /// # Panics
    ///
    /// When the line does not come.
    pub fn costs(&self) -> Costs {
        let line = self.wait_for_line("busy ");
        Costs {
            busy: Duration::from_micros(number(&line, " us")),
            stack_bytes: number(&line, " bytes"),
        }
    }

    /// Starts an iperf3 client towards it that prints a document.
    pub fn start_client(&self, options: &[&str]) -> Process {
        let options = [&["-J"], options].concat();
        match self.namespace {
            Some(namespace) => {
                client::start_in(namespace, Tool::Iperf3, self.host, self.port, &options)
            }
            None => client::start(Tool::Iperf3, self.host, self.port, &options),
        }
    }

    /// Runs a client that must do well, and returns its report.
    ///
    /// # Panics
    ///
    /// When it does not.
    pub fn run_client(&self, options: &[&str]) -> Value {
        report_of(self.start_client(options))
    }
}

/// What a client reports that must do well.
///
/// # Panics
///
/// When it does not.
pub fn report_of(client: Process) -> Value {
    let ended = client.wait(LIMIT).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(ended.code, Some(0), "{ended}");
    let report = ended.document().unwrap_or_else(|why| panic!("{why}"));
    assert!(report["error"].is_null(), "{ended}");
    report
}

/// Where an image is.
///
/// # Panics
///
/// When nothing says where they are.
pub fn path_of(image: &str) -> PathBuf {
    let folder = std::env::var_os("LINERATE_FIRMWARE");
    let folder = folder.expect("LINERATE_FIRMWARE is set, as `cargo xtask firmware` does");
    Path::new(&folder).join(image)
}

/// Makes lines of what the image logs, until it ends or nobody wants more.
fn decode(mut output: ChildStdout, table: &Table, lines: &Sender<String>) {
    let mut decoder = table.new_stream_decoder();
    let mut bytes = [0; 4096];
    while let Ok(read @ 1..) = output.read(&mut bytes) {
        decoder.received(&bytes[..read]);
        loop {
            let line = match decoder.decode() {
                Ok(frame) => frame.display_message().to_string(),
                Err(DecodeError::UnexpectedEof) => break,
                Err(DecodeError::Malformed) => "a frame that cannot be read".to_owned(),
            };
            // Nobody listens once the test is over.
            let _ = lines.send(line);
        }
    }
}

/// The first that QEMU says, which is why it does not start; later it says of each frame that did not
/// fit into the controller.
fn pass_on_first(mut errors: ChildStderr, lines: &Sender<String>) {
    let mut first = String::new();
    let _ = errors.by_ref().take(FIRST_BYTES).read_to_string(&mut first);
    // Nobody listens once the test is over.
    let _ = lines.send(first);
    let _ = std::io::copy(&mut errors, &mut std::io::sink());
}

/// The word before these of a line.
fn before<'l>(line: &'l str, words: &str) -> &'l str {
    let text = line.split(words).next().and_then(|text| text.rsplit(' ').next());
    text.unwrap_or_else(|| panic!("no {words:?} in {line:?}"))
}

fn number(line: &str, words: &str) -> u64 {
    before(line, words).parse().unwrap_or_else(|_| panic!("no number before {words:?} in {line:?}"))
}

/// A machine that does not outlive the board.
#[derive(Debug)]
struct Machine(Child);

impl Drop for Machine {
    fn drop(&mut self) {
        // Already ended is as good.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const QEMU: &str = "qemu-system-arm";
/// Of the servers in the images.
const PORT: u16 = 5201;
const LIMIT: Duration = Duration::from_secs(20);
const FIRST_BYTES: u64 = 1000;
