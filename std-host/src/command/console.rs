//! Where a command's lines go: standard output and the error stream, or the log file and nowhere else.
//! A reader who has gone is no error: nothing more is said to him, and the test goes on. A disk that is
//! full is one: the test goes on, it is said once, and a command whose result was lost does not end as a
//! success. Where a server has a log, all that is not the report is a line of it.

use std::fs::OpenOptions;
use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use linerate::cli::{IPERF3_PROGRAM, OutputConfig, program_name};
use linerate::error::{Error, ExitCode};
use linerate::report::log::{LogFormat, LogLine, Severity};
use linerate::report::{Stamps, Warning, error_line, warning_text};
use linerate_core::protocol::error_text;
use linerate_core::test::End;

use super::events;
use super::writer::{Output, Place, Text, Trouble, Writer, has_no_reader};

/// What a command prints as.
#[derive(Debug, Clone, Copy)]
pub(super) struct Purpose {
    pub(super) end: End,
    /// A server's log, if there is one.
    pub(super) log: Option<LogFormat>,
    /// It goes on when its report is lost, and that is no failure of its own.
    pub(super) lasts: bool,
}

/// The lines of one command. Each call has whole lines written, at once, and waits for nobody.
#[derive(Debug)]
pub(super) struct Console {
    form: Arc<Form>,
    writer: Writer,
    has_file: bool,
    /// Only documents belong where reports go.
    is_json: bool,
    explains: bool,
}

impl Console {
    /// As the options say.
    ///
    /// # Errors
    /// [`Error::System`] with iperf3's words when the log file cannot be opened.
    pub(super) fn open(output: &OutputConfig, purpose: Purpose) -> Result<Self, Error> {
        let file = output.logfile.as_ref().map(|path| {
            OpenOptions::new().append(true).create(true).open(path).map_err(|error| {
                let text = error_text::text(LOG_FILE).unwrap_or_default();
                Error::system(format!("{text}: {}", path.display()), &error)
            })
        });
        let file = file.transpose()?;
        let has_file = file.is_some();
        let report = match file {
            Some(file) => Output::bytes(file),
            None => Output::bytes(io::stdout()),
        };
        let form = Arc::new(Form::new(output, purpose));
        let what = match &output.logfile {
            Some(path) => format!("unable to write log file: {}", path.display()),
            None => LOST_OUTPUT.into(),
        };
        let tell = {
            let form = form.clone();
            move |place, trouble: Trouble<'_>| form.trouble(place, trouble, &what)
        };
        let writer = Writer::new(report, errors(), tell);
        Ok(Self { form, writer, has_file, is_json: output.is_json(), explains: output.explain })
    }

    /// Prints a piece of a report.
    pub(super) fn print(&self, text: String) {
        if !text.is_empty() {
            self.writer.put(Place::Report, text);
        }
    }

    /// Says something where complaints go: `event` as a line of the log, if there is one, else `plain`
    /// as a line of text.
    pub(super) fn tell(&self, plain: &str, event: &LogLine) {
        let line = self.form.line(plain, event);
        self.writer.put(self.complaints(), line);
    }

    /// Says what went wrong.
    pub(super) fn error(&self, error: &Error) {
        self.writer.put(self.complaints(), self.form.error(error));
    }

    /// Writes a line of the log, if there is one.
    pub(super) fn log(&self, line: &LogLine) {
        if let Some(line) = self.form.log_line(line) {
            self.writer.put(self.complaints(), line);
        }
    }

    /// Whether there is a log.
    pub(super) fn has_log(&self) -> bool {
        self.form.purpose.log.is_some()
    }

    /// Says what went wrong and was put into a log file where somebody looks first: to the terminal that
    /// a daemon has not left, or to the event log of a service.
    pub(super) fn error_beside_file(&self, error: &Error) {
        if self.has_file {
            let text = error_line(&self.form.program, error, self.form.purpose.end) + "\n";
            self.writer.put(Place::Errors, Text { text, severity: Severity::Error });
        }
    }

    /// Warns of options without effect: on the terminal, whatever the log file, unless there is a log.
    pub(super) fn warn_of_options(&self, text: &str) {
        if self.has_log() {
            return self.log(&LogLine::warning(text));
        }
        let text = format!("warning: {text}\n");
        self.writer.put(Place::Errors, Text { text, severity: Severity::Warning });
    }

    /// Prints a warning, of the test with this number on a server, if somebody is there to read it or it
    /// was asked for. The documents carry it in any case.
    pub(super) fn warn(&self, warning: &Warning, test_number: Option<u64>) {
        let has_reader = !self.has_file && io::stderr().is_terminal();
        if self.form.program != IPERF3_PROGRAM && (self.explains || has_reader) {
            let text = warning_text(warning);
            let event = LogLine::warning(&text).with("test", test_number);
            self.tell(&format!("{}: warning: {text}", self.form.program), &event);
        }
    }

