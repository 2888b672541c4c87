//! Makes what a server with logins needs: a pair of keys, and lines of a users file.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use getrandom::SysRng;
use rsa::pkcs8::{EncodePrivateKey, EncodePublicKey, LineEnding};

use super::client::{check_password, check_username};
use super::keys::KEY_BITS;
use super::users::{Users, hash, to_hex};
use crate::error::Error;

/// The two files of a pair of keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyFiles {
    /// For the server alone (`--rsa-private-key-path`).
    pub private: PathBuf,
    /// For its clients (`--rsa-public-key-path`).
    pub public: PathBuf,
}

impl KeyFiles {
    /// The names that begin with `prefix`.
    pub fn new(prefix: &str) -> Self {
        Self {
            private: format!("{prefix}-private.pem").into(),
            public: format!("{prefix}-public.pem").into(),
        }
    }
}

/// Makes a pair of keys of so many bits and writes them where nothing is yet, the private one for
/// its owner's eyes alone where the system has such a thing.
///
/// # Errors
/// [`Error::Usage`] for a size that no server takes, [`Error::System`] when a file is there already
/// or cannot be written.
pub fn make_keys(bits: usize, files: &KeyFiles) -> Result<(), Error> {
    if !KEY_BITS.contains(&bits) {
        let (least, most) = (KEY_BITS.start(), KEY_BITS.end());
        return Err(Error::Usage(format!("--bits {bits}: must be {least} to {most}")));
    }
    let (private, public) = new_pair(bits)
        .ok_or_else(|| Error::Usage(format!("--bits {bits}: no key of this size can be made")))?;
    write_new(&files.private, private.as_bytes(), Readers::Owner)?;
    write_new(&files.public, public.as_bytes(), Readers::Everybody).inspect_err(|_| {
        // Half a pair is of no use, and would be in the way of the next try.
        let _ = std::fs::remove_file(&files.private);
    })
}

/// The private and the public key as texts.
fn new_pair(bits: usize) -> Option<(String, String)> {
    let key = rsa::PrivateKey::new(&mut SysRng, bits).ok()?;
    let private = key.to_pkcs8_pem(LineEnding::LF).ok()?;
    let public = key.as_public_key().to_public_key_pem(LineEnding::LF).ok()?;
    Some((private.to_string(), public))
}

/// The line of a users file that lets this user in with this password.
///
/// # Errors
/// [`Error::Usage`] when iperf3 servers could not read the name or the password.
pub fn user_line(name: &str, password: &str) -> Result<String, Error> {
    check_username(name).map_err(Error::Usage)?;
    check_password(password).map_err(Error::Usage)?;
    Ok(format!("{name},{}\n", to_hex(&hash(name.as_bytes(), password.as_bytes()))))
}

/// Adds a user to a users file, which is made if it is not there.
///
/// # Errors
/// As [`user_line`]; [`Error::Usage`] as well when the file knows the user, [`Error::System`] when
/// it cannot be read or written.
pub fn add_user(file: &Path, name: &str, password: &str) -> Result<(), Error> {
    let mut line = user_line(name, password)?;
    let failed = |error: io::Error| Error::system(file.display().to_string(), &error);
    match Users::read(file) {
        Ok(users) if users.knows(name.as_bytes()) => {
            let file = file.display();
            return Err(Error::Usage(format!("{file} has the user \"{name}\" already")));
        }
        Ok(users) if users.lacks_line_end() => line.insert(0, '\n'),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return write_new(file, line.as_bytes(), Readers::Owner);
        }
        Err(error) => return Err(failed(error)),
    }
    let mut file = OpenOptions::new().append(true).open(file).map_err(failed)?;
    file.write_all(line.as_bytes()).map_err(failed)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Readers {
    Owner,
    Everybody,
}

/// Writes a file that is not there yet.
fn write_new(path: &Path, bytes: &[u8], readers: Readers) -> Result<(), Error> {
    let failed = |error: io::Error| Error::system(path.display().to_string(), &error);
    let mut file = create_new(path, readers).map_err(failed)?;
    file.write_all(bytes).map_err(failed)
}

#[cfg(unix)]
fn create_new(path: &Path, readers: Readers) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let mode = if readers == Readers::Owner { 0o600 } else { 0o644 };
    OpenOptions::new().write(true).create_new(true).mode(mode).open(path)
}

/// What others may read is inherited from the folder.
#[cfg(not(unix))]
fn create_new(path: &Path, _: Readers) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}
