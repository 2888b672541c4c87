//! What a fresh TCP connection is, decided from its first bytes and from what is known about the
//! test that they name. Nothing is kept here: the table of running tests is the caller's.
//!
//! iperf3 up to 3.1.7 puts the host name into its cookie, so nearly any 37 bytes may be one. Only
//! what no host name can look like counts as foreign; everything else that is not iperf3 shows
//! itself later, when its parameters make no sense.

use crate::protocol::cookie::Cookie;

/// What the first bytes of a connection say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Greeting {
    /// Nothing yet; more bytes are needed.
    Incomplete,
    /// The name of a test.
    Cookie(Cookie),
    /// Somebody who wants something else.
    Foreign(Foreign),
}

/// What a foreign connection speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Foreign {
    /// A web request.
    Http,
    /// The beginning of a TLS handshake.
    Tls,
    /// iperf 2, whose protocol is another one.
    Iperf2,
    /// A secure shell.
    Ssh,
    /// A line of text that ends before a cookie would.
    Line,
}

impl Greeting {
    /// What `bytes`, all that has come so far, say. Bytes after the cookie are not looked at.
    pub fn of(bytes: &[u8]) -> Self {
        if let Some(foreign) = foreign(&bytes[..bytes.len().min(Cookie::LEN)]) {
            return Self::Foreign(foreign);
        }
        match bytes.first_chunk() {
            Some(&cookie) => Self::Cookie(Cookie::from_bytes(cookie)),
            None => Self::Incomplete,
        }
    }
}

/// Collects the first bytes of a connection, in any chunking.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct GreetingReader {
    bytes: [u8; Cookie::LEN],
    filled: usize,
}

impl GreetingReader {
    /// A reader for a fresh connection.
    pub const fn new() -> Self {
        Self { bytes: [0; Cookie::LEN], filled: 0 }
    }

    /// Takes the next bytes, at most as many as a cookie still needs; returns how many it took and
    /// what all of them say.
    pub fn read(&mut self, bytes: &[u8]) -> (usize, Greeting) {
        let consumed = bytes.len().min(Cookie::LEN - self.filled);
        self.bytes[self.filled..self.filled + consumed].copy_from_slice(&bytes[..consumed]);
        self.filled += consumed;
        (consumed, Greeting::of(&self.bytes[..self.filled]))
    }
}

impl Default for GreetingReader {
    fn default() -> Self {
        Self::new()
    }
}

/// What is known about the test that a cookie names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Known {
    /// It waits for TCP data streams.
    AwaitingStreams,
    /// It waits for none: it has them all, or has none of TCP.
    Running,
}

/// What a connection with a cookie is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Admission {
    /// The control connection of a test that begins.
    Control,
    /// A data stream of the test of that name.
    Stream,
    /// A data stream too many: answer [`AccessDenied`] and close.
    ///
    /// [`AccessDenied`]: crate::protocol::code::ControlCode::AccessDenied
    Late,
}

impl Admission {
    /// What a connection is whose cookie names a test in this state, or none.
    pub const fn of(known: Option<Known>) -> Self {
        match known {
            None => Self::Control,
            Some(Known::AwaitingStreams) => Self::Stream,
            Some(Known::Running) => Self::Late,
        }
    }
}

/// What else it is, if that is certain.
fn foreign(bytes: &[u8]) -> Option<Foreign> {
    if is_tls(bytes) {
        Some(Foreign::Tls)
    } else if HTTP_METHODS.iter().any(|method| bytes.starts_with(method)) {
        Some(Foreign::Http)
    } else if is_ssh(bytes) {
        Some(Foreign::Ssh)
    } else if is_iperf2(bytes) {
        Some(Foreign::Iperf2)
    } else if is_line(bytes) {
        Some(Foreign::Line)
    } else {
        None
    }
}

/// The beginnings of a request; no host name has a blank in it. The last one opens HTTP/2.
const HTTP_METHODS: [&[u8]; 10] = [
    b"GET ",
    b"HEAD ",
    b"POST ",
    b"PUT ",
    b"DELETE ",
    b"CONNECT ",
    b"OPTIONS ",
    b"TRACE ",
    b"PATCH ",
    b"PRI * HTTP/2",
];

