//! The console that somebody types at.

use std::io;
use std::os::windows::io::{AsRawHandle, RawHandle};

use windows_sys::Win32::System::Console::{
    CONSOLE_MODE, ENABLE_ECHO_INPUT, ENABLE_LINE_INPUT, ENABLE_PROCESSED_INPUT,
    FlushConsoleInputBuffer, GetConsoleMode, SetConsoleMode,
};

/// While it lives, the console at the standard input shows nothing of what is typed and makes no signal
/// of Ctrl-C. What was typed before is forgotten.
#[derive(Debug)]
pub struct Hidden {
    before: CONSOLE_MODE,
}

impl Hidden {
    /// # Errors
    /// The system's, where the standard input is no console.
    pub fn new() -> io::Result<Self> {
        let before = mode()?;
        set_mode(before & !(ENABLE_ECHO_INPUT | ENABLE_LINE_INPUT | ENABLE_PROCESSED_INPUT))?;
        // SAFETY: a handle of any kind may be given; the call touches no memory of this process.
        unsafe { FlushConsoleInputBuffer(input()) };
        Ok(Self { before })
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        // A console that is gone needs no echo.
        let _ = set_mode(self.before);
    }
}

fn input() -> RawHandle {
    io::stdin().as_raw_handle()
}

fn mode() -> io::Result<CONSOLE_MODE> {
    let mut mode = 0;
    // SAFETY: `mode` lives through the call, which fails for a handle that is no console's.
    match unsafe { GetConsoleMode(input(), &raw mut mode) } {
        0 => Err(io::Error::last_os_error()),
        _ => Ok(mode),
    }
}

fn set_mode(mode: CONSOLE_MODE) -> io::Result<()> {
    // SAFETY: as above; no memory is involved.
    match unsafe { SetConsoleMode(input(), mode) } {
        0 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
