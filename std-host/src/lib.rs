//! linerate as a library: run a client or a server, watch it, cancel it. Nothing here exits the
//! process or keeps global state.

pub mod cli;
pub mod client;
mod clock;
pub mod config;
mod connect;
mod control;
pub mod error;
pub mod observe;
pub mod report;
pub mod server;
mod stream;
mod sys;
pub mod system_info;
