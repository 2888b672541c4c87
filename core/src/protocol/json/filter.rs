//! From the bytes of a document to its known members: the scanner checks the syntax, the router
//! writes the canonical text, serde-json-core decodes it.

use serde::Deserialize;

use super::DocumentError;
use super::router::{Router, Taker, TextPart, WrongType};
use super::scan::Scanner;
use super::table::Member;

/// Reads one document against a table. `C` is the table's [`capacity`](super::capacity).
#[derive(Debug, Clone)]
pub(crate) struct Filter<const C: usize> {
    scanner: Scanner,
    router: Router<C>,
}

impl<const C: usize> Filter<C> {
    pub(crate) const fn new(table: &'static [Member], wrong_type: WrongType) -> Self {
        Self { scanner: Scanner::new(), router: Router::new(table, wrong_type) }
    }

    pub(crate) fn push(&mut self, byte: u8, taker: &mut impl Taker) -> Result<(), DocumentError> {
        let syntax = self.scanner.syntax();
        let router = &mut self.router;
        self.scanner.push(byte, &mut |event| router.on_event(event, syntax, taker))
    }

    pub(crate) fn end(&mut self, taker: &mut impl Taker) -> Result<(), DocumentError> {
        let syntax = self.scanner.syntax();
        let router = &mut self.router;
        self.scanner.end(&mut |event| router.on_event(event, syntax, taker))
    }

    /// The member whose spelling is to be handed on, from the first byte of its value to the one
    /// before the last.
    pub(crate) const fn raw_key(&self) -> Option<&'static str> {
        self.router.raw_key()
    }

    /// The known top-level members, once the document has ended.
    pub(crate) fn decode<'de, T: Deserialize<'de>>(&'de self) -> Result<T, DocumentError> {
        if !self.scanner.is_complete() {
            return Err(self.scanner.syntax());
        }
        let canonical = self.canonical();
        decode(if canonical.is_empty() { b"{}" } else { canonical })
    }

    /// What is known so far; empty if the top-level value is no object.
    pub(super) fn canonical(&self) -> &[u8] {
        self.router.canonical()
    }
}

/// Decodes a canonical text.
pub(crate) fn decode<'de, T: Deserialize<'de>>(canonical: &'de [u8]) -> Result<T, DocumentError> {
    match serde_json_core::from_slice(canonical) {
        Ok((value, _)) => Ok(value),
        Err(_) => Err(DocumentError::Syntax { offset: 0 }),
    }
}

/// Takes any number of bytes.
pub(crate) fn handle_bytes<const C: usize>(
    filter: &mut Filter<C>,
    bytes: &[u8],
    taker: &mut impl Taker,
) -> Result<(), DocumentError> {
    bytes.iter().try_for_each(|&byte| filter.push(byte, taker))
}

/// For documents without texts and arrays.
pub(crate) struct NoTexts;

impl Taker for NoTexts {
    fn handle_text(&mut self, _: &'static str, _: TextPart) -> Result<(), DocumentError> {
        Ok(())
    }

    fn handle_element(&mut self, _: &'static str, _: &[u8]) -> Result<(), DocumentError> {
        Ok(())
    }
}
