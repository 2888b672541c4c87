//! Standard output and the error stream. A reader who has gone is no error: nothing more is said to
//! him, and the test goes on.

use std::io::{self, IsTerminal, Write};

use linerate::cli::OutputConfig;
use linerate::report::{Warning, warning_text};

/// Prints a piece of a report, whole, at once.
pub(super) fn print(text: &str) {
    let mut out = io::stdout().lock();
    // See the module documentation.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

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
