//! The client's side of a login: what cannot work is said before any connection is opened.

use std::time::SystemTime;

use super::keys::PublicKey;
use super::token::{Claim, most_bytes};
use super::unix_seconds;
use crate::config::{Credentials, Padding};
use crate::error::Error;

/// Credentials that fit their key.
pub(crate) struct Login {
    claim: Claim,
    key: PublicKey,
    padding: Padding,
}

impl Login {
    /// Reads the key and looks whether a server can make sense of user and password.
    ///
    /// # Errors
    /// [`Error::Usage`] that names the option.
    pub(crate) fn new(credentials: &Credentials) -> Result<Self, Error> {
        let Credentials { username, password, public_key, padding } = credentials;
        check_username(username).map_err(|why| Error::Usage(format!("--username {why}")))?;
        check_password(password).map_err(Error::Usage)?;
        let path = public_key.display();
        let key = PublicKey::read(public_key)
            .map_err(|problem| Error::Usage(format!("--rsa-public-key-path {path}: {problem}")))?;
        let (bytes, most) = (username.len() + password.len(), most_bytes(&key, *padding));
        if bytes > most {
            let bits = key.bits();
            return Err(Error::Usage(format!(
                "--rsa-public-key-path {path}: user name and password have {bytes} bytes together; \
                 this key of {bits} bits takes at most {most}"
            )));
        }
        let (user, password) = (username.clone().into_bytes(), password.clone().into_bytes());
        Ok(Self { claim: Claim { user, password, time: 0 }, key, padding: *padding })
    }

    /// The token of a login at this time; each is different.
    ///
    /// # Errors
    /// [`Error::Usage`] if encryption fails after all.
    pub(crate) fn token(&self, now: SystemTime) -> Result<String, Error> {
        let claim = Claim { time: unix_seconds(now), ..self.claim.clone() };
        let token = claim.seal(&self.key, self.padding);
        token.ok_or_else(|| Error::Usage("--rsa-public-key-path: encryption failed".into()))
    }
}

/// Looks whether a server can find this user. The message begins with the name.
///
/// # Errors
/// Why it cannot.
pub(super) fn check_username(name: &str) -> Result<(), String> {
    let shown = name.escape_debug();
    if name.is_empty() {
        return Err("\"\": a user name is needed".into());
    }
    if name.bytes().any(ends_word) {
        return Err(format!("\"{shown}\": iperf3 servers take no user name with a blank in it"));
    }
    if name.contains(',') || name.starts_with('#') {
        return Err(format!(
            "\"{shown}\": a users file has no place for a comma, or a # at the start"
        ));
    }
    Ok(())
}

/// Looks whether a server can read this password.
///
/// # Errors
/// Why it cannot; the password itself is not shown.
pub(super) fn check_password(password: &str) -> Result<(), String> {
    if password.is_empty() {
        return Err("the password is empty; iperf3 servers take none such".into());
    }
    if password.bytes().any(ends_word) {
        return Err("the password has a blank in it; iperf3 servers take none such".into());
    }
    Ok(())
}

/// `scanf` ends a word there, and a C string ends at a zero.
const fn ends_word(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b || byte == 0
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::keys::PrivateKey;
    use super::super::samples::{PRIVATE, not_there};
    use super::*;

    fn credentials(username: &str, password: &str) -> Credentials {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/recorded");
        Credentials {
            username: username.into(),
            password: password.into(),
            public_key: root.join("auth-public.pem"),
            padding: Padding::Oaep,
        }
    }

    #[test]
    fn token_says_who_and_when() {
        let login = Login::new(&credentials("mario", "rossi")).expect("good credentials");
        let now = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
        let token = login.token(now).expect("it fits");
        let key = PrivateKey::from_pem(PRIVATE).expect("recorded");
        let claim = Claim::open(&token, &key, Padding::Oaep).expect("its own key");
        assert_eq!((&claim.user[..], &claim.password[..]), (&b"mario"[..], &b"rossi"[..]));
        assert_eq!(claim.time, 1_700_000_000);
        assert_ne!(login.token(now).expect("it fits"), token);
    }

    #[test]
    fn credentials_that_cannot_work_are_refused_before_any_connection() {
        let long = "x".repeat(180);
        let rows = [
            ("", "rossi", "--username \"\": a user name is needed"),
            ("ma rio", "rossi", "--username \"ma rio\": iperf3 servers take no"),
            ("ma\trio", "rossi", "--username \"ma\\trio\": iperf3 servers take no"),
            ("mario,luigi", "rossi", "--username \"mario,luigi\": a users file"),
            ("#mario", "rossi", "--username \"#mario\": a users file"),
            ("mario", "", "the password is empty"),
            ("mario", "ros si", "the password has a blank in it"),
            ("mario", "rossi\n", "the password has a blank in it"),
            ("mario", "\0", "the password has a blank in it"),
            ("mario", &long, "--rsa-public-key-path "),
        ];
        for (username, password, begin) in rows {
            match Login::new(&credentials(username, password)) {
                Err(Error::Usage(message)) => assert!(message.starts_with(begin), "{message}"),
                _ => panic!("{username:?} {password:?}"),
            }
        }
        let fits = "x".repeat(179);
        assert!(Login::new(&credentials("mario", &fits)).is_ok());
        for len in [255, 256, 1024, 100_000] {
            let message = Login::new(&credentials("mario", &"x".repeat(len))).err();
            let message = message.expect("too long").to_string();
            let end = "this key of 2048 bits takes at most 184";
            assert!(message.ends_with(end), "{message}");
        }
    }

    #[test]
    fn key_that_cannot_be_used_is_named_with_its_option() {
        let mut credentials = credentials("mario", "rossi");
        credentials.public_key = "no/such.pem".into();
        let message = Login::new(&credentials).err().expect("no key").to_string();
        assert_eq!(message, format!("--rsa-public-key-path no/such.pem: {}", not_there()));
    }
}
