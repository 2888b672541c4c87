//! What was counted, and what follows from it: tallies as the flows keep them, sequence tracking
//! and jitter of datagrams, and the accounts of a test that turn samples of tallies into intervals,
//! an omitted start and a summary.

mod jitter;
mod sequence;
mod tally;

pub use jitter::Jitter;
pub use sequence::{Arrival, SequenceTracker};
pub use tally::{CpuTimes, Sample, Tally, TcpStats};
