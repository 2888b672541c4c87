//! Where a command's lines go: standard output and the error stream, or the log file and nowhere else.
//! A reader who has gone is no error: nothing more is said to him, and the test goes on. A disk that is
//! full is one: the test goes on, but a command whose report was lost does not end as a success.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::{Mutex, OnceLock, PoisonError};

use linerate::cli::{IPERF3_PROGRAM, OutputConfig, program_name};
use linerate::error::{Error, ExitCode};
use linerate::report::{Stamps, Warning, error_line, warning_text};
use linerate_core::protocol::error_text;
use linerate_core::test::End;

/// The lines of one command. Each call writes whole lines, at once.
#[derive(Debug)]
pub(super) struct Console {
    program: String,
    log: Option<Mutex<File>>,
    stamps: Option<Stamps>,
    /// Only documents belong where reports go.
    is_json: bool,
    explains: bool,
}

impl Console {
    /// As the options say.
    ///
    /// # Errors
    /// [`Error::System`] with iperf3's words when the log file cannot be opened.
    pub(super) fn open(output: &OutputConfig) -> Result<Self, Error> {
        let log = output.logfile.as_ref().map(|path| {
            OpenOptions::new().append(true).create(true).open(path).map_err(|error| {
                let text = error_text::text(LOG_FILE).unwrap_or_default();
                Error::system(format!("{text}: {}", path.display()), &error)
            })
        });
        let log = log.transpose()?.map(Mutex::new);
        let is_json = output.is_json();
        let stamps = stamps(output);
        let (program, explains) = (output.program.clone(), output.explain);
        Ok(Self { program, log, stamps, is_json, explains })
    }

    /// The terminal, for what is said before there is a log file.
    pub(super) fn terminal(output: &OutputConfig) -> Self {
        let (program, stamps) = (output.program.clone(), stamps(output));
        Self { program, log: None, stamps, is_json: output.is_json(), explains: output.explain }
    }

    /// Prints a piece of a report.
    pub(super) fn print(&self, text: &str) {
        match &self.log {
            _ if text.is_empty() => {}
            Some(log) => append(log, text),
            None => print(text),
        }
    }

    /// Prints a line on the error stream. A log file takes it too, unless it holds documents.
    pub(super) fn complain(&self, line: &str) {
        let mut line = format!("{line}\n");
        if let Some(stamps) = self.stamps.as_ref().filter(|_| !self.is_json) {
            line = stamps.put(&line);
        }
        match &self.log {
            Some(log) if !self.is_json => append(log, &line),
            _ => write_error(&line),
        }
    }

    /// Writes a line of the log of a service, which has its own time, where complaints go.
    pub(super) fn log(&self, line: &str) {
        let line = format!("{line}\n");
        match &self.log {
            Some(log) if !self.is_json => append(log, &line),
            _ => write_error(&line),
        }
    }

    /// Says to the terminal what [`complain`](Self::complain) put into a log file: for a daemon that
    /// has not left its terminal.
    pub(super) fn complain_beside_log(&self, line: &str) {
        if self.log.is_some() {
            write_error(&format!("{line}\n"));
        }
    }

    /// Prints a warning, if somebody is there to read it or it was asked for. The documents carry it
    /// in any case.
    pub(super) fn warn(&self, warning: &Warning) {
        let has_reader = self.log.is_none() && io::stderr().is_terminal();
        if self.program != IPERF3_PROGRAM && (self.explains || has_reader) {
            self.complain(&format!("{}: warning: {}", self.program, warning_text(warning)));
        }
    }

    /// Prints what is told of the inside of a test.
    pub(super) fn debug(&self, text: &str) {
        self.complain(&format!("{}: debug: {text}", self.program));
    }
}

/// No stamps stand in JSON.
fn stamps(output: &OutputConfig) -> Option<Stamps> {
    output.timestamps.clone().map(Stamps::new)
}

/// Prints on the standard output.
pub(super) fn print(text: &str) {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => lose(&error),
        _ => {}
    }
}

/// Prints a line on the error stream.
pub(super) fn complain(line: &str) {
    write_error(&format!("{line}\n"));
}

fn append(log: &Mutex<File>, text: &str) {
    let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
    if let Err(error) = log.write_all(text.as_bytes()) {
        lose(&error);
    }
}

fn write_error(text: &str) {
    // There is nowhere else to say that this stream is gone.
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// What to end with where the command itself came to `code`.
pub(crate) fn exit_code(code: ExitCode) -> ExitCode {
    match (code, LOST.get()) {
        (ExitCode::Success, Some(lost)) => lost.exit_code(),
        _ => code,
    }
}

/// Says once that a piece of a report could not be written.
fn lose(error: &io::Error) {
    let error = Error::system("unable to write the output", error);
    if LOST.set(error.clone()).is_ok() {
        let program = program_name(std::env::args_os().next());
        complain(&error_line(&program, &error, End::Client));
    }
}

/// Why the first piece of a report was lost.
static LOST: OnceLock<Error> = OnceLock::new();

/// iperf3's number for a log file that cannot be opened.
const LOG_FILE: i32 = 17;
