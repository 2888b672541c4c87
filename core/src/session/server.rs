//! The server's end: it takes a client's proposal, accepts its streams, and ends the test when the
//! client says so. Mirrors `client`. One value per client; nothing is shared between them.

use core::time::Duration;

use super::documents::{OwnResults, SessionDocuments};
use super::outbox::{DocumentKind, Outbox};
use super::session::{Exchange, Session};
use super::shared::{Parting, Shared, results_reader};
use super::timers::TimerTable;
use super::{
    Action, Deadlines, Ending, Event, PeerError, Phase, SessionError, StreamEvent, Timer,
    next_phase,
};
#[cfg(feature = "host")]
use super::{Denial, Policy};
use crate::on_host::OnHost;
use crate::protocol::code::{ControlCode, ServerError, error_number};
use crate::protocol::extension::{Features, Offer};
use crate::protocol::frame::{FrameReader, PARAMETERS_LIMIT, RESULTS_LIMIT, SERVER_OUTPUT_LIMIT};
use crate::protocol::json::DocumentError;
use crate::protocol::parameters::{ParametersReader, ReceivedParameters, ReceivedText};
use crate::protocol::results::{OutputKind, ResultsReader};
use crate::test::{End, Protocol, Role, StreamId, TestSettings};
use crate::time::{Instant, nanos};

/// How a server treats its clients.
#[derive(Debug, Clone, Copy, Default)]
pub struct ServerConfig {
    /// Length of the report intervals; none or zero for a single one.
    pub interval: Option<Duration>,
    /// What this end can do for a client that offers the extension; none to stay silent.
    #[cfg(feature = "host")]
    pub extension: Option<Offer>,
    /// How long to wait for what.
    pub deadlines: Deadlines,
    /// What they may ask for.
    #[cfg(feature = "host")]
    pub policy: Policy,
}

/// The answer to [`Action::Prepare`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Admission {
    /// Ready for the client's streams.
    Accept,
    /// No place for this test.
    Busy,
    /// Refused for this reason.
    Deny(ServerError),
    /// Refused for what only the adapter can see.
    #[cfg(feature = "host")]
    NotAllowed(Denial),
}

/// The server's end of a control connection whose cookie has been read. `T` bytes hold the free
/// texts of the parameters.
pub type ServerSession<const N: usize, const T: usize> = Session<Server<N, T>, N>;

/// The server's side of the control exchange.
#[derive(Debug)]
pub struct Server<const N: usize, const T: usize> {
    text: ReceivedText<T>,
    #[cfg(feature = "host")]
    policy: Policy,
    own_extension: OnHost<Offer>,
    accepted: OnHost<Offer>,
    connected: usize,
    server_output_bytes: Option<u32>,
    reading: Reading<N, T>,
}

/// What the next bytes on the control connection are.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "no allocation; only one exists per session")]
enum Reading<const N: usize, const T: usize> {
    Code,
    Parameters(FrameReader, ParametersReader<T>),
    Results(FrameReader, ResultsReader<N>),
}

impl<const N: usize, const T: usize> ServerSession<N, T> {
    /// Begins a session; asking for the parameters is the first thing to send.
    pub fn new(now: Instant, config: ServerConfig) -> Self {
        // Placeholder settings until the client's are here; nothing reads them before.
        let settings = TestSettings::new(Protocol::Tcp);
        let interval_ns = config.interval.map(nanos);
        let mut outbox = Outbox::new();
        outbox.push(&[ControlCode::ParamExchange.byte()]);
        let deadlines = config.deadlines;
        let mut timers = TimerTable::default();
        timers.arm(Timer::Step, now.plus_nanos(deadlines.step_ns));
        let exchange = Server {
            text: ReceivedText::new(),
            #[cfg(feature = "host")]
            policy: config.policy,
            #[cfg(feature = "host")]
            own_extension: OnHost::new(config.extension),
            #[cfg(not(feature = "host"))]
            own_extension: OnHost::NONE,
            accepted: OnHost::NONE,
            connected: 0,
            server_output_bytes: None,
            reading: Reading::Parameters(
                FrameReader::new(PARAMETERS_LIMIT),
                ParametersReader::new(),
            ),
        };
        Self {
            shared: Shared::new(End::Server, settings, interval_ns, deadlines, outbox, timers),
            exchange,
        }
    }