    /// Prints what is told of the inside of a test.
    pub(super) fn debug(&self, text: &str, test_number: Option<u64>) {
        let number = test_number.map_or(String::new(), |number| format!("#{number} "));
        let event = LogLine::new("debug").with("test", test_number).with("text", text);
        self.tell(&format!("{}: debug: {number}{text}", self.form.program), &event);
    }

    /// Has a panic be a line of the log, if there is one.
    pub(super) fn log_panics(self: &Arc<Self>) {
        if self.has_log() {
            let console = self.clone();
            std::panic::set_hook(Box::new(move |panic| {
                console.log(&LogLine::new("error").with("reason", panic.to_string()));
            }));
        }
    }

    /// Waits until everything is written, so long at most.
    pub(super) fn flush(&self, patience: Option<Duration>) {
        self.writer.flush(patience);
    }

    /// A log file takes complaints, too, unless it holds documents.
    fn complaints(&self) -> Place {
        if self.has_file && !self.is_json { Place::Report } else { Place::Errors }
    }
}

/// What the lines look like that are not the report.
#[derive(Debug)]
struct Form {
    program: String,
    stamps: Option<Stamps>,
    purpose: Purpose,
}

impl Form {
    fn new(output: &OutputConfig, purpose: Purpose) -> Self {
        Self { program: output.program.clone(), stamps: stamps(output), purpose }
    }

    fn line(&self, plain: &str, event: &LogLine) -> Text {
        self.log_line(event).unwrap_or_else(|| {
            let line = format!("{plain}\n");
            let text = self.stamps.as_ref().map_or(line.clone(), |stamps| stamps.put(&line));
            Text { text, severity: event.severity() }
        })
    }

    /// A line of the log has its own time.
    fn log_line(&self, event: &LogLine) -> Option<Text> {
        let format = self.purpose.log?;
        let text = event.show(format, SystemTime::now()) + "\n";
        Some(Text { text, severity: event.severity() })
    }

    fn error(&self, error: &Error) -> Text {
        let end = self.purpose.end;
        self.line(&error_line(&self.program, error, end), &LogLine::error(error, end))
    }

    fn trouble(&self, place: Place, trouble: Trouble<'_>, what: &str) -> Text {
        match trouble {
            Trouble::Begins(error) => {
                let error = Error::system(what, error);
                if place == Place::Report && !self.purpose.lasts {
                    // The first one says why.
                    let _ = LOST.set(error.clone());
                }
                self.error(&error)
            }
            Trouble::Over(left_out) => {
                let text = format!("output is written again, {left_out} pieces of it are lost");
                self.line(&format!("{}: warning: {text}", self.program), &LogLine::warning(&text))
            }
        }
    }
}

/// Says that the log file cannot be opened, before there is a console.
pub(super) fn complain_of(error: &Error, output: &OutputConfig, end: End) {
    let form = Form::new(output, Purpose { end, log: None, lasts: false });
    write_error(form.error(error));
}

/// Where errors go: to the event log of a service, else to the error stream.
fn errors() -> Output {
    events::log().unwrap_or_else(|| Output::bytes(io::stderr()))
}

/// No stamps stand beside JSON.
fn stamps(output: &OutputConfig) -> Option<Stamps> {
    output.timestamps.clone().filter(|_| !output.is_json()).map(Stamps::new)
}

/// Prints on the standard output.
pub(super) fn print(text: &str) {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if !has_no_reader(&error) => lose(&error),
        _ => {}
    }
}

/// Prints a line on the error stream.
pub(super) fn complain(line: &str) {
    write_error(Text { text: format!("{line}\n"), severity: Severity::Error });
}

fn write_error(text: Text) {
    // There is nowhere else to say that this stream is gone.
    let _ = match errors() {
        Output::Bytes(mut stream) => stream.write_all(text.text.as_bytes()),
        Output::Events(mut report) => report(text.severity, text.text.trim_end()),
    };
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
    let error = Error::system(LOST_OUTPUT, error);
    if LOST.set(error.clone()).is_ok() {
        let program = program_name(std::env::args_os().next());
        complain(&error_line(&program, &error, End::Client));
    }
}

/// Why the first piece of a report was lost.
static LOST: OnceLock<Error> = OnceLock::new();

const LOST_OUTPUT: &str = "unable to write the output";
/// iperf3's number for a log file that cannot be opened.
const LOG_FILE: i32 = 17;
