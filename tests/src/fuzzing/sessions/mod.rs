//! Whole sessions: the bytes are read as a test and as what happens to it. One end alone meets
//! peers, adapters and networks that keep no rule; two ends wired to each other meet either faults
//! or only odd cuts and delays, and then both have to complete.

mod lone;
mod pair;
mod test;
mod watched;

use super::input::Input;

/// The first byte says who takes part.
pub fn sessions(data: &[u8]) {
    let mut input = Input::new(data);
    match input.below(4) {
        0 => lone::client(&mut input),
        1 => lone::server(&mut input),
        2 => pair::run(&mut input, pair::Weather::Faulty),
        _ => pair::run(&mut input, pair::Weather::Fair),
    }
}
