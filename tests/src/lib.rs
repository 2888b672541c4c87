//! The harness of the suites that cross crates.
//!
//! | module | holds |
//! |---|---|
//! | [`virtual_time`] | both engines over an emulated link, in virtual time |

pub mod virtual_time;
