//! The cookie that opens the control connection and, again, every TCP data connection: 36
//! characters and a NUL. iperf3 up to 3.1.7 put the host name and the time into it, so any bytes
//! are accepted.

use core::fmt;

/// The name of one test, chosen by its client.
#[derive(Clone, Copy)]
pub struct Cookie([u8; Cookie::LEN]);

impl Cookie {
    /// Bytes on the wire, the NUL included.
    pub const LEN: usize = 37;

    /// A cookie in the form iperf3 has used since 3.2, from 36 random bytes of the caller.
    pub fn from_random(random: [u8; Self::LEN - 1]) -> Self {
        let mut bytes = [0; Self::LEN];
        for (byte, random) in bytes.iter_mut().zip(random) {
            *byte = ALPHABET[(random % 32) as usize];
        }
        Self(bytes)
    }

    /// A cookie as a peer sent it.
    pub const fn from_bytes(bytes: [u8; Self::LEN]) -> Self {
        Self(bytes)
    }

    /// The bytes on the wire.
    pub const fn as_bytes(&self) -> &[u8; Self::LEN] {
        &self.0
    }

    /// The part before the first NUL, which is what iperf3 compares.
    fn significant(&self) -> &[u8] {
        self.0.split(|&byte| byte == 0).next().unwrap_or_default()
    }
}

impl PartialEq for Cookie {
    fn eq(&self, other: &Self) -> bool {
        self.significant() == other.significant()
    }
}

impl Eq for Cookie {}

impl core::hash::Hash for Cookie {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        self.significant().hash(state);
    }
}

impl fmt::Display for Cookie {
    /// The printable part; a peer's odd bytes become `?`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for &byte in self.significant() {
            let printable = byte.is_ascii_graphic() || byte == b' ';
            write!(f, "{}", if printable { byte as char } else { '?' })?;
        }
        Ok(())
    }
}

impl fmt::Debug for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cookie({self})")
    }
}

#[cfg(feature = "defmt")]
impl defmt::Format for Cookie {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "Cookie({=[u8]:a})", self.significant());
    }
}

const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

#[cfg(test)]
mod tests {
    extern crate std;
    use std::string::ToString;

    use super::*;

    #[test]
    fn random_bytes_become_36_characters_and_a_nul() {
        let cookie = Cookie::from_random(core::array::from_fn(|i| i as u8 * 7));
        assert_eq!(cookie.to_string().len(), 36);
        assert_eq!(cookie.as_bytes()[36], 0);
        assert!(cookie.as_bytes()[..36].iter().all(|byte| ALPHABET.contains(byte)));
    }

    #[test]
    fn comparison_ends_at_the_first_nul() {
        let mut a = [0; Cookie::LEN];
        a[..4].copy_from_slice(b"host");
        let mut b = a;
        b[20] = b'x';
        assert_eq!(Cookie::from_bytes(a), Cookie::from_bytes(b));
        b[4] = b'x';
        assert_ne!(Cookie::from_bytes(a), Cookie::from_bytes(b));
    }
}
