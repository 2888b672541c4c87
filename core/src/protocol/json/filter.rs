//! From the bytes of a document to its known members: the scanner checks the syntax, the router
//! finds what is known and hands it on.

use super::DocumentError;
use super::router::{Router, Taker, WrongType};
use super::scan::Scanner;
use super::table::Member;

/// Reads one document against a table.
#[derive(Debug, Clone)]
pub(crate) struct Filter {
    scanner: Scanner,
    router: Router,
}

impl Filter {
    pub(crate) const fn new(table: &'static [Member], wrong_type: WrongType) -> Self {
        Self { scanner: Scanner::new(), router: Router::new(table, wrong_type) }
    }

    /// Takes any number of bytes.
    pub(crate) fn handle_bytes(
        &mut self,
        bytes: &[u8],
        taker: &mut dyn Taker,
    ) -> Result<(), DocumentError> {
        bytes.iter().try_for_each(|&byte| self.push(byte, taker))
    }

    pub(crate) fn push(&mut self, byte: u8, taker: &mut dyn Taker) -> Result<(), DocumentError> {
        let syntax = self.scanner.syntax();
        let router = &mut self.router;
        self.scanner.push(byte, &mut |event| router.on_event(event, syntax, taker))
    }

    pub(crate) fn end(&mut self, taker: &mut dyn Taker) -> Result<(), DocumentError> {
        let syntax = self.scanner.syntax();
        let router = &mut self.router;
        self.scanner.end(&mut |event| router.on_event(event, syntax, taker))
    }

    /// The member whose spelling is to be handed on, from the first byte of its value to the one
    /// before the last.
    pub(crate) const fn raw_key(&self) -> Option<&'static str> {
        self.router.raw_key()
    }

    /// Whether everything has been handed on; an error if the document has not ended.
    pub(crate) const fn check_complete(&self) -> Result<(), DocumentError> {
        if self.scanner.is_complete() { Ok(()) } else { Err(self.scanner.syntax()) }
    }
}
