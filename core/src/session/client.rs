//! The client's end: it greets, proposes the test, opens the streams, decides when the test is
//! over, and says goodbye. Mirrors `server`.

use core::time::Duration;

use heapless::Vec;

use super::documents::{OwnResults, SessionDocuments};
use super::greeter::Greeter;
use super::outbox::{DocumentKind, Outbox};
use super::session::{Exchange, Session};
use super::shared::{Parting, Shared, results_reader};
use super::timers::TimerTable;
use super::{
    Action, Deadlines, Ending, Event, PeerError, Phase, Refusal, SessionError, StreamEvent, Timer,
    next_phase,
};
use crate::on_host::OnHost;
use crate::protocol::code::{ControlCode, ServerError};
use crate::protocol::cookie::Cookie;
use crate::protocol::explanation::{EXPLANATION_LIMIT, Explanation, ExplanationReader};
use crate::protocol::extension::{ExtensionReader, Features, Offer};
use crate::protocol::frame::{EXTENSION_LIMIT, FrameReader, RESULTS_LIMIT};
use crate::protocol::json::DocumentError;
use crate::protocol::parameters::{ClientText, OutgoingParameters};
use crate::protocol::results::{OutputKind, ResultsReader};
use crate::test::{End, StreamId, TestSettings, datagram_bytes_for};
use crate::time::{Instant, NANOS_PER_SEC, nanos};
use crate::units::PacketsPerSec;

/// What a client wants to measure, and how it says so.
#[derive(Debug, Clone, Copy)]
pub struct ClientConfig<'a> {
    /// The test.
    pub settings: TestSettings,
    /// Target rate of each stream in blocks. It replaces that of the settings, and is turned into
    /// theirs when the size of a block is known; the server hears of bits only.
    pub packet_rate: Option<PacketsPerSec>,
    /// Free texts that go with it.
    pub text: ClientText<'a>,
    /// Sent as `client_version`; servers do not read it.
    pub client_version: &'a str,
    /// Length of the report intervals; none or zero for a single one.
    pub interval: Option<Duration>,
    /// Offer of the extension to a linerate server; a stock one ignores it.
    #[cfg(feature = "host")]
    pub offer: Option<Offer>,
    /// How long to wait for what.
    pub deadlines: Deadlines,
}

impl ClientConfig<'_> {
    /// A test and nothing beside it: no texts, a single interval, iperf3's patience.
    pub fn new(settings: TestSettings) -> Self {
        Self {
            settings,
            packet_rate: None,
            text: ClientText::default(),
            client_version: crate::IPERF3_EQUIVALENT,
            interval: None,
            #[cfg(feature = "host")]
            offer: None,
            deadlines: Deadlines::default(),
        }
    }
}

/// The client's end of a control connection that has just been established.
pub type ClientSession<'a, const N: usize> = Session<Client<'a, N>, N>;

/// The client's side of the control exchange.
#[derive(Debug)]
pub struct Client<'a, const N: usize> {
    text: ClientText<'a>,
    client_version: &'a str,
    packet_rate: Option<PacketsPerSec>,
    offer: OnHost<Offer>,
    pub(super) accepted: OnHost<Offer>,
    pub(super) opened: usize,
    pub(super) cookie: Cookie,
    /// Of a UDP test, from the server's request for streams on.
    pub(super) greeter: Option<Greeter<N>>,
    /// The server has started the test, maybe while streams were still being reported connected.
    start_seen: bool,
    /// The server has said something positive, so that it understands a goodbye.
    heard: bool,
    /// The server's words to its refusal.
    explanation: OnHost<Explanation>,
    reading: Reading<N>,
}

/// What the next bytes on the control connection are.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "no allocation; only one exists per session")]
enum Reading<const N: usize> {
    Code,
    ServerError(Vec<u8, { ServerError::LEN }>),
    /// A refusal that is to be explained.
    Explanation(Refusal, FrameReader, ExplanationReader),
    Extension(FrameReader, ExtensionReader),
    Results(FrameReader, ResultsReader<N>),
}

