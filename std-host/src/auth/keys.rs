//! RSA keys from files: public ones as SubjectPublicKeyInfo or PKCS#1, private ones as PKCS#8 or
//! PKCS#1, all in PEM as openssl writes them. A file that is something else says what it is.

use std::fmt;
use std::path::Path;

use rsa::pkcs1;
use rsa::pkcs8::PrivateKeyInfoRef;
use rsa::pkcs8::der::Decode;
use rsa::pkcs8::spki::{ObjectIdentifier, SubjectPublicKeyInfoRef};
use rsa::traits::PublicKeyParts;

use super::pem::{self, PemProblem};
use crate::error::words;
use crate::small_file;

/// Key sizes that are taken: smaller ones can be broken, larger ones keep a server busy.
pub(super) const KEY_BITS: std::ops::RangeInclusive<usize> =
    rsa::PublicKey::MIN_SIZE..=rsa::PublicKey::MAX_SIZE;

/// A server's public key, which its clients have.
#[derive(Debug, Clone)]
pub(super) struct PublicKey(pub(super) rsa::PublicKey);

/// A server's own key.
#[derive(Debug, Clone)]
pub(super) struct PrivateKey(pub(super) rsa::PrivateKey);

impl PublicKey {
    /// Reads a key from a file.
    ///
    /// # Errors
    /// [`KeyProblem`] when the file cannot be read or holds no such key.
    pub(super) fn read(path: &Path) -> Result<Self, KeyProblem> {
        Self::from_pem(&read(path)?)
    }

    /// Takes a key from the text of a PEM file.
    ///
    /// # Errors
    /// [`KeyProblem`] when it holds no such key.
    pub(super) fn from_pem(text: &str) -> Result<Self, KeyProblem> {
        let (label, der) = find(text, &["PUBLIC KEY", "RSA PUBLIC KEY"], "public")?;
        if label == "RSA PUBLIC KEY" {
            return Self::from_pkcs1(&der);
        }
        let info = SubjectPublicKeyInfoRef::from_der(&der).map_err(|_| KeyProblem::Broken)?;
        is_rsa(info.algorithm.oid)?;
        Self::from_pkcs1(info.subject_public_key.as_bytes().ok_or(KeyProblem::Broken)?)
    }

    fn from_pkcs1(der: &[u8]) -> Result<Self, KeyProblem> {
        let key = pkcs1::RsaPublicKeyRef::from_der(der).map_err(|_| KeyProblem::Broken)?;
        is_of_size(key.modulus.as_bytes())?;
        key.try_into().map(Self).map_err(|_| KeyProblem::Broken)
    }

    /// The size of its modulus.
    pub(super) fn bits(&self) -> usize {
        self.0.n().bit_width() as usize
    }
}

impl PrivateKey {
    /// Reads a key from a file.
    ///
    /// # Errors
    /// [`KeyProblem`] when the file cannot be read or holds no such key.
    pub(super) fn read(path: &Path) -> Result<Self, KeyProblem> {
        Self::from_pem(&read(path)?)
    }

    /// Takes a key from the text of a PEM file.
    ///
    /// # Errors
    /// [`KeyProblem`] when it holds no such key.
    pub(super) fn from_pem(text: &str) -> Result<Self, KeyProblem> {
        let (label, der) = find(text, &["PRIVATE KEY", "RSA PRIVATE KEY"], "private")?;
        if label == "RSA PRIVATE KEY" {
            return Self::from_pkcs1(&der);
        }
        let info = PrivateKeyInfoRef::from_der(&der).map_err(|_| KeyProblem::Broken)?;
        is_rsa(info.algorithm.oid)?;
        Self::from_pkcs1(info.private_key.as_bytes())
    }

    fn from_pkcs1(der: &[u8]) -> Result<Self, KeyProblem> {
        let key = pkcs1::RsaPrivateKeyRef::from_der(der).map_err(|_| KeyProblem::Broken)?;
        is_of_size(key.modulus.as_bytes())?;
        key.try_into().map(Self).map_err(|_| KeyProblem::Broken)
    }
}

fn find<'a>(
    text: &str,
    labels: &[&'a str],
    kind: &'static str,
) -> Result<(&'a str, Vec<u8>), KeyProblem> {
    pem::find(text, labels).map_err(|problem| KeyProblem::Pem { problem, kind })
}

fn is_rsa(algorithm: ObjectIdentifier) -> Result<(), KeyProblem> {
    if algorithm == pkcs1::ALGORITHM_OID { Ok(()) } else { Err(KeyProblem::NotRsa) }
}