/// A handshake record (22) of version 3.x, as every TLS client begins.
fn is_tls(bytes: &[u8]) -> bool {
    matches!(bytes, [0x16, 0x03, 0x00..=0x04, ..])
}

fn is_ssh(bytes: &[u8]) -> bool {
    matches!(bytes, [b'S', b'S', b'H', b'-', b'1'..=b'2', b'.', ..])
}

/// The header of an iperf 2 client: flags, number of threads, port, four bytes each, big-endian.
/// The flags are zero for a plain test up to 2.0.9 and have one of the two highest bits otherwise;
/// threads and ports are small numbers, never zero.
fn is_iperf2(bytes: &[u8]) -> bool {
    let word = |at: usize| {
        let word = bytes.get(at..at + 4)?;
        word.try_into().ok().map(u32::from_be_bytes)
    };
    let (Some(flags), Some(threads), Some(port)) = (word(0), word(4), word(8)) else {
        return false;
    };
    let small = 1..=u32::from(u16::MAX);
    (flags == 0 || flags >> 30 != 0) && small.contains(&threads) && small.contains(&port)
}

/// Printable ASCII up to a line end: a person with telnet, a scanner, another text protocol.
fn is_line(bytes: &[u8]) -> bool {
    let end = bytes.iter().position(|byte| !(b' '..=b'~').contains(byte));
    end.is_some_and(|end| bytes[end..].starts_with(b"\r\n") || bytes[end] == b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_are_known_by_their_first_bytes() {
        let cases: [(&[u8], Foreign); 9] = [
            (b"GET / HTTP/1.0\r\n\r\n", Foreign::Http),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Foreign::Http),
            (b"OPTIONS * HTTP/1.1\r\nHost: a.example\r\n\r\n", Foreign::Http),
            (b"\x16\x03\x01\x02\x00\x01\x00", Foreign::Tls),
            (b"SSH-2.0-OpenSSH_9.6\r\n", Foreign::Ssh),
            (b"EHLO a.example\r\n", Foreign::Line),
            (b"\n", Foreign::Line),
            // 2.0.5, plain: flags 0, one thread, port 5001.
            (b"\0\0\0\0\0\0\0\x01\0\0\x13\x89\0\0\0\0", Foreign::Iperf2),
            // 2.1: extended header.
            (b"\x54\0\0\0\0\0\0\x01\0\0\x13\x89", Foreign::Iperf2),
        ];
        for (bytes, foreign) in cases {
            assert_eq!(Greeting::of(bytes), Greeting::Foreign(foreign), "{bytes:?}");
        }
    }

    #[test]
    fn cookies_of_every_release_are_cookies() {
        let cases: [&[u8; Cookie::LEN]; 5] = [
            b"abcdefghijklmnopqrstuvwxyz234567abcd\0",
            b"laptop.1400000000.123456.3f2a1b4c5d6\0",
            b"POST-office.example.1400000000.12345\0",
            b"host\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
            &[0xff; Cookie::LEN],
        ];
        for bytes in cases {
            for end in 0..Cookie::LEN {
                assert_eq!(Greeting::of(&bytes[..end]), Greeting::Incomplete, "{bytes:?} {end}");
            }
            let cookie = Greeting::Cookie(Cookie::from_bytes(*bytes));
            assert_eq!(Greeting::of(bytes), cookie);
        }
    }

    #[test]
    fn chunks_are_collected_and_the_rest_is_left_alone() {
        let mut reader = GreetingReader::new();
        for &byte in &[b'a'; Cookie::LEN - 1] {
            assert_eq!(reader.read(&[byte]), (1, Greeting::Incomplete));
        }
        let (consumed, greeting) = reader.read(b"\0\x00\x00\x01");
        assert_eq!(consumed, 1);
        assert!(matches!(greeting, Greeting::Cookie(_)));
    }

    #[test]
    fn a_test_gets_streams_only_while_it_waits_for_them() {
        assert_eq!(Admission::of(None), Admission::Control);
        assert_eq!(Admission::of(Some(Known::AwaitingStreams)), Admission::Stream);
        assert_eq!(Admission::of(Some(Known::Running)), Admission::Late);
    }
}
