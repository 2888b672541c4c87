//! What one data stream does next, decided without touching a socket. An adapter asks a
//! [`SendFlow`] for its next step, moves the bytes, and says how many the network took; it tells a
//! [`ReceiveFlow`] what arrived. Both keep the stream's [`Tally`](crate::stats::Tally); the adapter
//! publishes copies of it to the session.

mod pacing;
mod plan;
mod receive;
mod send;

pub use pacing::Pacer;
pub use plan::StreamPlan;
pub use receive::ReceiveFlow;
pub use send::{SendFlow, Step};