    /// Takes the adapter's answer to [`Action::Prepare`].
    pub fn handle_prepared(&mut self, now: Instant, admission: Admission) {
        self.shared.assert_drained();
        if self.shared.phase != Phase::Preparing {
            return;
        }
        match admission {
            Admission::Accept => self.exchange.on_admitted(&mut self.shared, now),
            Admission::Busy => {
                self.exchange.announce(&mut self.shared);
                let error = SessionError::Denied(ServerError::new(error_number::BUSY));
                self.shared.fail(error, Parting::Code(ControlCode::AccessDenied));
            }
            Admission::Deny(error) => {
                self.exchange.announce(&mut self.shared);
                deny(&mut self.shared, error);
            }
            #[cfg(feature = "host")]
            Admission::NotAllowed(denial) => {
                self.exchange.announce(&mut self.shared);
                self.shared.deny(denial);
            }
        }
    }

    /// Notes that others wait for this client's place, which has been silent for long enough: it is over
    /// if its parameters are not here.
    pub fn handle_others_wait(&mut self, now: Instant) {
        self.shared.assert_drained();
        if self.shared.phase == Phase::Parameters {
            self.exchange.on_timeout(&mut self.shared, now, Timer::Step);
        }
    }

    /// Numbers a data stream that was accepted, and says what this end does on it; `None` if the
    /// client has opened all its streams already or must not yet.
    pub fn handle_stream_accepted(&mut self, now: Instant) -> Option<(StreamId, Role)> {
        self.shared.assert_drained();
        let settings = self.shared.settings;
        let index = self.exchange.connected;
        if self.shared.phase != Phase::Streams || index >= settings.stream_count() {
            return None;
        }
        self.exchange.connected += 1;
        self.exchange.await_greeting(&mut self.shared, now);
        if self.exchange.connected == settings.stream_count() {
            self.shared.send(ControlCode::TestStart);
            self.shared.send(ControlCode::TestRunning);
            self.shared.start(now);
        }
        Some((StreamId::from_index(index), settings.role(End::Server, index)))
    }

    /// Takes the answer to [`Action::CollectOutput`]: bytes of the complete member of the results
    /// document that the adapter will send when [`Transmit::ServerOutput`](super::Transmit) asks
    /// for it. More than [`SERVER_OUTPUT_LIMIT`] is left out.
    pub fn handle_server_output(&mut self, now: Instant, member_bytes: Option<u32>) {
        self.shared.assert_drained();
        self.exchange.server_output_bytes =
            member_bytes.filter(|&bytes| bytes <= SERVER_OUTPUT_LIMIT);
        // Once: the exchange begins with it.
        if self.shared.phase == Phase::Results && matches!(self.exchange.reading, Reading::Code) {
            self.exchange.exchange_results(&mut self.shared, now);
        }
    }

    /// The free texts that came with the test, known from [`Event::Agreed`] on.
    pub const fn text(&self) -> &ReceivedText<T> {
        &self.exchange.text
    }
}

impl<const N: usize, const T: usize> Exchange<N> for Server<N, T> {
    const INTERRUPTED: ControlCode = ControlCode::ServerTerminate;

    fn on_control(
        &mut self,
        shared: &mut Shared<N>,
        now: Instant,
        bytes: &[u8],
        _output: &mut dyn FnMut(OutputKind, &[u8]),
    ) -> Result<usize, DocumentError> {
        let (progress, complete): (_, fn(&mut Self, &mut Shared<N>, Instant) -> _) =
            match &mut self.reading {
                Reading::Code => {
                    Self::on_byte(shared, now, bytes[0]);
                    return Ok(1);
                }
                Reading::Parameters(frame, document) => {
                    (frame.read(bytes, document)?, Self::on_parameters)
                }
                Reading::Results(frame, reader) => {
                    (shared.read_results(frame, reader, bytes, &mut |_, _| ())?, Self::on_results)
                }
            };
        if progress.complete {
            complete(self, shared, now)?;
        }
        Ok(progress.consumed)
    }

