//! Reading JSON from a peer, a byte at a time, bounded, as iperf3's own reader (cJSON, 3.0 to 3.21)
//! understands it: keys without regard to ASCII case, the first of two equal keys, anything unknown
//! skipped, numbers in every spelling a C printer makes.
//!
//! A scanner checks the syntax, a router with one table a document keeps the known members as a
//! small canonical text, and serde-json-core decodes that text into a plain struct. Texts, free-form
//! values, the elements of arrays and the numbers of large objects are handed on while they are read, so
//! nothing here grows with the size of a document.

mod error;
mod filter;
mod number;
mod router;
mod scan;
mod table;
mod write;

pub use error::DocumentError;
pub(super) use filter::{Filter, NoTexts, decode, handle_bytes};
pub(super) use router::{Taker, TextPart, WrongType};
pub(super) use table::{Kind, Member, capacity};
pub(super) use write::{Escaped, Scaled, Window};

#[cfg(test)]
mod tests;
