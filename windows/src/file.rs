//! What an open file is.

use std::os::windows::io::{AsRawHandle, BorrowedHandle};

use windows_sys::Win32::Storage::FileSystem::{FILE_TYPE_DISK, FILE_TYPE_PIPE, GetFileType};

/// What stands behind a path. Names such as `NUL`, `CON` and `COM1` are devices in every folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A file or a folder.
    Disk,
    /// A pipe, whose other end may be silent.
    Pipe,
    /// A device.
    Device,
}

/// The kind of what a handle stands for.
pub fn file_kind(file: BorrowedHandle<'_>) -> FileKind {
    // SAFETY: the handle is open as long as it is borrowed; no memory is involved.
    match unsafe { GetFileType(file.as_raw_handle()) } {
        FILE_TYPE_DISK => FileKind::Disk,
        FILE_TYPE_PIPE => FileKind::Pipe,
        _ => FileKind::Device,
    }
}
