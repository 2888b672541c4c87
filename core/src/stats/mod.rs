//! What was counted, and what follows from it: tallies as the flows keep them, sequence tracking
//! and jitter of datagrams, and the accounts of a test that turn samples of tallies into intervals,
//! an omitted start and a summary.

mod accounts;
mod cpu;
mod delay;
pub(crate) mod detail;
mod histogram;
pub(crate) mod host;
mod jitter;
pub(crate) mod known;
mod sequence;
mod stream;
mod tally;
mod verdict;

pub use accounts::{Accounts, Remote};
pub use cpu::CpuMeter;
pub use delay::DelayMeter;
pub use detail::{DetailMeter, FlowDetail};
pub use histogram::{BUCKETS, Histogram};
pub use host::{HostView, TcpView};
pub use jitter::Jitter;
pub use sequence::{Arrival, SequenceTracker};
pub use stream::{StreamAccount, StreamState};
pub use tally::{CpuTimes, Sample, Tally, TcpStats};