    fn on_bad_document(&mut self, shared: &mut Shared<N>, _now: Instant, error: DocumentError) {
        self.reading = Reading::Code;
        let phase = shared.phase;
        let number = match (error, phase) {
            (DocumentError::OutOfRange { number, .. }, _) => number,
            (_, Phase::Parameters) => error_number::RECV_PARAMS,
            _ => error_number::RECV_RESULTS,
        };
        shared.fail(PeerError::Document { phase, error }.into(), error_parting(number));
    }

    fn on_control_closed(&mut self, shared: &mut Shared<N>, _now: Instant) {
        match shared.phase {
            Phase::Done => shared.finish(Ending::Complete, Parting::Nothing),
            phase => shared.fail(SessionError::ControlClosed(phase), Parting::Nothing),
        }
    }

    fn on_stream(&mut self, _: &mut Shared<N>, _: Instant, _: StreamId, _: StreamEvent) {
        // Streams are accepted by `handle_stream_accepted`; before the clock runs they do nothing.
    }

    fn on_measured(&mut self, shared: &mut Shared<N>, now: Instant) {
        shared.phase = Phase::Results;
        shared.act(Action::CloseStreams);
        if shared.settings.server_output {
            shared.act(Action::CollectOutput);
        } else {
            self.exchange_results(shared, now);
        }
    }

    fn on_timeout(&mut self, shared: &mut Shared<N>, _now: Instant, timer: Timer) {
        let number = match (timer, shared.phase) {
            (Timer::Linger, _) => return shared.finish(Ending::Complete, Parting::Nothing),
            (Timer::TestLimit, _) => error_number::DURATION_EXPIRED,
            (Timer::Streams | Timer::Greeting, _) | (_, Phase::Running) => error_number::NO_DATA,
            (_, Phase::Parameters) => error_number::RECV_PARAMS,
            _ => error_number::RECV_RESULTS,
        };
        shared.fail(SessionError::TimedOut(timer), error_parting(number));
    }

    fn extension(&self) -> Option<Offer> {
        self.accepted.get()
    }

    fn documents<'s>(
        &'s self,
        _settings: &'s TestSettings,
        results: OwnResults<'s, N>,
    ) -> SessionDocuments<'s, N> {
        let results = OwnResults { server_output_bytes: self.server_output_bytes, ..results };
        SessionDocuments {
            parameters: None,
            extension: self.accepted.get(),
            refused: None,
            results,
        }
    }
}

impl<const N: usize, const T: usize> Server<N, T> {
    fn on_byte(shared: &mut Shared<N>, now: Instant, byte: u8) {
        let phase = shared.phase;
        let Some(code) = ControlCode::from_byte(byte) else {
            let error = PeerError::UnknownCode { phase, byte }.into();
            return shared.fail(error, error_parting(error_number::MESSAGE));
        };
        match (code, next_phase(End::Server, phase, code)) {
            (_, None) => {
                let error = PeerError::UnexpectedCode { phase, code }.into();
                shared.fail(error, error_parting(error_number::MESSAGE));
            }
            (ControlCode::IperfDone, _) if phase == Phase::Done => {
                shared.finish(Ending::Complete, Parting::Nothing);
            }
            (_, Some(Phase::Over)) => {
                shared.fail(SessionError::Terminated(End::Client), Parting::Nothing);
            }
            (ControlCode::TestEnd, Some(_)) => shared.on_test_end(now),
            (_, Some(_)) => {}
        }
    }

    fn on_parameters(
        &mut self,
        shared: &mut Shared<N>,
        _now: Instant,
    ) -> Result<(), DocumentError> {
        let Reading::Parameters(_, document) = &mut self.reading else { return Ok(()) };
        let parameters = document.finish()?;
        self.reading = Reading::Code;
        self.on_agreed(shared, parameters);
        Ok(())
    }

