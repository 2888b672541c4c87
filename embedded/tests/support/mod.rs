//! What the suites of this folder share; each uses its part.
#![allow(dead_code, reason = "every suite is a program of its own")]

#[cfg(target_os = "linux")]
pub(crate) mod board;
pub(crate) mod client;
pub(crate) mod world;
