//! Reads a password: from the environment, from a terminal without an echo, or as a line of the
//! standard input. Never from the command line, which every user of a machine can read.

use std::io::{self, BufRead, IsTerminal};

use linerate::error::Error;
use linerate::process;

use super::signals;

/// The password of a login.
///
/// # Errors
/// [`Error::Usage`] when there is none.
pub(super) fn read() -> Result<String, Error> {
    match from_environment()? {
        Some(password) => Ok(password),
        None if io::stdin().is_terminal() => prompt("Password: "),
        None => line(io::stdin().lock()),
    }
}

/// A password to set: who types it without seeing it types it twice.
///
/// # Errors
/// As [`read`]; also when the two are not the same.
pub(super) fn read_new() -> Result<String, Error> {
    let is_typed = from_environment()?.is_none() && io::stdin().is_terminal();
    let password = read()?;
    if is_typed && prompt("The same again: ")? != password {
        return Err(Error::Usage("the two passwords are not the same".into()));
    }
    Ok(password)
}

fn from_environment() -> Result<Option<String>, Error> {
    let password = std::env::var_os(VARIABLE).map(|password| {
        password.into_string().map_err(|_| Error::Usage(format!("{VARIABLE} must be valid UTF-8")))
    });
    password.transpose()
}

/// On Ctrl-C the terminal gets its echo back before anything ends. The echo is off before the question
/// is there: a program that waits for it answers sooner than a person.
fn prompt(text: &str) -> Result<String, Error> {
    let ask = || process::without_echo(|| rpassword::prompt_password(text));
    let read = signals::without_interrupt(ask);
    read.flatten().map_err(|error| match error.kind() {
        io::ErrorKind::Interrupted => Error::Interrupted { by: None },
        _ => unread(&error),
    })
}

fn line(input: impl BufRead) -> Result<String, Error> {
    let mut line = Vec::new();
    input.take(MOST_BYTES).read_until(b'\n', &mut line).map_err(|error| unread(&error))?;
    if line.is_empty() {
        return Err(unread(&io::ErrorKind::UnexpectedEof.into()));
    }
    let line = String::from_utf8(line);
    let line = line.map_err(|_| Error::Usage("the password must be valid UTF-8".into()))?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

fn unread(error: &io::Error) -> Error {
    Error::Usage(format!("no password: {error}; set {VARIABLE}, or type it when asked"))
}

/// iperf3 reads it since 3.7.
const VARIABLE: &str = "IPERF3_PASSWORD";
/// Far more than any key takes.
const MOST_BYTES: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_as_on_any_system() {
        let rows: [(&[u8], Result<&str, &str>); 7] = [
            (b"rossi\n", Ok("rossi")),
            (b"rossi\r\n", Ok("rossi")),
            (b"rossi", Ok("rossi")),
            (b"rossi\nverdi\n", Ok("rossi")),
            (b"\n", Ok("")),
            (
                b"",
                Err(
                    "no password: unexpected end of file; set IPERF3_PASSWORD, or type it when asked",
                ),
            ),
            (b"\xff\n", Err("the password must be valid UTF-8")),
        ];
        for (bytes, expected) in rows {
            let read = line(bytes).map_err(|error| error.to_string());
            assert_eq!(read.as_deref().map_err(String::as_str), expected, "{bytes:?}");
        }
    }
}
