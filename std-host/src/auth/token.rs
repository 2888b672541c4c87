//! The token of a login: user, password and time of the client, encrypted for the server alone.
//! Layout and encryption are iperf3's (`iperf_auth.c`): since 3.17 OAEP with SHA-1, before and on
//! request PKCS#1 v1.5; base64 on one line.

use base64ct::{Base64, Encoding};
use getrandom::SysRng;
use rsa::Pkcs1v15Encrypt;
use rsa::traits::PublicKeyParts;
use sha1::Sha1;

use super::keys::{PrivateKey, PublicKey};
use super::refusal::Failure;
use crate::config::Padding;

/// Who wants to log in, by which password, and when he said so.
#[derive(Clone, PartialEq, Eq)]
#[cfg_attr(test, derive(Debug))]
pub(super) struct Claim {
    pub(super) user: Vec<u8>,
    pub(super) password: Vec<u8>,
    /// Seconds since 1970, by the client's clock.
    pub(super) time: i64,
}

impl Claim {
    /// Encrypts it for the server; none if it is too long for the key.
    pub(super) fn seal(&self, key: &PublicKey, padding: Padding) -> Option<String> {
        let text = self.text();
        let sealed = match padding {
            Padding::Oaep => key.0.oaep_encrypt::<Sha1>(&text),
            Padding::Pkcs1 => key.0.encrypt(&mut SysRng, Pkcs1v15Encrypt, &text),
        };
        sealed.ok().map(|bytes| Base64::encode_string(&bytes))
    }

    /// Decrypts a token. Wrong padding is found here with OAEP; with PKCS#1 v1.5 it gives words at
    /// random, which nobody can tell from a token that was made for another key.
    pub(super) fn open(token: &str, key: &PrivateKey, padding: Padding) -> Result<Self, Failure> {
        let sealed = Base64::decode_vec(token).map_err(|_| Failure::NotBase64)?;
        let text = match padding {
            Padding::Oaep => key.0.oaep_decrypt::<Sha1>(&sealed),
            Padding::Pkcs1 => key.0.pkcs1v15_decrypt(&sealed),
        };
        Self::parse(&text.map_err(|_| Failure::NotForThisKey)?).ok_or(Failure::NotReadable)
    }

    fn text(&self) -> Vec<u8> {
        let time = self.time.to_string();
        let parts: [&[u8]; 6] =
            [b"user: ", &self.user, b"\npwd:  ", &self.password, b"\nts:   ", time.as_bytes()];
        parts.concat()
    }

    /// iperf3 reads this with `scanf`, which ends a word at a blank. Here a value is the rest of its
    /// line after the blanks that iperf3 writes, or fewer, so that a password with blanks works.
    fn parse(text: &[u8]) -> Option<Self> {
        let mut lines = text.trim_ascii_end().split(|&byte| byte == b'\n');
        let mut value = |label: &[u8], blanks| {
            let mut value = lines.next()?.strip_prefix(label)?;
            for _ in 0..blanks {
                value = value.strip_prefix(b" ").unwrap_or(value);
            }
            (!value.is_empty()).then_some(value)
        };
        let (user, password) = (value(b"user:", 1)?, value(b"pwd:", 2)?);
        let time = str::from_utf8(value(b"ts:", 3)?).ok()?.parse().ok()?;
        let is_end = lines.next().is_none();
        is_end.then(|| Self { user: user.to_vec(), password: password.to_vec(), time })
    }
}

/// Bytes that user name and password may have together.
pub(super) fn most_bytes(key: &PublicKey, padding: Padding) -> usize {
    let overhead = match padding {
        Padding::Oaep => 2 * SHA1_BYTES + 2,
        Padding::Pkcs1 => 11,
    };
    key.0.size().saturating_sub(overhead + LABEL_BYTES + TIME_DIGITS)
}

/// Everything of the text that is neither user, password nor time.
const LABEL_BYTES: usize = "user: \npwd:  \nts:   ".len();
/// Until the year 2286.
const TIME_DIGITS: usize = 10;
const SHA1_BYTES: usize = 20;

#[cfg(test)]
mod tests {
    use super::super::samples::{self, PRIVATE, PUBLIC};
    use super::*;
    use proptest::prelude::*;

    fn private() -> PrivateKey {
        PrivateKey::from_pem(PRIVATE).expect("recorded")
    }

    fn public() -> PublicKey {
        PublicKey::from_pem(PUBLIC).expect("recorded")
    }

    fn claim(user: &str, password: &str, time: i64) -> Claim {
        Claim { user: user.into(), password: password.into(), time }
    }

    #[test]
    fn recorded_token_of_either_padding_opens() {
        let expected = claim("mario", "rossi", 1_700_000_000);
        let (oaep, pkcs1) =
            (samples::recorded("token_oaep_sha1"), samples::recorded("token_pkcs1_v15"));
        assert_eq!(Claim::open(&oaep, &private(), Padding::Oaep), Ok(expected.clone()));
        assert_eq!(Claim::open(&pkcs1, &private(), Padding::Pkcs1), Ok(expected.clone()));
        assert_eq!(expected.text(), samples::recorded("plaintext").into_bytes());
    }

