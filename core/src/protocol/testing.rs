//! Helpers of the document tests: feeding in chunks, collecting pieces.

extern crate std;
use std::string::String;
use std::vec::Vec;

use super::frame::{Document, FrameReader, Outgoing, PIECE_BYTES};
use super::json::DocumentError;

/// Feeds a frame with this body, cut into chunks of these sizes in turn, and a stray byte behind.
pub(super) fn fed<D: Document>(
    mut document: D,
    body: &[u8],
    sizes: &[usize],
) -> Result<D, DocumentError> {
    let mut frame = Vec::from((body.len() as u32).to_be_bytes());
    frame.extend_from_slice(body);
    frame.push(0x0a);
    let mut reader = FrameReader::new(u32::MAX);
    let mut rest = &frame[..];
    for size in sizes.iter().cycle() {
        let chunk = &rest[..rest.len().min(*size)];
        let progress = reader.read(chunk, &mut document)?;
        rest = &rest[progress.consumed..];
        assert_eq!(progress.complete, rest.len() == 1, "the frame ends with its body");
        if progress.complete {
            break;
        }
        assert_eq!(progress.consumed, chunk.len(), "an open frame takes everything");
    }
    Ok(document)
}

/// All pieces of a document, as long as it says it is.
pub(super) fn written(outgoing: &impl Outgoing) -> String {
    let mut bytes = Vec::new();
    let mut piece = [0; PIECE_BYTES];
    for index in 0.. {
        let Some(filled) = outgoing.write_piece(index, &mut piece) else { break };
        bytes.extend_from_slice(&piece[..filled]);
    }
    let inserted = outgoing.insert_before().map_or(0, |(_, bytes)| bytes);
    assert_eq!(outgoing.body_bytes(), Some(bytes.len() as u32 + inserted));
    String::from_utf8(bytes).expect("whole documents are text")
}
