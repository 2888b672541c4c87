//! Texts as the system takes them.

use std::ffi::OsStr;
use std::os::windows::ffi::OsStrExt;

/// UTF-16 with a zero behind it.
pub(crate) fn wide(text: impl AsRef<OsStr>) -> Vec<u16> {
    text.as_ref().encode_wide().chain([0]).collect()
}
