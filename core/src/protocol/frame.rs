//! Length-prefixed documents on the control connection: four bytes, big-endian, unsigned, then so
//! many bytes of JSON (iperf3 since 3.0). Both directions stream: a frame is read in any chunking
//! and nothing of it is stored here, and a document is written piece by piece.

use super::json::DocumentError;

/// Longest parameters that are accepted; iperf3 since 3.18.
pub const PARAMETERS_LIMIT: u32 = 8192;

/// Longest results that are accepted. iperf3 has no limit, because a server's own output may come
/// with them: an hour of ten streams is some three megabytes of text, or ten of JSON. Nothing of it
/// is stored while it is read, so the limit only bounds the time that a peer can take.
pub const RESULTS_LIMIT: u32 = 64 << 20;

/// Longest part of the results that a server's own output may be.
pub const SERVER_OUTPUT_LIMIT: u32 = RESULTS_LIMIT / 2;

/// Longest answer to the extension offer that is accepted.
pub const EXTENSION_LIMIT: u32 = 4096;

/// Something that reads one document.
pub trait Document {
    /// Takes the next bytes of the document, as many as have come.
    ///
    /// # Errors
    /// [`DocumentError`] when no document begins like this; the reader is of no use after it.
    fn handle_bytes(&mut self, bytes: &[u8]) -> Result<(), DocumentError>;

    /// Learns that the document has ended.
    ///
    /// # Errors
    /// [`DocumentError`] when it is not complete.
    fn handle_end(&mut self) -> Result<(), DocumentError>;
}

/// Reads the length and hands the body on.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct FrameReader {
    limit: u32,
    length: [u8; LENGTH_BYTES],
    length_bytes: u8,
    /// Bytes of the body that are still to come; meaningful once the length is known.
    remaining: u32,
    complete: bool,
}

/// How far a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct FrameProgress {
    /// Bytes that were part of the frame; what follows them belongs to whatever comes next.
    pub consumed: usize,
    /// The frame has ended and the document knows.
    pub complete: bool,
}

/// Bytes before the body.
pub const LENGTH_BYTES: usize = 4;

impl FrameReader {
    /// A reader of one frame with a body of 1 to `limit` bytes.
    pub const fn new(limit: u32) -> Self {
        Self { limit, length: [0; LENGTH_BYTES], length_bytes: 0, remaining: 0, complete: false }
    }

    /// Takes the next bytes, up to the end of the frame.
    ///
    /// # Errors
    /// [`DocumentError::Length`] when the length is zero or above the limit, and what the document
    /// says to its body.
    pub fn read(
        &mut self,
        bytes: &[u8],
        document: &mut impl Document,
    ) -> Result<FrameProgress, DocumentError> {
        let mut consumed = 0;
        while usize::from(self.length_bytes) < LENGTH_BYTES {
            let Some(&byte) = bytes.get(consumed) else {
                return Ok(FrameProgress { consumed, complete: false });
            };
            self.length[usize::from(self.length_bytes)] = byte;
            self.length_bytes += 1;
            consumed += 1;
            if usize::from(self.length_bytes) == LENGTH_BYTES {
                self.on_length()?;
            }
        }
        let left = usize::try_from(self.remaining).unwrap_or(usize::MAX);
        let body = &bytes[consumed..];
        let body = &body[..body.len().min(left)];
        document.handle_bytes(body)?;
        consumed += body.len();
        self.remaining -= body.len() as u32;
        if self.remaining == 0 && !self.complete {
            self.complete = true;
            document.handle_end()?;
        }
        Ok(FrameProgress { consumed, complete: self.complete })
    }

    fn on_length(&mut self) -> Result<(), DocumentError> {
        let announced = u32::from_be_bytes(self.length);
        if announced == 0 || announced > self.limit {
            return Err(DocumentError::Length { announced, limit: self.limit });
        }
        self.remaining = announced;
        Ok(())
    }
}

/// Most bytes of one piece of an outgoing document.
pub const PIECE_BYTES: usize = 512;

/// A document to be sent, written piece by piece into a small buffer.
pub trait Outgoing {
    /// Writes piece `index`, counted from zero, and returns its length, which may be zero; `None`
    /// after the last. The same piece is the same bytes whenever it is asked for.
    fn write_piece(&self, index: usize, out: &mut [u8; PIECE_BYTES]) -> Option<usize>;

    /// Bytes that the caller puts between two pieces himself: the index of the piece they come
    /// before, and how many they are. They count as part of the document.
    fn insert_before(&self) -> Option<(usize, u32)> {
        None
    }

    /// Bytes of the whole document, inserted ones included, which is what the frame announces.
    /// `None` if a frame cannot hold it. Writes every piece once.
    fn body_bytes(&self) -> Option<u32> {
        let mut piece = [0; PIECE_BYTES];
        let mut total = self.insert_before().map_or(0, |(_, bytes)| bytes);
        let mut index = 0;
        while let Some(bytes) = self.write_piece(index, &mut piece) {
            total = total.checked_add(bytes as u32)?;
            index += 1;
        }
        Some(total)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use super::*;

    /// Keeps what it gets; complains about a body that begins with `!`.
    #[derive(Default)]
    struct Kept {
        bytes: Vec<u8>,
        ended: u32,
    }

    impl Document for Kept {
        fn handle_bytes(&mut self, bytes: &[u8]) -> Result<(), DocumentError> {
            self.bytes.extend_from_slice(bytes);
            if self.bytes.starts_with(b"!") { Err(DocumentError::Depth) } else { Ok(()) }
        }

        fn handle_end(&mut self) -> Result<(), DocumentError> {
            self.ended += 1;
            Ok(())
        }
    }

    #[test]
    fn a_frame_ends_with_its_body_in_any_chunking() {
        let frame = b"\0\0\0\x05hello\x0a\x01";
        for size in 1..=frame.len() {
            let (mut reader, mut kept) = (FrameReader::new(5), Kept::default());
            let mut at = 0;
            loop {
                let end = (at + size).min(frame.len());
                let progress = reader.read(&frame[at..end], &mut kept).unwrap();
                at += progress.consumed;
                if progress.complete {
                    break;
                }
                assert_eq!(at, end);
            }
            assert_eq!((at, &kept.bytes[..], kept.ended), (9, &b"hello"[..], 1), "{size}");
            let after = reader.read(&frame[at..], &mut kept).unwrap();
            assert_eq!(after, FrameProgress { consumed: 0, complete: true });
            assert_eq!(kept.ended, 1);
        }
    }

    #[test]
    fn lengths_are_unsigned_and_limited() {
        let cases = [(0, false), (1, true), (8192, true), (8193, false), (u32::MAX, false)];
        for (announced, accepted) in cases {
            let mut reader = FrameReader::new(PARAMETERS_LIMIT);
            let read = reader.read(&u32::to_be_bytes(announced), &mut Kept::default());
            let expected = match accepted {
                true => Ok(FrameProgress { consumed: 4, complete: false }),
                false => Err(DocumentError::Length { announced, limit: PARAMETERS_LIMIT }),
            };
            assert_eq!(read, expected, "{announced}");
        }
    }

    #[test]
    fn what_the_document_says_is_passed_on() {
        let read = FrameReader::new(9).read(b"\0\0\0\x02!", &mut Kept::default());
        assert_eq!(read, Err(DocumentError::Depth));
    }
}