/// Measures a modulus before any arithmetic is done with it.
fn is_of_size(modulus: &[u8]) -> Result<(), KeyProblem> {
    let zeros = modulus.first().map_or(0, |first| first.leading_zeros() as usize);
    let bits = 8 * modulus.len() - zeros;
    if KEY_BITS.contains(&bits) { Ok(()) } else { Err(KeyProblem::Size(bits)) }
}

/// What a PEM file says. What is no text in it is kept out of the way: it cannot be part of a key.
fn read(path: &Path) -> Result<String, KeyProblem> {
    let bytes = small_file::read(path, MOST_BYTES);
    let bytes = bytes.map_err(|error| KeyProblem::Unreadable(words(&error)))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Many times what the largest key needs.
const MOST_BYTES: u64 = 256 << 10;

/// Why a file gives no key. Read after the file's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KeyProblem {
    /// The system's words.
    Unreadable(String),
    /// No block with a key in it.
    Pem { problem: PemProblem, kind: &'static str },
    /// A key of another algorithm.
    NotRsa,
    /// Fewer or more bits than are taken.
    Size(usize),
    /// Numbers that are no RSA key.
    Broken,
}

impl fmt::Display for KeyProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(words) => f.write_str(words),
            Self::Pem { problem: PemProblem::NoBlock, kind } => {
                write!(f, "holds no key in PEM; a {kind} RSA key is needed")
            }
            Self::Pem { problem: PemProblem::OtherBlock(label), kind } => {
                write!(f, "holds a {label}; a {kind} RSA key is needed")
            }
            Self::Pem { problem: PemProblem::Encrypted, .. } => {
                f.write_str("is protected by a passphrase; a key without one is needed")
            }
            Self::NotRsa => f.write_str("holds a key that is not for encryption with RSA"),
            Self::Size(bits) => {
                let (least, most) = (KEY_BITS.start(), KEY_BITS.end());
                write!(f, "holds an RSA key of {bits} bits; {least} to {most} are taken")
            }
            Self::Pem { problem: PemProblem::Broken, .. } | Self::Broken => {
                f.write_str("holds a key that is damaged")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{self, PRIVATE, PUBLIC};
    use super::*;

    #[test]
    fn keys_are_read_in_each_form_of_openssl() {
        let private = PrivateKey::from_pem(PRIVATE).expect("recorded");
        let public = PublicKey::from_pem(PUBLIC).expect("recorded");
        assert_eq!(private.0.to_public_key(), public.0);
        assert_eq!(public.bits(), 2048);
        let private1 = PrivateKey::from_pem(samples::PKCS1_PRIVATE).expect("PKCS#1");
        let public1 = PublicKey::from_pem(samples::PKCS1_PUBLIC).expect("PKCS#1");
        assert_eq!(private1.0.to_public_key(), public1.0);
        assert_eq!(public1.bits(), 1024);
    }

    #[test]
    fn what_is_no_such_key_says_what_it_is() {
        let private = [
            (PUBLIC, "holds a PUBLIC KEY; a private RSA key is needed"),
            (samples::EC_PRIVATE, "holds a key that is not for encryption with RSA"),
            (samples::SMALL_PRIVATE, "holds an RSA key of 512 bits; 1024 to 8192 are taken"),
            ("hello", "holds no key in PEM; a private RSA key is needed"),
            (&PRIVATE.replacen("MIIE", "MIIF", 1), "holds a key that is damaged"),
        ];
        for (text, message) in private {
            let problem = PrivateKey::from_pem(text).expect_err(message);
            assert_eq!(problem.to_string(), message);
        }
        let public = [
            (PRIVATE, "holds a PRIVATE KEY; a public RSA key is needed"),
            (samples::EC_PUBLIC, "holds a key that is not for encryption with RSA"),
            ("", "holds no key in PEM; a public RSA key is needed"),
        ];
        for (text, message) in public {
            let problem = PublicKey::from_pem(text).expect_err(message);
            assert_eq!(problem.to_string(), message);
        }
    }

    #[test]
    fn file_that_cannot_be_read_says_why() {
        let missing = PrivateKey::read(Path::new("no/such/key")).expect_err("not there");
        assert_eq!(missing.to_string(), samples::not_there());
        let directory =
            PublicKey::read(Path::new(env!("CARGO_MANIFEST_DIR"))).expect_err("no file");
        assert!(matches!(directory, KeyProblem::Unreadable(_)));
    }
}
