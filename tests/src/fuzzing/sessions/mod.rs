//! Whole sessions: the bytes are read as a test and as what happens to it. One end alone meets
//! peers, adapters and networks that keep no rule; two ends wired to each other meet either faults
//! or only odd cuts and delays, and then both have to complete.

mod lone;
mod pair;
mod test;
mod watched;

use self::watched::Said;
use super::input::{Chunks, Input};

/// The first byte says who takes part.
pub fn sessions(data: &[u8]) {
    let mut input = Input::new(data);
    match input.below(4) {
        0 => in_any_chunks(&input, lone::client),
        1 => in_any_chunks(&input, lone::server),
        2 => pair::run(&mut input, pair::Weather::Faulty),
        _ => pair::run(&mut input, pair::Weather::Fair),
    }
}

/// An end says the same however its peer's bytes are cut.
fn in_any_chunks(input: &Input<'_>, run: fn(&mut Input<'_>, Chunks) -> Said) {
    let whole = run(&mut input.clone(), Chunks::Whole);
    let single = run(&mut input.clone(), Chunks::Single);
    assert_eq!(whole, single, "how bytes are cut changes what is said");
}
