//! What goes over a control connection, in words, for `--debug`. The bytes of each direction are cut
//! into codes and documents by their own form, without the session: a document begins with the four
//! bytes of its length, the first of which is zero, and no code is. The cookie goes before them and
//! is not seen here.

use linerate_core::protocol::code::{ControlCode, ServerError};

/// One direction of a control connection.
#[derive(Debug)]
pub(super) struct Trace {
    expects: Expects,
    bytes: Vec<u8>,
    /// Bytes of a long document that were not kept.
    unkept: usize,
}

/// What comes next.
#[derive(Debug, Clone, Copy)]
enum Expects {
    Code,
    Length,
    Document(usize),
    ServerError,
}

/// What came.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// A code, with what belongs to it.
    Code(String),
    /// A document, or its beginning.
    Document(String),
}

impl Trace {
    /// A direction before its first code.
    pub(super) const fn new() -> Self {
        Self { expects: Expects::Code, bytes: Vec::new(), unkept: 0 }
    }

    /// Takes the next bytes and tells each thing that is complete with them.
    pub(super) fn take(&mut self, bytes: &[u8], mut tell: impl FnMut(Seen)) {
        for &byte in bytes {
            if let Some(seen) = self.step(byte) {
                tell(seen);
            }
        }
    }

    fn step(&mut self, byte: u8) -> Option<Seen> {
        if self.bytes.len() < MOST_KEPT {
            self.bytes.push(byte);
        } else {
            self.unkept += 1;
        }
        let len = self.bytes.len() + self.unkept;
        match self.expects {
            Expects::Code if byte == 0 => self.expects = Expects::Length,
            Expects::Code if byte == ControlCode::ServerError.byte() => {
                self.expects = Expects::ServerError;
            }
            Expects::Code => return Some(Seen::Code(self.code(byte))),
            Expects::Length if len == LENGTH_BYTES => {
                let length = self.finish().try_into().map_or(0, u32::from_be_bytes);
                match length {
                    0 => return Some(Seen::Document(String::new())),
                    length => self.expects = Expects::Document(length as usize),
                }
            }
            Expects::Document(length) if len >= length => return Some(Seen::Document(self.text())),
            Expects::ServerError if len == 1 + ServerError::LEN => {
                return Some(Seen::Code(self.server_error()));
            }
            _ => {}
        }
        None
    }

    fn code(&mut self, byte: u8) -> String {
        self.finish();
        ControlCode::from_byte(byte)
            .map_or_else(|| format!("unknown code {}", byte as i8), |code| code.to_string())
    }

    fn server_error(&mut self) -> String {
        let bytes = self.finish()[1..].try_into().unwrap_or_default();
        let ServerError { number, errno } = ServerError::from_bytes(bytes);
        format!("{} {number}, errno {errno}", ControlCode::ServerError)
    }

    fn text(&mut self) -> String {
        let unkept = std::mem::take(&mut self.unkept);
        let text = String::from_utf8_lossy(&self.finish()).into_owned();
        if unkept == 0 { text } else { format!("{text}... ({unkept} bytes more)") }
    }

    /// What was gathered; a code comes next.
    fn finish(&mut self) -> Vec<u8> {
        self.expects = Expects::Code;
        std::mem::take(&mut self.bytes)
    }
}

const LENGTH_BYTES: usize = 4;
/// Most of a document that is shown.
const MOST_KEPT: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_cut_into_what_they_mean_however_they_come() {
        let mut bytes = vec![9, 0, 0, 0, 2];
        bytes.extend(b"{}");
        bytes.extend([1, 2, 0xfe, 0, 0, 0, 27, 0, 0, 0, 0, 77]);
        let expected = [
            Seen::Code("PARAM_EXCHANGE".into()),
            Seen::Document("{}".into()),
            Seen::Code("TEST_START".into()),
            Seen::Code("TEST_RUNNING".into()),
            Seen::Code("SERVER_ERROR 27, errno 0".into()),
            Seen::Code("unknown code 77".into()),
        ];
        for step in 1..bytes.len() {
            let mut trace = Trace::new();
            let mut seen = Vec::new();
            for part in bytes.chunks(step) {
                trace.take(part, |what| seen.push(what));
            }
            assert_eq!(seen, expected, "in steps of {step}");
        }
    }

    #[test]
    fn long_document_is_cut_short() {
        let mut trace = Trace::new();
        let mut bytes = vec![0, 0, 0x40, 0];
        bytes.extend([b'x'; 0x4000]);
        bytes.push(16);
        let mut seen = Vec::new();
        trace.take(&bytes, |what| seen.push(what));
        let [Seen::Document(text), Seen::Code(code)] = &seen[..] else { panic!("{seen:?}") };
        assert!(text.ends_with("x... (12288 bytes more)"), "{text}");
        assert_eq!((text.len() < 5000, code.as_str()), (true, "IPERF_DONE"));
    }

    #[test]
    fn document_without_content_is_one() {
        let mut seen = Vec::new();
        Trace::new().take(&[0, 0, 0, 0, 1], |what| seen.push(what));
        assert_eq!(seen, [Seen::Document(String::new()), Seen::Code("TEST_START".into())]);
    }
}
