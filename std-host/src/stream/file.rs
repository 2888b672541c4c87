//! The file behind the data of one end (`-F`), in iperf3's way: each stream opens it for itself and
//! begins at its start. A client sends its file where it sends at all, and stores what it receives
//! else; a server the other way round. So a test both ways copies the client's file to the server's,
//! where iperf3 would empty the file that it is about to send. A client waits for the other end of a
//! pipe; a server, which others wait for, takes none.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use linerate_core::protocol::code::error_number;
use linerate_core::protocol::error_text;
use linerate_core::test::{Direction, End, Limits, Role};

use crate::error::Error;
use crate::report::DiskFile;
use crate::small_file::{self, Kind};

/// A file that can be opened.
#[derive(Debug, Clone)]
pub(crate) struct DataFile {
    path: PathBuf,
    role: Role,
    end: End,
}

impl DataFile {
    /// The file of one end of a test, opened once to see that it can be. What is in a file to store
    /// in is still there afterwards.
    ///
    /// # Errors
    /// What the system says when it cannot be opened.
    pub(crate) fn new(path: PathBuf, end: End, direction: Direction) -> io::Result<Self> {
        let role = match (end, direction) {
            (End::Client, Direction::Reverse)
            | (End::Server, Direction::Forward | Direction::Bidirectional) => Role::Receiver,
            _ => Role::Sender,
        };
        let file = Self { path, role, end };
        let opened = file.open_by(match role {
            Role::Sender => for_sending(),
            Role::Receiver => for_storing(),
        })?;
        match small_file::kind_of(&opened)? {
            Kind::Folder => Err(io::ErrorKind::IsADirectory.into()),
            _ => Ok(file),
        }
    }

    /// What the streams do that it is for; those that do the opposite have nothing to do with it.
    pub(crate) fn role(&self) -> Role {
        self.role
    }

    /// How much there is to send; `None` for a device or a pipe, which have no size.
    pub(crate) fn size(&self) -> Option<u64> {
        let metadata = std::fs::metadata(&self.path).ok()?;
        metadata.is_file().then_some(metadata.len())
    }

    /// What ends a client's test that is to move this file and nothing else: its size, or its end where
    /// an amount would be one of the other way too, and where a system's file has no size before it is
    /// read. `default` stands where the file has no end of its own.
    pub(crate) fn limits(&self, direction: Direction, default: Limits) -> Limits {
        match (self.role, self.size(), direction) {
            (Role::Receiver, ..) | (_, None, _) => default,
            (_, Some(0), _) | (_, Some(_), Direction::Bidirectional) => Limits::default(),
            (_, Some(size), _) => Limits { bytes: Some(size), ..Limits::default() },
        }
    }

    /// What reports say of it.
    pub(crate) fn record(&self) -> DiskFile {
        DiskFile {
            name: self.path.display().to_string(),
            size_bytes: self.size().unwrap_or(0),
            role: self.role,
        }
    }

    /// Opens it for one stream, empty if it is to store in.
    pub(super) fn open(&self) -> io::Result<File> {
        match self.role {
            Role::Sender => self.open_by(for_sending()),
            Role::Receiver => {
                let file = self.open_by(for_storing())?;
                small_file::empty(&file)?;
                Ok(file)
            }
        }
    }

    fn open_by(&self, mut options: OpenOptions) -> io::Result<File> {
        match self.end {
            End::Client => options.open(&self.path),
            End::Server => {
                small_file::open_now(&mut options, &self.path, |kind| kind != Kind::Pipe)
            }
        }
    }
}

/// What is wrong with a file, in iperf3's words.
pub(crate) fn unusable_file(path: &Path, error: &io::Error) -> Error {
    let text = error_text::text(error_number::FILE).unwrap_or_default();
    Error::system(format!("{text} {}", path.display()), error)
}

fn for_sending() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true);
    options
}

/// What is stored is for its owner's eyes, as with iperf3.
fn for_storing() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}
