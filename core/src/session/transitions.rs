//! The whole control exchange as one table: in which phase which code of the other end is legal,
//! and where it leads. Source: iperf3 3.21's client and server main loops, and what old releases
//! really send (a server never requires the client's codes in states where it cannot read them).

use core::fmt;

use crate::protocol::code::ControlCode;
use crate::test::End;

/// Where the control exchange of one end is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Phase {
    /// Client: cookie sent, the server says nothing before it is served.
    Greeting,
    /// Server: waits for the client's parameters.
    Parameters,
    /// Client: parameters sent. Server: its adapter gets ready to accept.
    Preparing,
    /// Client: reads the server's answer to its offer of the extension.
    Extension,
    /// Data streams are being connected.
    Streams,
    /// Client: streams connected, the server starts the clock.
    Starting,
    /// Data flows.
    Running,
    /// Client: told the server that the test is over, and waits to exchange results.
    Ending,
    /// Results go over, first the client's.
    Results,
    /// Client: both results are there, the server says so. Server: waits for the client's goodbye.
    Done,
    /// Nothing more is expected.
    Over,
}

impl fmt::Display for Phase {
    /// What this end was waiting for, to follow "while" or "expected while".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Greeting => "waiting for the server's first answer",
            Self::Parameters => "waiting for the client's parameters",
            Self::Preparing => "waiting for the server to take the parameters",
            Self::Extension => "reading the answer to the extension offer",
            Self::Streams => "connecting the data streams",
            Self::Starting => "waiting for the start of the test",
            Self::Running => "running the test",
            Self::Ending => "waiting for the server to end the test",
            Self::Results => "exchanging results",
            Self::Done => "closing the test",
            Self::Over => "closed",
        })
    }
}

/// Where `code` from the other end leads, or `None` if it is out of turn. Codes that end a session
/// at once (refusals, terminations, goodbye) lead to [`Phase::Over`] from everywhere they may come.
pub const fn next_phase(end: End, phase: Phase, code: ControlCode) -> Option<Phase> {
    use ControlCode as C;
    use Phase as P;
    Some(match (end, phase, code) {
        (_, P::Over, _) => return None,

        (End::Client, P::Greeting, C::ParamExchange) => P::Preparing,
        (End::Client, P::Preparing, C::ExtensionAccepted) => P::Extension,
        (End::Client, P::Preparing, C::CreateStreams) => P::Streams,
        // A server starts as soon as the last stream is accepted on its side, maybe before the
        // client has seen its own connect succeed.
        (End::Client, P::Streams | P::Starting, C::TestStart) => P::Starting,
        (End::Client, P::Streams | P::Starting, C::TestRunning) => P::Running,
        (End::Client, P::Ending, C::ExchangeResults) => P::Results,
        (End::Client, P::Results, C::DisplayResults) => P::Done,
        (End::Client, _, C::AccessDenied) => P::Over,
        (End::Client, _, C::ServerError) => P::Over,
        (End::Client, _, C::ServerTerminate) => P::Over,
        (End::Client, _, C::IperfDone) => P::Over,

        (End::Server, P::Running, C::TestEnd) => P::Results,
        // A real server ignores these two; some clients echo them.
        (End::Server, phase, C::TestStart | C::TestRunning) => phase,
        (End::Server, _, C::ClientTerminate) => P::Over,
        (End::Server, _, C::IperfDone) => P::Over,

        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_test_walks_through_the_table() {
        use ControlCode as C;
        let codes = [C::ParamExchange, C::CreateStreams, C::TestStart, C::TestRunning];
        let running = codes
            .into_iter()
            .try_fold(Phase::Greeting, |phase, code| next_phase(End::Client, phase, code));
        assert_eq!(running, Some(Phase::Running));
        let results = next_phase(End::Client, Phase::Ending, C::ExchangeResults);
        assert_eq!(results, Some(Phase::Results));
        let done = next_phase(End::Client, Phase::Results, C::DisplayResults);
        assert_eq!(done, Some(Phase::Done));
    }

    #[test]
    fn the_extension_code_is_legal_in_one_place_only() {
        let legal = ALL.into_iter().filter(|&phase| {
            next_phase(End::Client, phase, ControlCode::ExtensionAccepted).is_some()
        });
        assert!(legal.eq([Phase::Preparing]));
        assert!(ALL.into_iter().all(|phase| {
            next_phase(End::Server, phase, ControlCode::ExtensionAccepted).is_none()
        }));
    }

    const ALL: [Phase; 11] = [
        Phase::Greeting,
        Phase::Parameters,
        Phase::Preparing,
        Phase::Extension,
        Phase::Streams,
        Phase::Starting,
        Phase::Running,
        Phase::Ending,
        Phase::Results,
        Phase::Done,
        Phase::Over,
    ];
}
