//! What is to be sent on the control connection, in order: short messages and documents. Documents
//! are written piece by piece as the connection takes them, so that one of any size needs no buffer
//! of its size.

use heapless::{Deque, Vec};

use crate::protocol::cookie::Cookie;
use crate::protocol::frame::PIECE_BYTES;

/// What to send next on the control connection.
#[derive(Debug, PartialEq, Eq)]
pub enum Transmit<'a> {
    /// These bytes; report how many went with `consume_control`.
    Bytes(&'a [u8]),
    /// The server's output, exactly as many bytes as `handle_server_output` announced; report with
    /// `consume_control` once all of it went.
    ServerOutput,
}

/// A document that this end sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DocumentKind {
    Parameters,
    Extension,
    Results,
    Explanation,
}

/// Writes the pieces of documents; the session that owns the outbox knows what is in them.
pub(super) trait Documents {
    /// Bytes of the whole document.
    fn len(&self, kind: DocumentKind) -> u32;
    /// Writes piece `index` and returns its length, or `None` after the last.
    fn write_piece(
        &self,
        kind: DocumentKind,
        index: usize,
        out: &mut [u8; PIECE_BYTES],
    ) -> Option<usize>;
    /// The piece that the server's output comes before, and its length.
    fn insert(&self, kind: DocumentKind) -> Option<(usize, u32)>;
}

#[derive(Debug)]
pub(super) struct Outbox {
    queue: Deque<Item, 6>,
    buffer: [u8; PIECE_BYTES],
    start: usize,
    end: usize,
    document: Option<Progress>,
}

#[derive(Debug, Clone)]
enum Item {
    Bytes(Vec<u8, { Cookie::LEN }>),
    Document(DocumentKind),
}

#[derive(Debug, Clone, Copy)]
struct Progress {
    kind: DocumentKind,
    next_piece: usize,
    insert: Insert,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Insert {
    None,
    Ahead { piece: usize },
    Due,
}

impl Outbox {
    pub(super) const fn new() -> Self {
        Self { queue: Deque::new(), buffer: [0; PIECE_BYTES], start: 0, end: 0, document: None }
    }

    /// Queues a short message.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let item = Vec::from_slice(bytes).expect("no message is longer than a cookie");
        if let Some(Item::Bytes(last)) = self.queue.back_mut()
            && last.extend_from_slice(bytes).is_ok()
        {
            return;
        }
        self.queue.push_back(Item::Bytes(item)).expect("an exchange has few messages in flight");
    }

    /// Queues a document with its length before it.
    pub(super) fn push_document(&mut self, kind: DocumentKind) {
        self.queue.push_back(Item::Document(kind)).expect("an exchange has few documents");
    }

    /// Whether there is nothing to send.
    pub(super) fn is_empty(&self) -> bool {
        self.start == self.end && self.document.is_none() && self.queue.is_empty()
    }

    /// What to send next, if anything.
    pub(super) fn poll(&mut self, documents: &impl Documents) -> Option<Transmit<'_>> {
        while self.start == self.end {
            if self.document.is_some_and(|progress| progress.insert == Insert::Due) {
                return Some(Transmit::ServerOutput);
            }
            if !self.refill_from_document(documents) {
                self.refill_from_queue(documents)?;
            }
        }
        Some(Transmit::Bytes(&self.buffer[self.start..self.end]))
    }

    /// Notes that `bytes` of what `poll` returned went out.
    pub(super) fn consume(&mut self, bytes: usize) {
        if self.start < self.end {
            self.start += bytes.min(self.end - self.start);
        } else if let Some(progress) = &mut self.document {
            progress.insert = Insert::None;
        }
    }

    fn refill_from_document(&mut self, documents: &impl Documents) -> bool {
        let Some(progress) = &mut self.document else { return false };
        if progress.insert == (Insert::Ahead { piece: progress.next_piece }) {
            progress.insert = Insert::Due;
            return true;
        }
        match documents.write_piece(progress.kind, progress.next_piece, &mut self.buffer) {
            Some(len) => {
                progress.next_piece += 1;
                (self.start, self.end) = (0, len);
            }
            None => self.document = None,
        }
        true
    }

    fn refill_from_queue(&mut self, documents: &impl Documents) -> Option<()> {
        let bytes: &[u8] = match &self.queue.pop_front()? {
            Item::Bytes(bytes) => &bytes.clone(),
            Item::Document(kind) => {
                let insert = documents.insert(*kind);
                self.document = Some(Progress {
                    kind: *kind,
                    next_piece: 0,
                    insert: insert.map_or(Insert::None, |(piece, _)| Insert::Ahead { piece }),
                });
                &documents.len(*kind).to_be_bytes()
            }
        };
        self.buffer[..bytes.len()].copy_from_slice(bytes);
        (self.start, self.end) = (0, bytes.len());
        Some(())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use super::*;

    /// Three pieces, the server's output before the third.
    struct Fake;

    impl Documents for Fake {
        fn len(&self, _: DocumentKind) -> u32 {
            9
        }

        fn write_piece(
            &self,
            _: DocumentKind,
            index: usize,
            out: &mut [u8; PIECE_BYTES],
        ) -> Option<usize> {
            let piece = ["ab", "cd", "e"].get(index)?.as_bytes();
            out[..piece.len()].copy_from_slice(piece);
            Some(piece.len())
        }

        fn insert(&self, kind: DocumentKind) -> Option<(usize, u32)> {
            (kind == DocumentKind::Results).then_some((2, 4))
        }
    }

    /// Everything that comes out, `step` bytes at a time; the output stands as `#`.
    fn drained(outbox: &mut Outbox, step: usize) -> Vec<u8> {
        let mut all = Vec::new();
        loop {
            let len = match outbox.poll(&Fake) {
                None => break,
                Some(Transmit::ServerOutput) => {
                    all.push(b'#');
                    4
                }
                Some(Transmit::Bytes(bytes)) => {
                    let len = bytes.len().min(step);
                    all.extend_from_slice(&bytes[..len]);
                    len
                }
            };
            outbox.consume(len);
        }
        all
    }

    #[test]
    fn messages_and_documents_leave_in_order_in_any_chunks() {
        for step in 1..6 {
            let mut outbox = Outbox::new();
            outbox.push(b"x");
            outbox.push(b"y");
            outbox.push_document(DocumentKind::Results);
            outbox.push(b"z");
            outbox.push_document(DocumentKind::Parameters);
            assert_eq!(drained(&mut outbox, step), b"xy\0\0\0\x09abcd#ez\0\0\0\x09abcde");
        }
    }

    #[test]
    fn messages_in_a_row_leave_together() {
        let mut outbox = Outbox::new();
        outbox.push(&[1]);
        outbox.push(&[2]);
        assert_eq!(outbox.poll(&Fake), Some(Transmit::Bytes(&[1, 2])));
    }
}
