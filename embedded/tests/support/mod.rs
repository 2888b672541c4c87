//! What the suites of this folder share; each uses its part.
#![allow(dead_code, reason = "every suite is a program of its own")]

pub(crate) mod board;
