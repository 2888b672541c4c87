//! A child process that never outlives its test: its output is read as it comes, waiting has a limit,
//! signals go to its own id, and dropping it ends it.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

/// A running child.
#[derive(Debug)]
pub struct Process {
    child: Child,
    line: String,
    started: Instant,
    stdout: Option<JoinHandle<Vec<u8>>>,
    stderr: Option<JoinHandle<Vec<u8>>>,
}

/// What a child left behind.
#[derive(Debug)]
pub struct Ended {
    /// The command line, for messages.
    pub line: String,
    /// The exit code; none when a signal ended it.
    pub code: Option<i32>,
    /// All of its standard output.
    pub stdout: String,
    /// All of its standard error.
    pub stderr: String,
    /// From its start to its end.
    pub took: Duration,
}

impl Process {
    /// Starts a program with its output captured and nothing to read.
    ///
    /// # Panics
    ///
    /// When the program cannot be started.
    pub fn start(command: &mut Command) -> Self {
        let line = shown(command);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|e| panic!("{line}: {e}"));
        let stdout = child.stdout.take().map(read_all);
        let stderr = child.stderr.take().map(read_all);
        Self { child, line, started: Instant::now(), stdout, stderr }
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        self.try_status().is_none()
    }

    /// Waits for the end, at most `limit`; a child that takes longer is ended and handed back as an
    /// error.
    ///
    /// # Errors
    ///
    /// A message with what the child printed until then.
    pub fn wait(mut self, limit: Duration) -> Result<Ended, String> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(status) = self.try_status() {
                return Ok(self.collect(status));
            }
            if Instant::now() >= deadline {
                let _ = self.child.kill();
                let status = self.child.wait().expect("a child that was killed can be waited for");
                let ended = self.collect(status);
                return Err(format!("{ended} did not end within {limit:?}"));
            }
            std::thread::sleep(POLL);
        }
    }

    /// Sends a signal by name, such as `INT`, to this child alone.
    ///
    /// # Panics
    ///
    /// When there is no `kill` command.
    pub fn signal(&mut self, name: &str) {
        let status = Command::new("kill")
            .args(["-s", name, &self.child.id().to_string()])
            .stderr(Stdio::null())
            .status();
        status.expect("the kill command is there");
    }

    fn try_status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a child of this process can be waited for")
    }

    fn collect(&mut self, status: ExitStatus) -> Ended {
        let text = |reader: &mut Option<JoinHandle<Vec<u8>>>| {
            let bytes = reader.take().and_then(|reader| reader.join().ok()).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        Ended {
            line: self.line.clone(),
            code: status.code(),
            stdout: text(&mut self.stdout),
            stderr: text(&mut self.stderr),
            took: self.started.elapsed(),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Already ended is the usual case, and then there is nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ended {
    /// The one JSON document on its standard output.
    ///
    /// # Errors
    ///
    /// A message with everything that was printed, when it is not exactly one valid document.
    pub fn document(&self) -> Result<Value, String> {
        serde_json::from_str(&self.stdout).map_err(|e| format!("{self} printed no document: {e}"))
    }

    /// All JSON documents on its standard output, one after the other.
    ///
    /// # Errors
    ///
    /// As for [`document`](Self::document).
    pub fn documents(&self) -> Result<Vec<Value>, String> {
        serde_json::Deserializer::from_str(&self.stdout)
            .into_iter()
            .collect::<Result<_, _>>()
            .map_err(|e| format!("{self} printed something that is no document: {e}"))
    }
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "`{}` (exit code {:?}, {:.1?})", self.line, self.code, self.took)?;
        writeln!(f, "--- stdout\n{}", last_part(&self.stdout))?;
        write!(f, "--- stderr\n{}---", last_part(&self.stderr))
    }
}

/// The end of a text, where the reason usually is.
fn last_part(text: &str) -> &str {
    let from = text.len().saturating_sub(MOST_SHOWN);
    let from = (from..text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(from);
    &text[from..]
}

fn read_all(mut source: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read before an error is still worth showing.
        let _ = source.read_to_end(&mut bytes);
        bytes
    })
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

const POLL: Duration = Duration::from_millis(5);
const MOST_SHOWN: usize = 2000;
