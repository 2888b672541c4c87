//! Both engines in virtual time: a client and a server session, their flows, and the network between
//! them, driven by one queue of events. Nothing here sleeps, opens a socket or reads a clock, so ten
//! simulated seconds take milliseconds and a seed repeats a run exactly.
//!
//! | module | holds |
//! |---|---|
//! | [`random`] | the small seeded generator behind every chance |
//! | [`pipe`] | a reliable, ordered byte stream over a link |
//! | [`control`] | the control connection and what can go wrong with it |
//! | [`stream`] | one data stream: both flows, and the truth about what it carried |
//! | [`setup`] | everything that decides how a run goes |
//! | [`endpoint`] | a session of either end, as the pair drives it |
//! | [`pair`] | the two ends and the queue of events |
//! | [`log`] | what each end said |
//! | [`law`] | what holds for every honest test |

pub mod control;
pub mod endpoint;
pub mod greetings;
pub mod law;
pub mod log;
pub mod pair;
pub mod pipe;
mod queue;
pub mod random;
pub mod setup;
pub mod stream;

/// Most streams of a test in virtual time, both directions together.
pub const STREAMS: usize = 8;
