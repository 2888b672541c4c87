//! Everything that decides how a run in virtual time goes: the test, the network, the faults, and a
//! seed for all that is left to chance.

use std::time::Duration;

use linerate_core::protocol::extension::Offer;
use linerate_core::session::{Admission, Deadlines, Policy, StreamEvent};
use linerate_core::test::{End, TestSettings};
use linerate_core::time::nanos;

use super::control::ControlFault;
use crate::link::model::LinkModel;

/// Everything that decides how a run goes.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The test.
    pub settings: TestSettings,
    /// Report intervals of both ends.
    pub interval: Option<Duration>,
    /// The client's offer of the extension.
    pub offer: Option<Offer>,
    /// The server's answer to it.
    pub answer: Option<Offer>,
    /// Of both ends.
    pub deadlines: Deadlines,
    /// What the server allows.
    pub policy: Policy,
    /// The network under each data stream. The server's clock is ahead by its offset.
    pub data: LinkModel,
    /// The network under the greetings of UDP streams; none is one that only delays, as the control
    /// connection does.
    pub greetings: Option<LinkModel>,
    /// Greetings that are lost in any case: whose, and which, counted from one.
    pub lost_greetings: Vec<(End, u64)>,
    /// One way of the control connection, and of opening a stream.
    pub control_latency_ns: u64,
    /// Most bytes of control that travel together.
    pub control_chunk_bytes: usize,
    /// What goes wrong on the control connection.
    pub control_fault: Option<ControlFault>,
    /// Most bytes in flight of a TCP stream.
    pub window_bytes: u64,
    /// How long an end takes to answer a request for samples or for its output.
    pub sample_delay_ns: u64,
    /// The server's answer to the test.
    pub admission: Admission,
    /// What other tests of the server move.
    pub others_bits_per_second: u64,
    /// The stream that cannot be opened, by order of creation.
    pub failing_stream: Option<usize>,
    /// The member of the results that carries the server's output.
    pub server_output: Option<String>,
    /// What every chance depends on.
    pub seed: u64,
}

impl Setup {
    /// A test over a quiet network: five milliseconds each way.
    pub fn new(settings: TestSettings) -> Self {
        Self {
            settings,
            interval: Some(Duration::from_secs(1)),
            offer: None,
            answer: None,
            deadlines: Deadlines::default(),
            policy: Policy::default(),
            data: LinkModel { latency_ns: 5_000_000, ..LinkModel::default() },
            greetings: None,
            lost_greetings: Vec::new(),
            control_latency_ns: 5_000_000,
            control_chunk_bytes: 100,
            control_fault: None,
            window_bytes: 1 << 18,
            sample_delay_ns: 0,
            admission: Admission::Accept,
            others_bits_per_second: 0,
            failing_stream: None,
            server_output: None,
            seed: 0,
        }
    }

    /// By when both sessions of a test that ends by time are over, whatever happens: every wait of the
    /// exchange at its longest, one after the other.
    pub fn longest_ns(&self) -> u64 {
        let Deadlines { greeting_ns, step_ns, streams_ns, grace_ns, linger_ns, .. } =
            self.deadlines;
        let seconds = self.settings.omit_secs + self.settings.limits.seconds.unwrap_or(0);
        let test_ns = nanos(Duration::from_secs(seconds.into()));
        // Steps: parameters, preparing, start, end, results of each end. Answers of the adapter:
        // three samples and the output.
        greeting_ns
            + 6 * step_ns
            + streams_ns
            + test_ns
            + grace_ns
            + linger_ns
            + 4 * self.sample_delay_ns
            + 20 * self.control_latency_ns
    }
}

/// Something that happens to a run from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Whoever runs this end stops it.
    Interrupt(End),
    /// This end closes its control connection without a word.
    Vanish(End),
    /// These bytes come to this end on the control connection.
    Garbage(End, Vec<u8>),
    /// This end's control connection takes no bytes for so many nanoseconds.
    Block(End, u64),
    /// All data streams break, as this end's adapter sees it.
    CloseStreams(End),
    /// This end's adapter reports this of the stream created so many places after the first.
    Stream(End, usize, StreamEvent),
}
