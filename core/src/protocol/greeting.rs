//! The UDP greeting: one datagram from the client for each stream, one back from the server.
//!
//! Stock ends say four bytes, which name nothing. Values since iperf3 3.12; older ends use others, and
//! servers of every version take anything. Such a greeting is sent once: a copy would be glued to the
//! first data datagram by a stock server.
//!
//! Two ends that agreed on [`ACKNOWLEDGED_GREETINGS`] say [`NamedGreeting`]s instead: they name the test
//! and the stream, are repeated until they are answered, and no receiver takes a copy for data.
//!
//! [`ACKNOWLEDGED_GREETINGS`]: super::extension::Features::ACKNOWLEDGED_GREETINGS

use super::cookie::Cookie;

/// From a stock client, or to a stock server, for each stream it opens.
pub const HELLO: [u8; 4] = *b"9876";

/// From the server, on the socket that will carry the stream.
pub const REPLY: [u8; 4] = *b"6789";

/// Whether `datagram` answers the greeting; servers up to 3.11 say it in their own way.
pub fn is_reply(datagram: &[u8]) -> bool {
    datagram == REPLY || datagram == REPLY_BEFORE_3_12
}

/// Whether `datagram` is a greeting that names nothing: no data datagram is that short.
pub fn is_hello(datagram: &[u8]) -> bool {
    datagram.len() <= HELLO.len()
}

/// Whether a datagram that begins like this is a greeting of either kind or an answer to one, and no
/// data. At least [`MAGIC_LEN`] bytes of a longer datagram have to be there.
pub fn is_no_data(beginning: &[u8]) -> bool {
    is_hello(beginning) || beginning.starts_with(MAGIC)
}

/// A greeting that says whose it is, or its acknowledgement, which repeats it. On the wire:
///
/// | bytes | what |
/// |---|---|
/// | 0–7 | `linerate` |
/// | 8 | 1 from the client, 2 from the server |
/// | 9–10 | place of the stream in the order of creation, from 0, big-endian |
/// | 11–47 | the test's cookie, as it opened the control connection |
///
/// Bytes 4–7 of data are microseconds, below a million, so that none begins like this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct NamedGreeting {
    /// The test.
    pub cookie: Cookie,
    /// The stream, in order of creation, from zero.
    pub index: u16,
}

impl NamedGreeting {
    /// Bytes on the wire.
    pub const LEN: usize = COOKIE_AT + Cookie::LEN;

    /// What the client says.
    pub fn hello(&self) -> [u8; Self::LEN] {
        self.written(KIND_HELLO)
    }

    /// What the server answers.
    pub fn reply(&self) -> [u8; Self::LEN] {
        self.written(KIND_REPLY)
    }

    /// What a client said, if it is a greeting of this kind.
    pub fn of_hello(datagram: &[u8]) -> Option<Self> {
        Self::read(datagram, KIND_HELLO)
    }

    /// What a server answered, if it is an answer of this kind.
    pub fn of_reply(datagram: &[u8]) -> Option<Self> {
        Self::read(datagram, KIND_REPLY)
    }

    fn written(&self, kind: u8) -> [u8; Self::LEN] {
        let mut datagram = [0; Self::LEN];
        datagram[..MAGIC_LEN].copy_from_slice(MAGIC);
        datagram[MAGIC_LEN] = kind;
        datagram[INDEX_AT..COOKIE_AT].copy_from_slice(&self.index.to_be_bytes());
        datagram[COOKIE_AT..].copy_from_slice(self.cookie.as_bytes());
        datagram
    }

    fn read(datagram: &[u8], kind: u8) -> Option<Self> {
        let rest = datagram.strip_prefix(MAGIC)?;
        let (&said, rest) = rest.split_first()?;
        let (index, cookie) = rest.split_first_chunk()?;
        let cookie = Cookie::from_bytes(cookie.try_into().ok()?);
        (said == kind).then(|| Self { cookie, index: u16::from_be_bytes(*index) })
    }
}

/// Bytes that tell a greeting from data.
pub const MAGIC_LEN: usize = MAGIC.len();
/// The longest greeting.
pub const MOST_BYTES: usize = NamedGreeting::LEN;

const MAGIC: &[u8; 8] = b"linerate";
const INDEX_AT: usize = MAGIC_LEN + 1;
const COOKIE_AT: usize = INDEX_AT + 2;
const KIND_HELLO: u8 = 1;
const KIND_REPLY: u8 = 2;

/// 987654321 in little-endian order, as servers up to 3.11 answer.
const REPLY_BEFORE_3_12: [u8; 4] = 987_654_321_u32.to_le_bytes();

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::datagram::Header;

    const GREETING: NamedGreeting =
        NamedGreeting { cookie: Cookie::from_bytes([b'c'; Cookie::LEN]), index: 0x0102 };

    #[test]
    fn replies_of_old_and_new_servers_are_known() {
        assert!(is_reply(&[0x36, 0x37, 0x38, 0x39]));
        assert!(is_reply(&[0xb1, 0x68, 0xde, 0x3a]));
        assert!(!is_reply(&[0xde, 0x3a, 0x68, 0xb1]));
        assert!(!is_reply(b"6789 "));
    }

    #[test]
    fn a_named_greeting_and_its_reply_survive_the_wire_and_are_not_mixed_up() {
        let (hello, reply) = (GREETING.hello(), GREETING.reply());
        assert_eq!(hello[..11], *b"linerate\x01\x01\x02");
        assert_eq!(reply[..11], *b"linerate\x02\x01\x02");
        assert_eq!(hello[11..], [b'c'; 37]);
        assert_eq!(NamedGreeting::of_hello(&hello), Some(GREETING));
        assert_eq!(NamedGreeting::of_reply(&reply), Some(GREETING));
        assert_eq!(NamedGreeting::of_hello(&reply), None);
        assert_eq!(NamedGreeting::of_reply(&hello), None);
    }

    #[test]
    fn a_greeting_is_neither_shorter_nor_longer() {
        let mut longer = [0; NamedGreeting::LEN + 1];
        longer[..NamedGreeting::LEN].copy_from_slice(&GREETING.hello());
        assert_eq!(NamedGreeting::of_hello(&longer), None);
        for len in 0..NamedGreeting::LEN {
            assert_eq!(NamedGreeting::of_hello(&longer[..len]), None, "{len}");
        }
    }

    #[test]
    fn no_data_looks_like_a_greeting() {
        assert!(is_no_data(&GREETING.hello()) && is_no_data(&GREETING.reply()[..MAGIC_LEN]));
        assert!(is_no_data(&HELLO) && is_no_data(&[]));
        // The seconds of the greeting with the most microseconds.
        let seconds = u64::from(u32::from_be_bytes(*b"line"));
        let header = Header { sent_us: seconds * 1_000_000 + 999_999, sequence: 1 };
        let mut datagram = [0; 16];
        header.write(&mut datagram, false);
        assert_eq!(datagram[..4], *b"line");
        assert!(!is_no_data(&datagram));
    }
}
