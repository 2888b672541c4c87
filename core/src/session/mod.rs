//! The two ends of a control connection. A session is fed bytes, stream events, samples, commands
//! and the time; it answers with control bytes, actions, events and a deadline. It never touches a
//! socket and never asks for the time.
//!
//! One law holds for both ends: after every input, drain `poll_action` and `poll_event` before the
//! next input; debug builds assert it. Control bytes may wait until the connection takes them. The
//! last event of every session is [`Event::Finished`], and it comes exactly once.

#[cfg_attr(not(feature = "host"), allow(dead_code, reason = "limits are a host's"))]
mod allowance;
mod amount;
mod client;
#[cfg_attr(not(feature = "host"), allow(dead_code, reason = "limits are a host's"))]
mod denial;
mod documents;
mod error;
mod greeter;
mod looks;
mod opening;
mod outbox;
#[cfg_attr(not(feature = "host"), allow(dead_code, reason = "limits are a host's"))]
mod policy;
#[cfg_attr(not(feature = "host"), allow(dead_code, reason = "limits are a host's"))]
mod rate;
mod server;
#[allow(clippy::module_inception, reason = "the session itself")]
mod session;
mod shared;
mod timers;
mod transitions;
mod watch;

pub use client::{Client, ClientConfig, ClientSession};
pub use denial::Denial;
pub use error::{Ending, PeerError, Refusal, SessionError};
pub use outbox::Transmit;
pub use policy::{Policy, RateLimit};
pub use server::{Admission, Server, ServerConfig, ServerSession};
pub use session::{Exchange, Session};
pub use timers::Timer;
pub use transitions::{Phase, next_phase};

use core::time::Duration;

use crate::report::Span;
use crate::test::{Role, StreamId};

/// What the adapter must do. Actions that concern streams name all streams of the session where
/// they carry no number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Action {
    /// Client: open this stream to the server's port. TCP: connect and send the cookie. UDP: send
    /// the greeting that the session gives for it, once, and listen. Answer with `handle_stream`.
    OpenStream(StreamId, Role),
    /// Client: send the greeting of this UDP stream, which is open, once more.
    Greet(StreamId),
    /// Server: get ready for `stream_count` connections that carry this session's cookie (TCP) or
    /// greetings from this client (UDP), decide on its token, and answer with `handle_prepared`.
    Prepare,
    /// Run the flows: each stream gets its [`StreamPlan`](crate::flow::StreamPlan) from the session's `plan`.
    StartStreams,
    /// Server: this is what the test moves, bits per second. Where it is too much together with what
    /// all others move, say so with `handle_denied`.
    Weigh {
        /// The rate that was agreed, if the test keeps it, or else what was measured.
        bits_per_second: u64,
    },
    /// Collect a [`Sample`](crate::stats::Sample) of every stream, in order of creation, and the
    /// CPU times, and answer with `handle_samples`.
    Sample,
    /// Senders write nothing more. Receivers take what has arrived in their socket already, then
    /// count nothing more, but go on reading and discarding until the streams are closed.
    StopStreams,
    /// Close the data sockets.
    CloseStreams,
    /// Server: the client asked for this end's output; answer with `handle_server_output`.
    CollectOutput,
    /// Send what is queued on the control connection, then close it. The session is over.
    CloseControl,
}

/// What happened, for whoever watches the test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Event {
    /// Client: the server took the connection a while ago and has said nothing. It may have a queue,
    /// or be none.
    StillUnanswered,
    /// The settings are agreed; `settings` is complete from here on.
    Agreed,
    /// All streams are there and the clock runs.
    Started,
    /// An interval is over; `interval(index)` of the accounts tells each stream's part of it until
    /// the next input.
    Interval {
        /// When, within its phase.
        span: Span,
        /// It lies in the omitted start.
        omitted: bool,
    },
    /// The omitted start is over.
    OmitEnded,
    /// This end's measurement is complete; the peer's may still come. Does not come when nothing
    /// was measured.
    Measured,
    /// The session is over. With [`Ending::Complete`] the accounts hold the peer's results too.
    Finished(Ending),
}

/// What happened to a data stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum StreamEvent {
    /// It is connected, its cookie sent or its greeting answered. Any datagram from the server is an
    /// answer: data, too, shows that the greeting has come.
    Connected,
    /// Client: the network says that nobody listened where the greeting of this UDP stream went.
    Refused,
    /// This end could not open or start it; `code` is the system's error number, zero if it gave
    /// none.
    Failed {
        /// The system's error number.
        code: i32,
    },
    /// A stream moved all its plan's limit, or a sender its share: what a sender sent is acknowledged or
    /// handed over, what was to come to a receiver is here.
    LimitReached,
    /// A receiver has its plan's share, and goes on. Who does not tell is looked at, only later.
    ShareReached,
    /// It broke or was closed by the peer in the middle of the test. The others go on.
    Closed,
    /// The file that it reads or writes failed; `code` is the system's error number, zero if it gave
    /// none. The test ends, since what it was to move is not complete.
    FileFailed {
        /// The system's error number.
        code: i32,
    },
}

/// What the person or program that runs this end wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Command {
    /// End the test now, with a summary of what there is, and tell the peer.
    Interrupt,
}

/// How long a session waits for what. iperf3 waits for ever in most of these places. Whether a peer
/// is still there is for the control connection to notice: data may be silent for long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Deadlines {
    /// Client: for the server's first answer. A server with a queue is silent until its turn.
    pub greeting_ns: u64,
    /// For each next step of the control exchange, documents included.
    pub step_ns: u64,
    /// For all data streams to be there. A client whose UDP greetings are not acknowledged gives each
    /// stream after the first a second more.
    pub streams_ns: u64,
    /// Server: for each UDP greeting that nobody repeats. Other tests of the same address wait for it.
    pub greet_ns: u64,
    /// Server: beyond the agreed length of a test (iperf3 since 3.7: 40 s).
    pub grace_ns: u64,
    /// For the peer to close the control connection at the very end.
    pub linger_ns: u64,
    /// Where this end receives: between two arrivals of data on any stream of a running test. None
    /// waits as long as the control connection lives (iperf3 since 3.10: 120 s).
    pub silence_ns: Option<u64>,
}

impl Default for Deadlines {
    fn default() -> Self {
        let secs = |s| crate::time::nanos(Duration::from_secs(s));
        Self {
            greeting_ns: secs(60),
            step_ns: secs(30),
            streams_ns: secs(30),
            greet_ns: secs(8),
            grace_ns: secs(40),
            linger_ns: secs(10),
            silence_ns: None,
        }
    }
}

#[cfg(test)]
mod tests;
