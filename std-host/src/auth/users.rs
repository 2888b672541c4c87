//! The users file in iperf3's format: on each line a user, a comma and the SHA-256 of
//! `{user}password` in hex. Read with the rules of `iperf_auth.c`: lines that start with `#`, are
//! empty or have no comma are skipped, blanks count, further fields do not. Lines without a hash,
//! which end an iperf3 server, are skipped too.

use std::io;
use std::path::Path;

use ctutils::CtEq;
use rsa::sha2::{Digest, Sha256};

use super::refusal::Failure;
use crate::small_file;

/// The users of a server.
#[derive(Debug)]
pub(super) struct Users(Vec<u8>);

/// The hash of a user's password.
pub(super) type Hash = [u8; 32];

impl Users {
    /// Reads the file.
    ///
    /// # Errors
    /// The system's, and one for what is no file or too long to be read at each login.
    pub(super) fn read(path: &Path) -> io::Result<Self> {
        small_file::read(path, MOST_BYTES).map(Self)
    }

    /// Checks a password. A user may stand in several lines; each of the passwords will do.
    pub(super) fn check(&self, user: &[u8], password: &[u8]) -> Result<(), Failure> {
        let claimed = hash(user, password);
        let mut failure = Failure::UnknownUser;
        for (_, stored) in self.lines().filter(|(name, _)| *name == user) {
            if stored.ct_eq(&claimed).into() {
                return Ok(());
            }
            failure = Failure::WrongPassword;
        }
        Err(failure)
    }

    /// Whether a line is about this user.
    pub(super) fn knows(&self, user: &[u8]) -> bool {
        self.lines().any(|(name, _)| name == user)
    }

    /// Whether the last line has no end, so that another must not be put behind it.
    pub(super) fn lacks_line_end(&self) -> bool {
        self.0.last().is_some_and(|&last| last != b'\n')
    }

    fn lines(&self) -> impl Iterator<Item = (&[u8], Hash)> {
        self.0.split(|&byte| byte == b'\n').filter_map(|line| {
            let line = line.split(|&byte| byte == b'\r').next()?;
            if line.starts_with(b"#") || !line.contains(&b',') {
                return None;
            }
            let mut fields = line.split(|&byte| byte == b',').filter(|field| !field.is_empty());
            Some((fields.next()?, from_hex(fields.next()?)?))
        })
    }
}

/// The hash that a users file has for this password.
pub(super) fn hash(user: &[u8], password: &[u8]) -> Hash {
    let parts = [b"{", user, b"}", password];
    parts.iter().fold(Sha256::new(), |hash, part| hash.chain_update(part)).finalize().into()
}

/// A hash as a users file has it.
pub(super) fn to_hex(hash: &Hash) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(hex: &[u8]) -> Option<Hash> {
    let digits: Vec<u8> = hex
        .iter()
        .map(|&digit| char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
        .collect::<Option<_>>()?;
    let bytes: Vec<u8> =
        digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect();
    if digits.len() == 64 { bytes.try_into().ok() } else { None }
}

/// Some hundred thousand users.
const MOST_BYTES: u64 = 64 << 20;

#[cfg(test)]
mod tests {
    use super::super::samples::recorded;
    use super::*;

    const MARIO: &str = "bf7a49a846d44b454a5d11e7acfaf13d138bbe0b7483aa3e050879700572709b";

    fn check(file: &str, user: &str, password: &str) -> Result<(), Failure> {
        Users(file.as_bytes().to_vec()).check(user.as_bytes(), password.as_bytes())
    }

    #[test]
    fn recorded_password_has_the_recorded_hash() {
        assert_eq!(to_hex(&hash(b"mario", b"rossi")), recorded("password_hash"));
        assert_eq!(check(&recorded("users_file"), "mario", "rossi"), Ok(()));
    }

    #[test]
    fn line_that_counts_is_found_in_any_file() {
        let files = [
            format!("mario,{MARIO}"),
            format!("mario,{MARIO}\r\n"),
            format!("\n\r\n# mario,nothing\nmario,\nmario\n,\n,,\nmario,{MARIO}\n"),
            format!("mario,,{MARIO},and more\n"),
            format!("mario,0000\nmario,{MARIO}\n"),
            format!("mario,{}\n", MARIO.to_uppercase()),
            format!("\u{fc},{MARIO}\nluigi,{MARIO}\nmario,{MARIO}"),
        ];
        for file in files {
            assert_eq!(check(&file, "mario", "rossi"), Ok(()), "{file:?}");
            assert_eq!(check(&file, "mario", "verdi"), Err(Failure::WrongPassword), "{file:?}");
        }
    }

    #[test]
    fn line_that_does_not_count_lets_nobody_in() {
        let files = [
            String::new(),
            "\n".into(),
            "mario,".into(),
            "mario".into(),
            ",".into(),
            format!("#mario,{MARIO}"),
            format!(" mario,{MARIO}"),
            format!("mario ,{MARIO}"),
            format!("MARIO,{MARIO}"),
            format!("mario, {MARIO}"),
            format!("mario,{MARIO}0"),
            format!("mario,{}", &MARIO[1..]),
            format!("mario,{}", MARIO.replace('b', "+")),
            format!(",{MARIO}"),
            format!("\u{feff}mario,{MARIO}"),
            format!("luigi,0\rmario,{MARIO}"),
        ];
        for file in files {
            assert_eq!(check(&file, "mario", "rossi"), Err(Failure::UnknownUser), "{file:?}");
        }
    }

    #[test]
    fn any_bytes_are_a_file() {
        let users = Users([b"\xff\xfe\0,\x80\nmario,".as_slice(), MARIO.as_bytes()].concat());
        assert_eq!(users.check(b"mario", b"rossi"), Ok(()));
        assert_eq!(users.check(b"\xff\xfe\0", b"\x80"), Err(Failure::UnknownUser));
    }

    #[test]
    fn file_that_cannot_be_read_says_why() {
        assert!(Users::read(Path::new("no/such/file")).is_err());
        assert!(Users::read(Path::new(env!("CARGO_MANIFEST_DIR"))).is_err());
    }
}
