//! Standard output and the error stream. A reader who has gone is no error: nothing more is said to
//! him, and the test goes on. A disk that is full is one: the test goes on, but a command whose
//! report was lost does not end as a success.

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::OnceLock;

use linerate::cli::{OutputConfig, program_name};
use linerate::error::{Error, ExitCode};
use linerate::report::{Warning, error_line, warning_text};
use linerate_core::test::End;

/// Prints a piece of a report, whole, at once.
pub(super) fn print(text: &str) {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => lose(&error),
        _ => {}
    }
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

/// Prints a line on the error stream.
pub(super) fn complain(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Prints a warning, if somebody is there to read it or it was asked for. The documents carry it
/// in any case.
pub(super) fn warn(output: &OutputConfig, warning: &Warning) {
    if !super::is_plain(output) && (output.explain || io::stderr().is_terminal()) {
        complain(&format!("{}: warning: {}", output.program, warning_text(warning)));
    }
}
