//! What the targets that read documents have in common.

use linerate_core::protocol::frame::{Document, FrameReader, Outgoing, PIECE_BYTES};
use linerate_core::protocol::json::DocumentError;

use super::input::Chunks;

/// Reads a frame with this body, cut like this.
pub(super) fn fed(
    document: &mut impl Document,
    body: &[u8],
    mut chunks: Chunks,
) -> Result<(), DocumentError> {
    let frame = framed(body);
    let mut reader = FrameReader::new(u32::MAX);
    let mut rest = &frame[..];
    while !rest.is_empty() {
        let chunk = chunks.next(&mut rest);
        let progress = reader.read(chunk, document)?;
        assert_eq!(progress.consumed, chunk.len(), "an open frame takes everything");
        assert_eq!(progress.complete, rest.is_empty(), "a frame ends with its last byte");
    }
    Ok(())
}

/// The body with its length before it.
pub(super) fn framed(body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).expect("inputs are small").to_be_bytes();
    [&length, body].concat()
}

/// All pieces of a document, with `inserted` where its caller has to put it.
pub(super) fn written(outgoing: &impl Outgoing, inserted: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut piece = [0; PIECE_BYTES];
    for index in 0.. {
        if outgoing.insert_before().is_some_and(|(before, _)| before == index) {
            bytes.extend_from_slice(inserted);
        }
        let Some(filled) = outgoing.write_piece(index, &mut piece) else { break };
        bytes.extend_from_slice(&piece[..filled]);
    }
    assert_eq!(outgoing.body_bytes(), Some(bytes.len() as u32), "it is as long as it says");
    bytes
}
