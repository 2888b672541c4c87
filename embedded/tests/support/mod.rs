//! What the suites of this folder share; each uses its part.
#![allow(dead_code, unused_imports, unused_macros, reason = "every suite is a program of its own")]

#[cfg(target_os = "linux")]
pub(crate) mod board;
pub(crate) mod cases;
pub(crate) mod client;
#[cfg(feature = "embassy-net")]
pub(crate) mod clock;
pub(crate) mod loss;
pub(crate) mod pair;
pub(crate) mod random_peer;
#[cfg(feature = "embassy-net")]
pub(crate) mod stacks;
#[cfg(feature = "embassy-net")]
pub(crate) mod tasks;
pub(crate) mod told;
pub(crate) mod world;
