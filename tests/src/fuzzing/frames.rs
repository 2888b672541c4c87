//! A control connection as a row of frames and single bytes: where a frame ends must hang on its
//! bytes alone, never on how they were cut.

use linerate_core::protocol::code::{ControlCode, ServerError};
use linerate_core::protocol::explanation::{
    EXPLANATION_LIMIT, ExplanationReader, OutgoingExplanation, explanation_frame,
};
use linerate_core::protocol::extension::{ExtensionReader, Offer, OutgoingExtension};
use linerate_core::protocol::frame::{
    Document, EXTENSION_LIMIT, FrameReader, LENGTH_BYTES, PARAMETERS_LIMIT, RESULTS_LIMIT,
};
use linerate_core::protocol::json::DocumentError;

use super::documents::{fed, written};
use super::input::{Chunks, Input};

/// The first byte picks the limit, the others are frames one after the other; their bodies, and all
/// bytes together, are also read as answers to the extension offer and as codes.
pub fn frames(data: &[u8]) {
    let mut input = Input::new(data);
    let limit = LIMITS[usize::from(input.below(LIMITS.len() as u8))];
    let bytes = input.bytes(data.len());
    let [whole, others @ ..] = Chunks::of(bytes).map(|chunks| read(bytes, limit, chunks));
    assert!(others.iter().all(|other| *other == whole), "{whole:?} differs from {others:?}");
    for body in &whole.bodies {
        assert!((1..=limit as usize).contains(&body.len()), "a length out of its limit");
        extension(body);
        explanation(body);
    }
    extension(bytes);
    explanation(bytes);
    codes(bytes);
}

const LIMITS: [u32; 4] = [PARAMETERS_LIMIT, RESULTS_LIMIT, EXTENSION_LIMIT, 3];

/// What was read until the bytes, or the reader's patience, came to an end.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    bodies: Vec<Vec<u8>>,
    error: Option<DocumentError>,
}

fn read(mut rest: &[u8], limit: u32, mut chunks: Chunks) -> Outcome {
    let mut outcome = Outcome { bodies: Vec::new(), error: None };
    let (mut reader, mut kept) = (FrameReader::new(limit), Kept::default());
    while !rest.is_empty() {
        let mut chunk = chunks.next(&mut rest);
        while !chunk.is_empty() {
            let progress = match reader.read(chunk, &mut kept) {
                Ok(progress) => progress,
                Err(error) => return Outcome { error: Some(error), ..outcome },
            };
            chunk = &chunk[progress.consumed..];
            assert_eq!(progress.complete, kept.ended, "the document knows when it ends");
            if progress.complete {
                let again = reader.read(chunk, &mut kept).expect("nothing is read any more");
                assert!(again.complete && again.consumed == 0, "a frame ends once");
                outcome.bodies.push(std::mem::take(&mut kept).bytes);
                reader = FrameReader::new(limit);
            } else {
                assert!(chunk.is_empty(), "an open frame takes everything");
            }
        }
    }
    outcome
}

/// Keeps the body.
#[derive(Default)]
struct Kept {
    bytes: Vec<u8>,
    ended: bool,
}

impl Document for Kept {
    fn handle_bytes(&mut self, bytes: &[u8]) -> Result<(), DocumentError> {
        assert!(!self.ended || bytes.is_empty(), "no bytes after the end");
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn handle_end(&mut self) -> Result<(), DocumentError> {
        assert!(!self.ended, "the end comes once");
        self.ended = true;
        Ok(())
    }
}

/// Reads an answer to the extension offer; what is accepted survives the wire.
fn extension(body: &[u8]) {
    if body.is_empty() {
        return;
    }
    let read = |body: &[u8], chunks| {
        let mut reader = ExtensionReader::new();
        fed(&mut reader, body, chunks)?;
        reader.finish()
    };
    let [whole, others @ ..] = Chunks::of(body).map(|chunks| read(body, chunks));
    assert!(others.iter().all(|other| *other == whole), "{whole:?} differs from {others:?}");
    if let Ok(offer) = whole {
        assert!(offer.version > 0);
        assert_eq!(read(&written(&OutgoingExtension(offer), b""), Chunks::Whole), whole);
        let agreed = offer.accept(Offer::OWN).expect("every version from 1 has one in common");
        assert!(agreed.version <= offer.version && offer.features.contains(agreed.features));
    }
}

/// Reads a server's words to its refusal: any bytes are some, bounded and harmless, and survive the
/// wire once they are.
fn explanation(body: &[u8]) {
    if body.is_empty() {
        return;
    }
    let read = |body: &[u8], chunks| {
        let mut reader = ExplanationReader::new();
        fed(&mut reader, body, chunks).expect("any bytes will do");
        reader.finish()
    };
    let [whole, others @ ..] = Chunks::of(body).map(|chunks| read(body, chunks));
    assert!(others.iter().all(|other| *other == whole), "{whole:?} differs from {others:?}");
    assert!(whole.len() <= EXPLANATION_LIMIT as usize && !whole.contains(char::is_control));
    assert_eq!(read(&written(&OutgoingExplanation(&whole), b""), Chunks::Whole), whole);
    assert_eq!(explanation_frame(&whole)[LENGTH_BYTES..], *whole.as_bytes());
}

fn codes(bytes: &[u8]) {
    for &byte in bytes {
        if let Some(code) = ControlCode::from_byte(byte) {
            assert_eq!(code.byte(), byte);
        }
    }
    if let Some(&bytes) = bytes.first_chunk::<{ LENGTH_BYTES * 2 }>() {
        let error = ServerError::from_bytes(bytes);
        assert_eq!(error.to_bytes(), bytes);
        assert!(!error.to_string().is_empty());
    }
}
