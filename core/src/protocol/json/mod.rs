//! Reading JSON from a peer, a byte at a time, bounded, as iperf3's own reader (cJSON, 3.0 to 3.21)
//! understands it: keys without regard to ASCII case, the first of two equal keys, anything unknown
//! skipped, numbers in every spelling a C printer makes.
//!
//! A scanner checks the syntax, a router with one table a document finds the known members and brings
//! each number and flag to a small canonical text, and serde-json-core decodes that text. Everything is
//! handed on while it is read, so nothing here grows with the size of a document.

mod error;
mod filter;
mod number;
mod numbers;
mod router;
mod scan;
mod table;
mod write;

pub use error::DocumentError;
pub(super) use filter::Filter;
pub(super) use numbers::{Numbers, places};
pub(super) use router::{Taker, TextPart, WrongType};
pub(super) use table::{Kind, Member};
pub(super) use write::{Escaped, Scaled, Window};

#[cfg(test)]
mod tests;
