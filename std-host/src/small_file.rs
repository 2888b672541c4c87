//! Files that say what a server is to do: policy, keys, users. Each is read as a whole, whatever its path
//! leads to: a pipe would hold up who reads it, and a device may have no end. So what was opened is
//! looked at, not what the path meant before.

use std::fmt;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

/// What stands behind a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(dead_code, reason = "not every system has all of them")]
pub(crate) enum Kind {
    File,
    Folder,
    /// Who opens it may have to wait for somebody at its other end.
    Pipe,
    Socket,
    Device,
}

/// What is in the file, if it is a regular one of so many bytes at most.
///
/// # Errors
/// The system's, and one that says what the file must be.
pub(crate) fn read(path: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
    let file = open_now(OpenOptions::new().read(true), path, |kind| kind == Kind::File)?;
    let metadata = file.metadata()?;
    let mut bytes = Vec::new();
    if metadata.len() <= most_bytes {
        // It may grow, and what is in a file of the system's own has no length before it is read.
        file.take(most_bytes + 1).read_to_end(&mut bytes)?;
    }
    if metadata.len().max(bytes.len() as u64) > most_bytes {
        return Err(wrong(format!("must be at most {} KiB", most_bytes >> 10)));
    }
    Ok(bytes)
}

/// Opens what is there without waiting for it, if it is of a kind that fits.
///
/// # Errors
/// The system's, and one that says what the file must be.
pub(crate) fn open_now(
    options: &mut OpenOptions,
    path: &Path,
    fits: fn(Kind) -> bool,
) -> io::Result<File> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    }
    let file = options.open(path).map_err(|error| match std::fs::metadata(path) {
        // Some systems open no folder, none a socket, and no pipe that nobody reads.
        Ok(metadata) if !fits(kind(&metadata)) => no_file(kind(&metadata)),
        _ => error,
    })?;
    let kind = kind_of(&file)?;
    if fits(kind) { Ok(file) } else { Err(no_file(kind)) }
}

/// Empties what was opened, if that is something that holds bytes.
///
/// # Errors
/// The system's.
pub(crate) fn empty(file: &File) -> io::Result<()> {
    match kind_of(file)? {
        Kind::File => file.set_len(0),
        _ => Ok(()),
    }
}

/// What was opened.
///
/// # Errors
/// The system's.
#[cfg(not(windows))]
pub(crate) fn kind_of(file: &File) -> io::Result<Kind> {
    file.metadata().map(|metadata| kind(&metadata))
}

/// Windows has metadata of what is on a disk, and errors for all else.
#[cfg(windows)]
pub(crate) fn kind_of(file: &File) -> io::Result<Kind> {
    use std::os::windows::io::AsHandle;

    use linerate_windows::{FileKind, file_kind};
    match file_kind(file.as_handle()) {
        FileKind::Disk => file.metadata().map(|metadata| kind(&metadata)),
        FileKind::Pipe => Ok(Kind::Pipe),
        FileKind::Device => Ok(Kind::Device),
    }
}

fn no_file(kind: Kind) -> io::Error {
    wrong(format!("must be a regular file, not a {kind}"))
}

#[cfg(unix)]
fn kind(metadata: &Metadata) -> Kind {
    use std::os::unix::fs::FileTypeExt;
    let kind = metadata.file_type();
    match () {
        () if kind.is_file() => Kind::File,
        () if kind.is_dir() => Kind::Folder,
        () if kind.is_fifo() => Kind::Pipe,
        () if kind.is_socket() => Kind::Socket,
        () => Kind::Device,
    }
}

#[cfg(not(unix))]
fn kind(metadata: &Metadata) -> Kind {
    match () {
        () if metadata.is_file() => Kind::File,
        () if metadata.is_dir() => Kind::Folder,
        () => Kind::Device,
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File => "file",
            Self::Folder => "folder",
            Self::Pipe => "pipe",
            Self::Socket => "socket",
            Self::Device => "device",
        })
    }
}

fn wrong(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::error::words;

    const MOST: u64 = 1024;

    /// A folder of its own for one test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("linerate-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&path).expect("a folder for temporary files");
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn problem(path: impl AsRef<Path>) -> String {
        words(&read(path.as_ref(), MOST).expect_err("no regular file"))
    }

    #[test]
    fn file_is_read_up_to_its_bound() {
        let folder = Folder::new("bound");
        let file = folder.0.join("file");
        for bytes in [0, 1, 1023, 1024] {
            std::fs::write(&file, vec![b'x'; bytes]).expect("own file");
            assert_eq!(read(&file, MOST).expect("short enough").len(), bytes);
        }
        std::fs::write(&file, [b'x'; 1025]).expect("own file");
        assert_eq!(problem(&file), "must be at most 1 KiB");
    }

    #[test]
    fn folder_is_no_file() {
        let folder = Folder::new("folder");
        assert_eq!(problem(&folder.0), "must be a regular file, not a folder");
    }

    #[cfg(unix)]
    #[test]
    fn what_has_no_end_is_no_file() {
        let folder = Folder::new("endless");
        let (socket, pipe, link) =
            (folder.0.join("socket"), folder.0.join("pipe"), folder.0.join("link"));
        let _bound = std::os::unix::net::UnixListener::bind(&socket).expect("own folder");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs");
        assert!(made.success());
        std::os::unix::fs::symlink(&pipe, &link).expect("own folder");
        for (path, kind) in [
            (Path::new("/dev/zero"), "device"),
            (Path::new("/dev/null"), "device"),
            (&socket, "socket"),
            (&pipe, "pipe"),
            (&link, "pipe"),
        ] {
            assert_eq!(problem(path), format!("must be a regular file, not a {kind}"));
        }
    }

    #[cfg(windows)]
    #[test]
    fn device_in_any_folder_is_no_file() {
        for path in ["NUL", r"\\.\NUL"] {
            assert_eq!(problem(path), "must be a regular file, not a device", "{path}");
        }
    }

    /// Its length is zero until it is read.
    #[cfg(target_os = "linux")]
    #[test]
    fn file_of_the_system_is_bounded_too() {
        assert!(!read(Path::new("/proc/self/status"), 1 << 20).expect("it is there").is_empty());
        assert_eq!(problem("/proc/self/status"), "must be at most 1 KiB");
    }
}
