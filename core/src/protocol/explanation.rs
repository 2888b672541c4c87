//! Why a server refuses, in words. iperf3 knows numbers only; a linerate client reads a text after
//! them. It is one frame (four bytes of length, big-endian, as for every document), whose body is
//! plain text of 1 to [`EXPLANATION_LIMIT`] bytes, and it comes in two places:
//!
//! 1. Where the client offered [`Features::EXPLAINED`], the server accepts the extension before it
//!    refuses, and the frame follows each refusal: the code [`AccessDenied`], or the eight bytes after
//!    [`ServerError`].
//! 2. Before the parameters neither end knows the other. There the frame may follow
//!    [`AccessDenied`]: a stock client has closed by then, and a client that can read it waits a
//!    moment for it, or for the close that a stock server sends at once.
//!
//! [`Features::EXPLAINED`]: super::extension::Features::EXPLAINED
//! [`AccessDenied`]: super::code::ControlCode::AccessDenied
//! [`ServerError`]: super::code::ControlCode::ServerError

use core::fmt::{self, Write};

use heapless::{String, Vec};

use super::frame::{Document, LENGTH_BYTES, Outgoing, PIECE_BYTES};
use super::json::DocumentError;

/// Most bytes of an explanation.
pub const EXPLANATION_LIMIT: u32 = 256;

/// An explanation as it came: one line that can be printed as it is.
pub type Explanation = String<CAPACITY>;

/// Reads an explanation. What a terminal would take for a command, and what is no UTF-8, becomes a
/// question mark.
#[derive(Debug, Clone, Default)]
pub struct ExplanationReader(Vec<u8, CAPACITY>);

impl ExplanationReader {
    /// A reader of one explanation.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// The text, once the document has ended.
    pub fn finish(self) -> Explanation {
        let mut text = Explanation::new();
        for chunk in self.0.utf8_chunks() {
            let visible = chunk.valid().chars().map(|c| if c.is_control() { '?' } else { c });
            let unknown = (!chunk.invalid().is_empty()).then_some('?');
            for c in visible.chain(unknown) {
                // Nothing becomes longer, so there is room.
                let _ = text.push(c);
            }
        }
        text
    }
}

impl Document for ExplanationReader {
    fn handle_bytes(&mut self, bytes: &[u8]) -> Result<(), DocumentError> {
        let room = CAPACITY - self.0.len();
        let _ = self.0.extend_from_slice(&bytes[..bytes.len().min(room)]);
        Ok(())
    }

    fn handle_end(&mut self) -> Result<(), DocumentError> {
        Ok(())
    }
}

/// An explanation ready to be sent as the body of a frame; what is longer than the limit is cut.
#[derive(Debug, Clone, Copy)]
pub struct OutgoingExplanation<T>(pub T);

impl<T: fmt::Display> Outgoing for OutgoingExplanation<T> {
    fn write_piece(&self, index: usize, out: &mut [u8; PIECE_BYTES]) -> Option<usize> {
        if index > 0 {
            return None;
        }
        let text = spelled(&self.0);
        out[..text.len()].copy_from_slice(text.as_bytes());
        Some(text.len())
    }
}

/// The whole frame of an explanation, for whoever refuses without a session.
pub fn explanation_frame(text: &impl fmt::Display) -> Vec<u8, { LENGTH_BYTES + CAPACITY }> {
    let text = spelled(text);
    let mut frame = Vec::new();
    let _ = frame.extend_from_slice(&(text.len() as u32).to_be_bytes());
    let _ = frame.extend_from_slice(text.as_bytes());
    frame
}

fn spelled(text: &impl fmt::Display) -> Explanation {
    let mut cut = Cut(Explanation::new());
    // It stops where it is full.
    let _ = write!(cut, "{text}");
    if cut.0.is_empty() {
        // A frame has a body.
        let _ = cut.0.push('-');
    }
    cut.0
}

/// Takes as many characters as fit.
struct Cut(Explanation);

impl Write for Cut {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.chars().try_for_each(|c| self.0.push(c).map_err(|_| fmt::Error))
    }
}

const CAPACITY: usize = EXPLANATION_LIMIT as usize;

#[cfg(test)]
mod tests {
    extern crate std;
    use std::string::String;

    use super::*;
    use crate::protocol::frame::FrameReader;
    use crate::protocol::testing::{fed, written};

    #[test]
    fn a_text_survives_the_wire_in_any_chunks() {
        let frame = explanation_frame(&"ten streams asked for, allowed: 4");
        assert_eq!(&frame[..4], [0, 0, 0, 33]);
        assert_eq!(written(&OutgoingExplanation("ten")), "ten");
        for size in 1..frame.len() {
            let (mut reader, mut text) =
                (FrameReader::new(EXPLANATION_LIMIT), ExplanationReader::new());
            let complete = frame
                .chunks(size)
                .map(|chunk| reader.read(chunk, &mut text).expect("it is a frame").complete)
                .last();
            assert_eq!(complete, Some(true), "{size}");
            assert_eq!(text.finish(), "ten streams asked for, allowed: 4", "{size}");
        }
    }

    #[test]
    fn what_could_harm_a_terminal_is_replaced() {
        for (body, text) in [
            (&b"red \x1b[31m\r\n"[..], "red ?[31m??"),
            (b"\xff\xfe!", "??!"),
            (b"cut \xe2\x82", "cut ?"),
            ("fünf €".as_bytes(), "fünf €"),
            (&[b'a'; 300], &"a".repeat(256)),
        ] {
            let reader = fed(ExplanationReader::new(), body, &[3]).expect("any bytes will do");
            assert_eq!(reader.finish(), text);
        }
    }

    #[test]
    fn long_texts_are_cut_between_characters_and_none_is_empty() {
        let long: String = "é".repeat(200) + "x";
        assert_eq!(written(&OutgoingExplanation(&long)), "é".repeat(128));
        let odd = String::from("x") + &long;
        assert_eq!(written(&OutgoingExplanation(&odd)).len(), 255);
        assert_eq!(written(&OutgoingExplanation("")), "-");
    }
}
