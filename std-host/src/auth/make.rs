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

/// Looks whether a user can have this name, before anybody types a password for it.
///
/// # Errors
/// [`Error::Usage`] when iperf3 servers could not read it.
pub fn check_name(name: &str) -> Result<(), Error> {
    check_username(name).map_err(Error::Usage)
}

/// The line of a users file that lets this user in with this password.
///
/// # Errors
/// [`Error::Usage`] when iperf3 servers could not read the name or the password.
pub fn user_line(name: &str, password: &str) -> Result<String, Error> {
    check_name(name)?;
    check_password(password).map_err(Error::Usage)?;
    Ok(format!("{name},{}\n", to_hex(&hash(name.as_bytes(), password.as_bytes()))))
}

/// Adds a user to a users file, which is made if it is not there.
///
/// # Errors
/// As [`user_line`]; [`Error::System`] when the file knows the user already, or cannot be read or
/// written.
pub fn add_user(file: &Path, name: &str, password: &str) -> Result<(), Error> {
    let mut line = user_line(name, password)?;
    let failed = |error: io::Error| Error::system(file.display().to_string(), &error);
    match Users::read(file) {
        Ok(users) if users.knows(name.as_bytes()) => {
            let message = format!("has the user \"{name}\" already");
            return Err(Error::System { what: file.display().to_string(), message, code: None });
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
    file.write_all(bytes).map_err(|error| {
        // Half a key is worse than none.
        let _ = std::fs::remove_file(path);
        failed(error)
    })
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

#[cfg(test)]
mod tests {
    use super::super::keys::{PrivateKey, PublicKey};
    use super::*;

    /// A folder of its own for one test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
            std::fs::create_dir_all(&path).expect("a folder for temporary files");
            Self(path)
        }

        fn prefix(&self, name: &str) -> String {
            self.0.join(name).display().to_string()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn new_keys_are_a_pair_and_nothing_is_overwritten() {
        let folder = Folder::new("linerate-keys");
        let files = KeyFiles::new(&folder.prefix("lab"));
        make_keys(1024, &files).expect("an empty folder");
        let private = PrivateKey::read(&files.private).expect("own key");
        let public = PublicKey::read(&files.public).expect("own key");
        assert_eq!(private.0.to_public_key(), public.0);
        let before = std::fs::read(&files.private).expect("own file");
        let message = make_keys(1024, &files).expect_err("both are there").to_string();
        assert!(message.contains("lab-private.pem: "), "{message}");
        std::fs::remove_file(&files.private).expect("own file");
        assert!(make_keys(1024, &files).is_err(), "the public one is there");
        assert!(!files.private.exists(), "no half of a pair stays");
        assert!(before.starts_with(b"-----BEGIN PRIVATE KEY-----\n"));
    }

    #[cfg(unix)]
    #[test]
    fn private_key_is_for_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt;
        let folder = Folder::new("linerate-mode");
        let files = KeyFiles::new(&folder.prefix("lab"));
        make_keys(1024, &files).expect("an empty folder");
        let mode = files.private.metadata().expect("own file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn key_of_a_size_that_no_server_takes_is_not_made() {
        for bits in [0, 512, 1023, 8193, 1 << 20] {
            let made = make_keys(bits, &KeyFiles::new("never"));
            let message = made.expect_err("wrong size").to_string();
            assert_eq!(message, format!("--bits {bits}: must be 1024 to 8192"));
        }
    }

    #[test]
    fn users_are_added_each_on_a_line_and_once() {
        let folder = Folder::new("linerate-users");
        let file = folder.0.join("users.csv");
        add_user(&file, "mario", "rossi").expect("a new file");
        add_user(&file, "luigi", "verdi").expect("another user");
        let twice = add_user(&file, "mario", "verdi").expect_err("known").to_string();
        assert!(twice.ends_with("users.csv: has the user \"mario\" already"), "{twice}");
        let text = std::fs::read_to_string(&file).expect("own file");
        assert_eq!(text.lines().count(), 2);
        std::fs::write(&file, text.trim_end()).expect("own file");
        add_user(&file, "carlo", "neri").expect("a file without an end of its line");
        let users = Users::read(&file).expect("own file");
        for (name, password) in [("mario", "rossi"), ("luigi", "verdi"), ("carlo", "neri")] {
            assert_eq!(users.check(name.as_bytes(), password.as_bytes()), Ok(()));
        }
    }

    #[test]
    fn user_that_iperf3_could_not_read_is_not_made() {
        for (name, password) in
            [("a b", "x"), ("a,b", "x"), ("#a", "x"), ("", "x"), ("a", ""), ("a", "x y")]
        {
            assert!(matches!(user_line(name, password), Err(Error::Usage(_))), "{name} {password}");
        }
    }
}