impl<'a, const N: usize> ClientSession<'a, N> {
    /// Begins a session; the cookie is the first thing to send.
    ///
    /// # Errors
    /// Gives back the number of streams of the test if it is more than `N`.
    pub fn new(now: Instant, config: ClientConfig<'a>, cookie: Cookie) -> Result<Self, usize> {
        let count = config.settings.stream_count();
        if count > N {
            return Err(count);
        }
        let interval_ns = config.interval.map(nanos);
        let mut outbox = Outbox::new();
        outbox.push(cookie.as_bytes());
        let mut timers = TimerTable::default();
        timers.arm(Timer::Step, now.plus_nanos(config.deadlines.greeting_ns));
        timers.arm(Timer::Quiet, now.plus_nanos(QUIET_NS));
        let exchange = Client {
            text: config.text,
            client_version: config.client_version,
            packet_rate: config.packet_rate,
            #[cfg(feature = "host")]
            offer: OnHost::new(config.offer),
            #[cfg(not(feature = "host"))]
            offer: OnHost::NONE,
            accepted: OnHost::NONE,
            opened: 0,
            cookie,
            greeter: None,
            start_seen: false,
            heard: false,
            explanation: OnHost::NONE,
            reading: Reading::Code,
        };
        let (mut settings, deadlines) = (config.settings, config.deadlines);
        if let Some(rate) = config.packet_rate {
            settings.set_packet_rate(rate);
        }
        Ok(Self {
            shared: Shared::new(End::Client, settings, interval_ns, deadlines, outbox, timers),
            exchange,
        })
    }

    /// The server's own words to its refusal, if there are any.
    pub fn explanation(&self) -> Option<&str> {
        self.exchange.explanation.as_ref().map(Explanation::as_str)
    }

    /// Sizes the datagrams of a test whose user left that open, by the control connection's segment
    /// size. To be called once the cookie is sent, since systems correct that size with the first
    /// data, and before the server has answered; later calls change nothing.
    pub fn handle_path(&mut self, control_mss: Option<u32>) {
        if self.shared.phase == Phase::Greeting {
            let settings = &mut self.shared.settings;
            settings.block_bytes = datagram_bytes_for(control_mss);
            if let Some(rate) = self.exchange.packet_rate {
                settings.set_packet_rate(rate);
            }
        }
    }
}

impl<const N: usize> Exchange<N> for Client<'_, N> {
    const INTERRUPTED: ControlCode = ControlCode::ClientTerminate;

    fn on_control(
        &mut self,
        shared: &mut Shared<N>,
        now: Instant,
        bytes: &[u8],
        output: &mut dyn FnMut(OutputKind, &[u8]),
    ) -> Result<usize, DocumentError> {
        let (progress, complete): (_, fn(&mut Self, &mut Shared<N>, Instant) -> _) =
            match &mut self.reading {
                Reading::Code => {
                    self.on_byte(shared, now, bytes[0]);
                    return Ok(1);
                }
                Reading::ServerError(numbers) => {
                    let consumed = bytes.len().min(ServerError::LEN - numbers.len());
                    numbers.extend_from_slice(&bytes[..consumed]).expect("cut to the room left");
                    self.on_server_error(shared, now);
                    return Ok(consumed);
                }
                Reading::Explanation(_, frame, document) => {
                    (frame.read(bytes, document)?, Self::on_explanation)
                }
                Reading::Extension(frame, document) => {
                    (frame.read(bytes, document)?, Self::on_extension)
                }
                Reading::Results(frame, reader) => {
                    (shared.read_results(frame, reader, bytes, output)?, Self::on_results)
                }
            };
        if progress.complete {
            complete(self, shared, now)?;
        }
        Ok(progress.consumed)
    }

    fn on_bad_document(&mut self, shared: &mut Shared<N>, _now: Instant, error: DocumentError) {
        if self.is_refused(shared) {
            return;
        }
        self.reading = Reading::Code;
        self.fail(shared, PeerError::Document { phase: shared.phase, error }.into());
    }

    fn on_control_closed(&mut self, shared: &mut Shared<N>, _now: Instant) {
        if self.is_refused(shared) {
            return;
        }
        shared.fail(SessionError::ControlClosed(shared.phase), Parting::Nothing);
    }

    fn on_stream(
        &mut self,
        shared: &mut Shared<N>,
        now: Instant,
        id: StreamId,
        event: StreamEvent,
    ) {
        match (shared.phase, event) {
            (Phase::Streams, StreamEvent::Connected) => self.on_connected(shared, now, id),
            (Phase::Streams, StreamEvent::Refused) => self.on_refused(shared, now, id),
            (Phase::Streams | Phase::Starting, StreamEvent::Failed { code }) => {
                self.fail(shared, SessionError::Stream { id, code });
            }
            (Phase::Streams | Phase::Starting, StreamEvent::Closed) => {
                self.fail(shared, SessionError::Stream { id, code: 0 });
            }
            _ => {}
        }
    }

    fn poll_action(&mut self, shared: &Shared<N>) -> Option<Action> {
        self.poll_greeting(shared)
    }

    fn on_measured(&mut self, shared: &mut Shared<N>, now: Instant) {
        shared.phase = Phase::Ending;
        shared.send(ControlCode::TestEnd);
        shared.await_step(now);
    }

    fn on_timeout(&mut self, shared: &mut Shared<N>, now: Instant, timer: Timer) {
        if timer == Timer::Quiet {
            return shared.tell(Event::StillUnanswered);
        }
        if self.is_refused(shared) || self.on_greeting_timer(shared, now, timer) {
            return;
        }
        let error = match (timer, shared.phase) {
            (Timer::Step, Phase::Greeting) => SessionError::Unanswered,
            _ => SessionError::TimedOut(timer),
        };
        self.fail(shared, error);
    }

    fn extension(&self) -> Option<Offer> {
        self.accepted.get()
    }

    fn documents<'s>(
        &'s self,
        settings: &'s TestSettings,
        results: OwnResults<'s, N>,
    ) -> SessionDocuments<'s, N> {
        let parameters = OutgoingParameters {
            settings,
            text: &self.text,
            client_version: self.client_version,
            extension: self.offer.get(),
        };
        let results = OwnResults { concurrent_tests: None, ..results };
        SessionDocuments { parameters: Some(parameters), extension: None, refused: None, results }
    }
}

