//! linerate as a library: run a client or a server, watch it, cancel it. Nothing here exits the
//! process or keeps global state.

#[allow(dead_code, reason = "the control plane that uses it is a module of its own")]
mod clock;
pub mod error;
pub mod report;
#[allow(
    dead_code,
    unused_imports,
    reason = "the control plane that uses it is a module of its own"
)]
mod stream;
#[allow(
    dead_code,
    unused_imports,
    reason = "the control plane that uses it is a module of its own"
)]
mod sys;
