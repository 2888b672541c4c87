//! linerate as a library: run a client or a server, watch it, cancel it. Nothing here exits the
//! process or keeps global state.

pub mod cli;
mod clock;
pub mod config;
pub mod error;
pub mod report;
mod stream;
mod sys;
pub mod system_info;