    fn on_agreed(&mut self, shared: &mut Shared<N>, parameters: ReceivedParameters<T>) {
        let offered = parameters.extension.zip(self.own_extension.get());
        self.accepted = OnHost::new(offered.and_then(|(theirs, ours)| theirs.accept(ours)));
        if parameters.settings.stream_count() > N {
            self.announce(shared);
            return deny(shared, ServerError::new(error_number::STREAM_COUNT));
        }
        #[cfg(feature = "host")]
        if let Err(denial) = self.policy.check(&parameters.settings) {
            self.announce(shared);
            return shared.deny(denial);
        }
        shared.settings = parameters.settings;
        let wide = Features::WIDE_NUMBERS;
        shared.settings.counters_64bit |=
            self.accepted.get().is_some_and(|agreed| agreed.features.contains(wide));
        #[cfg(feature = "host")]
        shared.watch.limit_to(&self.policy, &shared.settings);
        self.text = parameters.text;
        shared.phase = Phase::Preparing;
        shared.timers.disarm(Timer::Step);
        shared.tell(Event::Agreed);
        shared.act(Action::Prepare);
    }

    fn on_admitted(&mut self, shared: &mut Shared<N>, now: Instant) {
        self.announce(shared);
        shared.send(ControlCode::CreateStreams);
        shared.phase = Phase::Streams;
        shared.timers.arm(Timer::Streams, now.plus_nanos(shared.deadlines.streams_ns));
        self.await_greeting(shared, now);
    }

    /// A client whose greetings name nothing keeps others of its address waiting.
    fn await_greeting(&self, shared: &mut Shared<N>, now: Instant) {
        let own = Features::ACKNOWLEDGED_GREETINGS;
        let is_agreed = self.accepted.get().is_some_and(|agreed| agreed.features.contains(own));
        if shared.settings.protocol == Protocol::Udp && !is_agreed {
            shared.timers.arm(Timer::Greeting, now.plus_nanos(shared.deadlines.greet_ns));
        }
    }

    /// Accepts the extension. The first answer to the parameters, a refusal too, which is explained
    /// from here on.
    fn announce(&self, shared: &mut Shared<N>) {
        if let Some(accepted) = self.accepted.get() {
            shared.send(ControlCode::ExtensionAccepted);
            shared.outbox.push_document(DocumentKind::Extension);
            let is_explained = accepted.features.contains(Features::EXPLAINED);
            shared.explains = OnHost::new(is_explained.then_some(()));
        }
    }

    fn exchange_results(&mut self, shared: &mut Shared<N>, now: Instant) {
        shared.send(ControlCode::ExchangeResults);
        shared.await_step(now);
        let frame = FrameReader::new(RESULTS_LIMIT);
        self.reading = Reading::Results(frame, results_reader(self.accepted.get()));
    }

    fn on_results(&mut self, shared: &mut Shared<N>, now: Instant) -> Result<(), DocumentError> {
        let Reading::Results(_, document) = &mut self.reading else { return Ok(()) };
        let results = document.finish()?;
        self.reading = Reading::Code;
        if let Err(number) = shared.accounts.apply_remote(&results) {
            let error = PeerError::UnknownStream { number }.into();
            shared.fail(error, error_parting(error_number::STREAM_ID));
            return Ok(());
        }
        shared.outbox.push_document(DocumentKind::Results);
        shared.send(ControlCode::DisplayResults);
        shared.phase = Phase::Done;
        shared.timers.disarm(Timer::Step);
        shared.timers.arm(Timer::Linger, now.plus_nanos(shared.deadlines.linger_ns));
        Ok(())
    }
}

fn deny<const N: usize>(shared: &mut Shared<N>, error: ServerError) {
    shared.fail(SessionError::Denied(error), Parting::Error(error));
}

const fn error_parting(number: i32) -> Parting {
    Parting::Error(ServerError::new(number))
}