impl<const N: usize> Client<'_, N> {
    fn on_byte(&mut self, shared: &mut Shared<N>, now: Instant, byte: u8) {
        let phase = shared.phase;
        let Some(code) = ControlCode::from_byte(byte) else {
            return self.fail(shared, PeerError::UnknownCode { phase, byte }.into());
        };
        let is_unasked = code == ControlCode::ExtensionAccepted && self.offer.as_ref().is_none();
        let next = next_phase(End::Client, phase, code).filter(|_| !is_unasked);
        match (code, next) {
            (_, None) => self.fail(shared, PeerError::UnexpectedCode { phase, code }.into()),
            (ControlCode::ServerError, _) => self.reading = Reading::ServerError(Vec::new()),
            (ControlCode::AccessDenied, _) => self.on_turned_down(shared, now, Refusal::Busy),
            (ControlCode::ServerTerminate | ControlCode::IperfDone, _) => {
                self.fail(shared, SessionError::Terminated(End::Server));
            }
            (_, Some(next)) => {
                self.heard = true;
                shared.timers.disarm(Timer::Quiet);
                self.enter(shared, now, next);
            }
        }
    }

    fn enter(&mut self, shared: &mut Shared<N>, now: Instant, next: Phase) {
        match next {
            Phase::Preparing => {
                shared.outbox.push_document(DocumentKind::Parameters);
                shared.await_step(now);
                shared.tell(Event::Agreed);
            }
            Phase::Extension => {
                let frame = FrameReader::new(EXTENSION_LIMIT);
                self.reading = Reading::Extension(frame, ExtensionReader::new());
            }
            Phase::Streams => {
                shared.timers.disarm(Timer::Step);
                self.begin_streams(shared, now);
            }
            // The start of the test waits until this end, too, knows all streams to be connected.
            Phase::Starting => return self.on_start_told(shared, now),
            Phase::Running => {
                self.start_seen = true;
                self.on_start_told(shared, now);
                return self.start_if_ready(shared, now);
            }
            Phase::Results => {
                shared.outbox.push_document(DocumentKind::Results);
                shared.await_step(now);
                let frame = FrameReader::new(RESULTS_LIMIT);
                self.reading = Reading::Results(frame, results_reader(self.accepted.get()));
            }
            Phase::Done => {
                let goodbye = Parting::Code(ControlCode::IperfDone);
                return shared.finish(Ending::Complete, goodbye);
            }
            Phase::Greeting | Phase::Parameters | Phase::Ending | Phase::Over => {}
        }
        shared.phase = next;
    }

    pub(super) fn start_if_ready(&self, shared: &mut Shared<N>, now: Instant) {
        if self.start_seen && shared.phase == Phase::Starting {
            shared.start(now);
            shared.await_amount(shared.measured_from(), self.accepted.as_ref().is_some());
        }
    }

    fn on_server_error(&mut self, shared: &mut Shared<N>, now: Instant) {
        let Reading::ServerError(numbers) = &self.reading else { return };
        if let Ok(bytes) = <[u8; ServerError::LEN]>::try_from(numbers.as_slice()) {
            let refusal = Refusal::Error(ServerError::from_bytes(bytes));
            self.on_turned_down(shared, now, refusal);
        }
    }

    /// The server does not want the test. Its reason follows where that is agreed, or may follow
    /// where nothing could be agreed yet.
    fn on_turned_down(&mut self, shared: &mut Shared<N>, now: Instant, refusal: Refusal) {
        let is_agreed = self
            .accepted
            .get()
            .is_some_and(|accepted| accepted.features.contains(Features::EXPLAINED));
        let may_follow = self.offer.as_ref().is_some()
            && shared.phase == Phase::Greeting
            && refusal == Refusal::Busy;
        if is_agreed || may_follow {
            let frame = FrameReader::new(EXPLANATION_LIMIT);
            self.reading = Reading::Explanation(refusal, frame, ExplanationReader::new());
            shared.timers.arm(Timer::Step, now.plus_nanos(EXPLANATION_NS));
        } else {
            self.reading = Reading::Code;
            shared.fail(SessionError::Refused(refusal), Parting::Nothing);
        }
    }

    fn on_explanation(
        &mut self,
        shared: &mut Shared<N>,
        _now: Instant,
    ) -> Result<(), DocumentError> {
        let reading = core::mem::replace(&mut self.reading, Reading::Code);
        if let Reading::Explanation(refusal, _, document) = reading {
            self.explanation.set(|| document.finish());
            shared.fail(SessionError::Refused(refusal), Parting::Nothing);
        }
        Ok(())
    }

    /// Ends a session that was refused and waits for the reason, which does not come.
    fn is_refused(&mut self, shared: &mut Shared<N>) -> bool {
        let Reading::Explanation(refusal, ..) = self.reading else { return false };
        self.reading = Reading::Code;
        shared.fail(SessionError::Refused(refusal), Parting::Nothing);
        true
    }

    fn on_extension(&mut self, shared: &mut Shared<N>, _now: Instant) -> Result<(), DocumentError> {
        let reading = core::mem::replace(&mut self.reading, Reading::Code);
        if let Reading::Extension(_, document) = reading {
            let accepted = document.finish()?;
            self.accepted.set(|| accepted);
            shared.settings.counters_64bit |= accepted.features.contains(Features::WIDE_NUMBERS);
            shared.phase = Phase::Preparing;
        }
        Ok(())
    }

    fn on_results(&mut self, shared: &mut Shared<N>, now: Instant) -> Result<(), DocumentError> {
        let Reading::Results(_, document) = &mut self.reading else { return Ok(()) };
        let results = document.finish()?;
        self.reading = Reading::Code;
        match shared.accounts.apply_remote(&results) {
            Ok(()) => shared.await_step(now),
            Err(number) => self.fail(shared, PeerError::UnknownStream { number }.into()),
        }
        Ok(())
    }

    /// Gives up, with a goodbye if the server can be expected to read one.
    pub(super) fn fail(&self, shared: &mut Shared<N>, error: SessionError) {
        let goodbye = Parting::Code(ControlCode::IperfDone);
        shared.fail(error, if self.heard { goodbye } else { Parting::Nothing });
    }
}

/// How long a refused client waits for the reason: it comes with the refusal, and a stock server
/// closes at once.
const EXPLANATION_NS: u64 = NANOS_PER_SEC;
/// After so long without a word people begin to wonder.
const QUIET_NS: u64 = 5 * NANOS_PER_SEC;
