//! What random bytes must not do to the engine. Each target is an ordinary function that takes any
//! bytes and panics if a law is broken; so the fuzzer drives it (`cargo xtask fuzz`), the normal
//! tests replay the committed corpus through it, and proptest feeds it with bytes of its own.
//!
//! A finding becomes a file of `tests/corpus/TARGET`, named after what it showed.

mod datagrams;
mod documents;
mod frames;
mod greetings;
mod input;
mod parameters;
mod results;
pub mod seeds;
mod sessions;

pub use datagrams::datagrams;
pub use frames::frames;
pub use greetings::greetings;
pub use parameters::parameters;
pub use results::results;
pub use sessions::sessions;

/// One target: a name, which is also its folder of the corpus, and what to do with the bytes.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name.
    pub name: &'static str,
    /// Panics when a law is broken.
    pub body: fn(&[u8]),
}

/// All targets.
pub const TARGETS: [Target; 6] = [
    Target { name: "datagrams", body: datagrams },
    Target { name: "frames", body: frames },
    Target { name: "greetings", body: greetings },
    Target { name: "parameters", body: parameters },
    Target { name: "results", body: results },
    Target { name: "sessions", body: sessions },
];

/// The target of this name.
pub fn target(name: &str) -> Option<Target> {
    TARGETS.into_iter().find(|target| target.name == name)
}