    #[test]
    fn recorded_token_of_the_other_padding_does_not_open() {
        let (oaep, pkcs1) =
            (samples::recorded("token_oaep_sha1"), samples::recorded("token_pkcs1_v15"));
        assert_eq!(Claim::open(&pkcs1, &private(), Padding::Oaep), Err(Failure::NotForThisKey));
        assert_eq!(Claim::open(&oaep, &private(), Padding::Pkcs1), Err(Failure::NotReadable));
    }

    #[test]
    fn own_token_opens_up_to_the_longest_that_fits() {
        for padding in [Padding::Oaep, Padding::Pkcs1] {
            let most = most_bytes(&public(), padding);
            for len in [1, 127, 128, most - 5] {
                let claim = claim("mario", &"x".repeat(len), 1_700_000_000);
                let token = claim.seal(&public(), padding).expect("it fits");
                assert_eq!(token.len(), 344);
                assert_eq!(Claim::open(&token, &private(), padding), Ok(claim));
            }
            for len in [most - 4, 255, 256, 1024, 100_000] {
                let claim = claim("mario", &"x".repeat(len), 1_700_000_000);
                assert_eq!(claim.seal(&public(), padding), None, "{len}");
            }
        }
        assert_eq!(most_bytes(&public(), Padding::Oaep), 184, "as measured with iperf3");
    }

    #[test]
    fn what_is_no_token_is_refused() {
        let rows = [
            ("", Failure::NotForThisKey),
            ("AAAA", Failure::NotForThisKey),
            ("AAA", Failure::NotBase64),
            ("====", Failure::NotBase64),
            ("AA AA", Failure::NotBase64),
            ("\u{fc}\u{0}", Failure::NotBase64),
        ];
        for (token, failure) in rows {
            for padding in [Padding::Oaep, Padding::Pkcs1] {
                let opened = Claim::open(token, &private(), padding);
                assert_eq!(opened, Err(failure.clone()), "{token:?}");
            }
        }
        for len in [1, 127, 128, 255, 256, 257, 1024, 6000] {
            let token = Base64::encode_string(&vec![0xff; len]);
            let opened = Claim::open(&token, &private(), Padding::Oaep);
            assert_eq!(opened, Err(Failure::NotForThisKey), "{len}");
        }
    }

    #[test]
    fn text_is_read_line_by_line() {
        let claims = [
            ("user: a\npwd:  b\nts:   1", claim("a", "b", 1)),
            ("user: a\npwd:  b\nts:   1\n", claim("a", "b", 1)),
            ("user:a\npwd: b\nts: -1", claim("a", "b", -1)),
            ("user: a b\npwd:   two  words \nts:   1", claim("a b", " two  words ", 1)),
            ("user: a\npwd:  pwd:  b\nts:   1", claim("a", "pwd:  b", 1)),
        ];
        for (text, claim) in claims {
            assert_eq!(Claim::parse(text.as_bytes()), Some(claim), "{text:?}");
        }
        let nonsense = [
            "",
            "user: a",
            "user: a\npwd:  b",
            "user: a\npwd:  b\nts:   ",
            "user: a\npwd:  b\nts:   soon",
            "user: a\npwd:  b\nts:   99999999999999999999",
            "user: \npwd:  b\nts:   1",
            "user: a\npwd:  \nts:   1",
            "pwd:  b\nuser: a\nts:   1",
            "user: a\npwd:  b\nc\nts:   1",
            "user: a\npwd:  b\nts:   1\nts:   2",
        ];
        for text in nonsense {
            assert_eq!(Claim::parse(text.as_bytes()), None, "{text:?}");
        }
        let latin1 = Claim::parse(b"user: J\xf6rg\npwd:  \xff\nts:   1").expect("any bytes");
        assert_eq!(latin1.user, b"J\xf6rg");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn no_token_panics(token in ".{0,2000}", bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let key = private();
            for padding in [Padding::Oaep, Padding::Pkcs1] {
                let _ = Claim::open(&token, &key, padding);
                let _ = Claim::open(&Base64::encode_string(&bytes), &key, padding);
            }
        }

        #[test]
        fn no_block_of_the_keys_size_panics(mut block in prop::collection::vec(any::<u8>(), 256)) {
            block[0] &= 0x7f;
            let key = private();
            for padding in [Padding::Oaep, Padding::Pkcs1] {
                prop_assert!(Claim::open(&Base64::encode_string(&block), &key, padding).is_err());
            }
        }

        #[test]
        fn no_text_panics_and_what_parses_is_written_alike(
            user in "[a-z ]{0,5}", password in "[ -~]{0,9}", time in any::<i64>(), noise in any::<Vec<u8>>()
        ) {
            let _ = Claim::parse(&noise);
            let claim = claim(&user, &password, time);
            let parsed = Claim::parse(&claim.text());
            prop_assert_eq!(parsed, (!user.is_empty() && !password.is_empty()).then_some(claim));
        }
    }
}
