//! The event log of Windows: lines of a program in the log `Application`, under the name of a source.
//! A source is a key of the registry that names a file with the texts of its events. One that comes with
//! every Windows since XP has a text for each number to 1000 that is nothing but the line itself, and is
//! what `eventcreate` uses; without one the event viewer shows each line behind an apology.

use std::ffi::OsStr;
use std::io;
use std::ptr::{null, null_mut};

use windows_sys::Win32::Foundation::{ERROR_FILE_NOT_FOUND, ERROR_SUCCESS, HANDLE};
use windows_sys::Win32::System::EventLog::{
    DeregisterEventSource, EVENTLOG_ERROR_TYPE, EVENTLOG_INFORMATION_TYPE, EVENTLOG_WARNING_TYPE,
    RegisterEventSourceW, ReportEventW,
};
use windows_sys::Win32::System::Registry::{
    HKEY, HKEY_LOCAL_MACHINE, KEY_QUERY_VALUE, KEY_SET_VALUE, REG_DWORD, REG_EXPAND_SZ,
    REG_OPTION_NON_VOLATILE, RRF_NOEXPAND, RRF_RT_REG_EXPAND_SZ, RegCloseKey, RegCreateKeyExW,
    RegDeleteKeyW, RegGetValueW, RegSetValueExW,
};

use crate::text::wide;

/// How grave an event is, which is what people sort by, and its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// Number 1.
    Information,
    /// Number 2.
    Warning,
    /// Number 3.
    Error,
}

/// The log, open for one source.
#[derive(Debug)]
pub struct EventSource(HANDLE);

// SAFETY: the handle names an entry of the event log's service, which any thread may use.
unsafe impl Send for EventSource {}
// SAFETY: as above; each call is one message to that service.
unsafe impl Sync for EventSource {}

impl EventSource {
    /// Opens it. The source need not be registered for that.
    ///
    /// # Errors
    /// The system's, such as when the service of the event log is stopped.
    pub fn open(name: &OsStr) -> io::Result<Self> {
        let name = wide(name);
        // SAFETY: `name` ends with a zero and lives through the call; no server is this machine.
        let handle = unsafe { RegisterEventSourceW(null(), name.as_ptr()) };
        if handle.is_null() { Err(io::Error::last_os_error()) } else { Ok(Self(handle)) }
    }

    /// Writes an event. What is longer than the log takes is cut.
    ///
    /// # Errors
    /// The system's.
    pub fn report(&self, weight: Weight, text: &str) -> io::Result<()> {
        let (kind, number) = match weight {
            Weight::Information => (EVENTLOG_INFORMATION_TYPE, 1),
            Weight::Warning => (EVENTLOG_WARNING_TYPE, 2),
            Weight::Error => (EVENTLOG_ERROR_TYPE, 3),
        };
        let text: Vec<u16> =
            text.encode_utf16().filter(|&unit| unit != 0).take(MOST_UNITS).chain([0]).collect();
        let texts = [text.as_ptr()];
        // SAFETY: the handle is open as long as `self` lives; `texts` has the one pointer that is
        // announced, to a text that ends with a zero; there is no user and no further data.
        let written = unsafe {
            let texts = texts.as_ptr();
            ReportEventW(self.0, kind, 0, number, null_mut(), 1, 0, texts, null())
        };
        if written == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

impl Drop for EventSource {
    fn drop(&mut self) {
        // SAFETY: the handle is open, and nobody uses it afterwards.
        unsafe { DeregisterEventSource(self.0) };
    }
}

/// Names the texts of a source, unless it is another program's already.
///
/// # Errors
/// The system's: it takes an administrator.
pub fn register(source: &OsStr) -> io::Result<()> {
    match texts_of(source) {
        Ok(Some(texts)) if texts != wide(TEXTS) => return Ok(()),
        _ => {}
    }
    let key = Key::create(source)?;
    key.set("EventMessageFile", REG_EXPAND_SZ, &bytes_of(&wide(TEXTS)))?;
    let kinds = EVENTLOG_ERROR_TYPE | EVENTLOG_WARNING_TYPE | EVENTLOG_INFORMATION_TYPE;
    key.set("TypesSupported", REG_DWORD, &u32::from(kinds).to_ne_bytes())
}

/// Takes the name of a source away, if it is one that [`register`] made.
///
/// # Errors
/// The system's.
pub fn unregister(source: &OsStr) -> io::Result<()> {
    if texts_of(source).ok().flatten() != Some(wide(TEXTS)) {
        return Ok(());
    }
    let path = path(source);
    // SAFETY: `path` ends with a zero and lives through the call; the root is always open.
    check(unsafe { RegDeleteKeyW(HKEY_LOCAL_MACHINE, path.as_ptr()) })
}

/// The file with the texts of a source, with the zero at its end; none where it has none.
fn texts_of(source: &OsStr) -> io::Result<Option<Vec<u16>>> {
    let (path, value) = (path(source), wide("EventMessageFile"));
    let mut units = [0u16; 300];
    let mut bytes = size_of_val(&units) as u32;
    // SAFETY: both names end with a zero; the system writes at most as many bytes as `bytes` says, which
    // `units` has, and says in it how many it wrote.
    let got = unsafe {
        RegGetValueW(
            HKEY_LOCAL_MACHINE,
            path.as_ptr(),
            value.as_ptr(),
            RRF_RT_REG_EXPAND_SZ | RRF_NOEXPAND,
            null_mut(),
            units.as_mut_ptr().cast(),
            &raw mut bytes,
        )
    };
    match got {
        ERROR_FILE_NOT_FOUND => Ok(None),
        _ => check(got).map(|()| Some(units[..bytes as usize / 2].to_vec())),
    }
}

/// A key of the registry, closed when dropped.
struct Key(HKEY);

impl Key {
    fn create(source: &OsStr) -> io::Result<Self> {
        let path = path(source);
        let mut key = null_mut();
        // SAFETY: `path` ends with a zero; `key` takes the handle; all else may be absent.
        check(unsafe {
            RegCreateKeyExW(
                HKEY_LOCAL_MACHINE,
                path.as_ptr(),
                0,
                null(),
                REG_OPTION_NON_VOLATILE,
                KEY_SET_VALUE | KEY_QUERY_VALUE,
                null(),
                &raw mut key,
                null_mut(),
            )
        })?;
        Ok(Self(key))
    }

    fn set(&self, name: &str, kind: u32, value: &[u8]) -> io::Result<()> {
        let name = wide(name);
        let len = value.len() as u32;
        // SAFETY: the key is open; `name` ends with a zero; `value` has `len` bytes, and both live
        // through the call.
        check(unsafe { RegSetValueExW(self.0, name.as_ptr(), 0, kind, value.as_ptr(), len) })
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        // SAFETY: the key is open, and nobody uses it afterwards.
        unsafe { RegCloseKey(self.0) };
    }
}

fn path(source: &OsStr) -> Vec<u16> {
    let mut path = wide(SOURCES);
    path.pop();
    path.extend(wide(source));
    path
}

fn bytes_of(units: &[u16]) -> Vec<u8> {
    units.iter().flat_map(|unit| unit.to_ne_bytes()).collect()
}

fn check(result: u32) -> io::Result<()> {
    match result {
        ERROR_SUCCESS => Ok(()),
        error => Err(io::Error::from_raw_os_error(error as i32)),
    }
}

const SOURCES: &str = r"SYSTEM\CurrentControlSet\Services\EventLog\Application\";
const TEXTS: &str = r"%SystemRoot%\System32\EventCreate.exe";
/// What the log takes of one text.
const MOST_UNITS: usize = 31_000;
