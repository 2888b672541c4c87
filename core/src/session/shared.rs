//! What both ends have in common: outputs, timers, and the test itself from the start of its clock
//! to its final sample. Client and server differ in the control exchange around it.

use heapless::{Deque, String};

use super::Denial;
use super::amount::Awaited;
use super::outbox::{DocumentKind, Outbox};
use super::timers::TimerTable;
use super::watch::Watch;
use super::{Action, Deadlines, Ending, Event, Phase, SessionError, StreamEvent, Timer};
use crate::flow::StreamPlan;
use crate::on_host::OnHost;
use crate::protocol::code::{ControlCode, ServerError, error_number};
use crate::protocol::extension::Offer;
use crate::protocol::frame::{FrameProgress, FrameReader};
use crate::protocol::json::DocumentError;
use crate::protocol::results::{OutputKind, ResultsDocument, ResultsReader};
use crate::stats::{Accounts, CpuTimes, Sample, StreamAccount, StreamState};
use crate::test::{End, Role, StreamId, TestSettings, WAITING_GAP_NANOS};
use crate::time::{Instant, NANOS_PER_SEC};

/// The part of a session that both ends have. Public only in name: the module is private.
#[derive(Debug)]
pub struct Shared<const N: usize> {
    pub(super) end: End,
    pub(super) phase: Phase,
    pub(super) settings: TestSettings,
    pub(super) accounts: Accounts<N>,
    pub(super) timers: TimerTable,
    pub(super) outbox: Outbox,
    pub(super) deadlines: Deadlines,
    pub(super) congestion: Option<String<16>>,
    actions: Deque<Action, 10>,
    events: Deque<Event, 8>,
    samples_wanted: Deque<Purpose, { Purpose::COUNT }>,
    interval_ns: Option<u64>,
    pub(super) began: Option<Instant>,
    next_interval: Instant,
    pub(super) stopping: Option<Conclusion>,
    /// What a test that exchanges its results fails with all the same.
    incomplete: Option<SessionError>,
    /// What the receivers of a test by an amount are waiting for.
    pub(super) awaited: Option<Awaited>,
    /// Server: what the test moves against what is allowed.
    pub(super) watch: Watch,
    /// Server: other tests that have run beside this one.
    pub(super) concurrent_tests: u32,
    /// Datagrams that came together share their time of arrival.
    pub(super) jitter_of_batches: bool,
    /// Server: the client reads a text after a refusal.
    pub(super) explains: OnHost<()>,
    /// Server: the refusal whose text is to be sent.
    pub(super) refused: OnHost<SessionError>,
}

/// Why a sample was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Begin,
    Interval,
    OmitEnd,
    ReceiveCheck,
    Silence,
    Rate,
    Amount,
    Final,
}

impl Purpose {
    /// Each is wanted once at a time.
    const COUNT: usize = 8;
}

/// What follows once the test is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Conclusion {
    /// The exchange of results.
    Results,
    /// The end of the session.
    Failure { error: SessionError, parting: Parting },
}

/// The last word to the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Parting {
    Nothing,
    Code(ControlCode),
    Error(ServerError),
}

impl<const N: usize> Shared<N> {
    /// A session at its beginning, with what is to be sent first and what is waited for. The callers
    /// give it no name: a debug build copies for every name, and a host's session is large.
    pub(super) fn new(
        end: End,
        settings: TestSettings,
        interval_ns: Option<u64>,
        deadlines: Deadlines,
        outbox: Outbox,
        timers: TimerTable,
    ) -> Self {
        Self {
            end,
            phase: match end {
                End::Client => Phase::Greeting,
                End::Server => Phase::Parameters,
            },
            settings,
            accounts: Accounts::new(),
            timers,
            outbox,
            deadlines,
            congestion: None,
            actions: Deque::new(),
            events: Deque::new(),
            samples_wanted: Deque::new(),
            interval_ns: interval_ns.filter(|&ns| ns > 0),
            began: None,
            next_interval: Instant::ZERO,
            stopping: None,
            incomplete: None,
            awaited: None,
            watch: Watch::default(),
            concurrent_tests: 0,
            jitter_of_batches: false,
            explains: OnHost::NONE,
            refused: OnHost::NONE,
        }
    }

    pub(super) fn act(&mut self, action: Action) {
        self.actions.push_back(action).expect("outputs are drained after every input");
    }

    pub(super) fn tell(&mut self, event: Event) {
        self.events.push_back(event).expect("outputs are drained after every input");
    }

    pub(super) fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    pub(super) fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// The law of inputs and outputs, see the module documentation.
    pub(super) fn assert_drained(&self) {
        debug_assert!(
            self.actions.is_empty() && self.events.is_empty(),
            "drain actions and events before the next input"
        );
    }

    pub(super) fn send(&mut self, code: ControlCode) {
        self.outbox.push(&[code.byte()]);
    }

    pub(super) fn await_step(&mut self, now: Instant) {
        self.timers.arm(Timer::Step, now.plus_nanos(self.deadlines.step_ns));
    }

    /// All streams are there: the clock runs from `now`.
    pub(super) fn start(&mut self, now: Instant) {
        self.phase = Phase::Running;
        self.timers.disarm_all();
        self.accounts
            .start(now, self.end, &self.settings)
            .expect("room for the streams is checked when they are agreed");
        self.began = Some(now);
        self.want_sample(Purpose::Begin);
        self.act(Action::StartStreams);
        self.tell(Event::Started);
        if self.settings.omit_secs > 0 {
            self.timers.arm(Timer::Omit, self.omit_until(now));
        }
        self.next_interval = now;
        self.arm_interval(now);
        self.arm_ends(self.omit_until(now));
        self.begin_watch(now);
    }

    /// What a stream is to do; known once the clock runs.
    pub(super) fn plan(&self, id: StreamId) -> Option<StreamPlan> {
        let began = self.began?;
        let index = id.index();
        let settings = &self.settings;
        (index < settings.stream_count()).then(|| StreamPlan {
            id,
            role: settings.role(self.end, index),
            protocol: settings.protocol,
            block_bytes: settings.block_bytes,
            bitrate: settings.bitrate,
            burst: settings.burst,
            joins_arrivals: settings.joins_arrivals(),
            may_wait: settings.gap_is_below(WAITING_GAP_NANOS),
            limit_bytes: self.limit_of(index),
            share_bytes: self.share_of(index),
            counters_64bit: settings.counters_64bit,
            omit_until: (settings.omit_secs > 0).then(|| self.omit_until(began)),
        })
    }

    /// Reads on in the other end's results. What they say of a stream beyond its totals goes into its account
    /// at once: there is no room to keep it twice.
    pub(super) fn read_results(
        &mut self,
        frame: &mut FrameReader,
        reader: &mut ResultsReader<N>,
        bytes: &[u8],
        output: &mut dyn FnMut(OutputKind, &[u8]),
    ) -> Result<FrameProgress, DocumentError> {
        let accounts = &mut self.accounts;
        let details = &mut |number, detail| accounts.handle_remote_detail(number, detail);
        frame.read(bytes, &mut ResultsDocument { reader, output, details })
    }

    pub(super) fn on_samples(
        &mut self,
        now: Instant,
        samples: &[Sample],
        cpu: CpuTimes,
    ) -> Option<Conclusion> {
        match self.samples_wanted.pop_front()? {
            Purpose::Begin => self.accounts.begin_cpu(now, cpu),
            Purpose::OmitEnd => self.on_omit_end(now, samples),
            Purpose::Final => return self.on_final(now, samples, cpu),
            // The final sample, which follows, ends the interval and answers the question.
            _ if self.stopping.is_some() => {}
            Purpose::Interval => self.on_interval(now, samples),
            Purpose::ReceiveCheck => self.on_receive_check(now, samples),
            purpose @ (Purpose::Silence | Purpose::Rate | Purpose::Amount) => {
                self.on_watch(now, purpose, samples);
            }
        }
        None
    }

    /// The timers of a running test; `true` if this was one of them.
    pub(super) fn on_test_timer(&mut self, now: Instant, timer: Timer) -> bool {
        match timer {
            Timer::Omit => {
                // The interval that ends with it begins anew after it.
                self.timers.disarm(Timer::Interval);
                self.want_sample(Purpose::OmitEnd);
            }
            Timer::Interval => {
                self.want_sample(Purpose::Interval);
                self.arm_interval(now);
            }
            Timer::ReceiveCheck => self.want_sample(Purpose::ReceiveCheck),
            Timer::Silence => self.want_sample(Purpose::Silence),
            Timer::Rate => self.want_sample(Purpose::Rate),
            Timer::Amount => self.want_sample(Purpose::Amount),
            Timer::TestEnd => self.stop(Conclusion::Results),
            _ => return false,
        }
        true
    }

    /// A data stream reached its limit or broke while the test ran. The client ends the test when all
    /// senders have sent what they should, or when no stream is left; a server that has no stream
    /// left waits for the client's word, but not for ever.
    pub(super) fn on_running_stream(&mut self, now: Instant, id: StreamId, event: StreamEvent) {
        let state = match event {
            StreamEvent::LimitReached => StreamState::LimitReached,
            StreamEvent::Closed | StreamEvent::Failed { .. } | StreamEvent::FileFailed { .. } => {
                StreamState::Closed
            }
            StreamEvent::ShareReached if self.stopping.is_none() => return self.on_share(),
            StreamEvent::ShareReached | StreamEvent::Connected | StreamEvent::Refused => return,
        };
        self.accounts.set_state(id, state);
        if self.stopping.is_some() {
            return;
        }
        if self.end == End::Server && event == StreamEvent::LimitReached {
            self.on_share();
        }
        match (self.end, event) {
            (End::Server, StreamEvent::Failed { code }) => {
                // The client's connection is open; it cannot know that nobody serves it.
                let told = ServerError { number: error_number::CREATE_STREAM, errno: code };
                return self.fail(SessionError::Stream { id, code }, Parting::Error(told));
            }
            (End::Server, StreamEvent::FileFailed { code }) => {
                let told = ServerError { number: error_number::FILE, errno: code };
                return self.fail(SessionError::File { id, code }, Parting::Error(told));
            }
            (End::Client, StreamEvent::FileFailed { code }) => {
                self.incomplete = Some(SessionError::File { id, code });
                return self.stop(Conclusion::Results);
            }
            _ => {}
        }
        let streams = || self.accounts.streams().iter();
        let senders = || streams().filter(|s| s.role() == Role::Sender);
        let all_sent = senders().all(|s| s.state() != StreamState::Flowing)
            && senders().any(StreamAccount::has_all);
        let all_here = self.is_all_here();
        let none_left = streams().all(|s| s.state() != StreamState::Flowing);
        match self.end {
            End::Client if all_sent || all_here => self.stop(Conclusion::Results),
            End::Client if none_left => {
                self.incomplete = Some(SessionError::StreamsLost);
                self.stop(Conclusion::Results);
            }
            End::Server if none_left && self.awaited.is_some() => self.stop(Conclusion::Results),
            // A sender that has no more data is content to wait for the client's word.
            End::Server if none_left && !senders().any(StreamAccount::has_all) => {
                self.await_step(now)
            }
            _ => {}
        }
    }

    /// Ends the running test: streams stop, the final sample follows, then what `conclusion` says.
    /// The first reason to stop stands.
    pub(super) fn stop(&mut self, conclusion: Conclusion) {
        if let Some(Conclusion::Failure { .. }) = self.stopping {
            return;
        }
        let is_stopping = self.stopping.replace(conclusion).is_some();
        if is_stopping {
            return;
        }
        self.timers.disarm_all();
        self.act(Action::StopStreams);
        self.want_sample(Purpose::Final);
    }

    /// Something makes the session impossible. A running test is measured first.
    pub(super) fn fail(&mut self, error: SessionError, parting: Parting) {
        match self.phase {
            Phase::Over => {}
            Phase::Running => self.stop(Conclusion::Failure { error, parting }),
            _ => self.finish(Ending::Failed(error), parting),
        }
    }

    /// Nothing limits a test.
    #[cfg(not(feature = "host"))]
    pub(super) fn deny(&mut self, _: Denial) {}

    /// The test is not allowed, or not any more.
    #[cfg(feature = "host")]
    pub(super) fn deny(&mut self, denial: Denial) {
        let parting = match denial.told() {
            ServerError { number: error_number::BUSY, .. } => {
                Parting::Code(ControlCode::AccessDenied)
            }
            told => Parting::Error(told),
        };
        self.fail(SessionError::NotAllowed(denial), parting);
    }

    /// The last step of every session.
    pub(super) fn finish(&mut self, ending: Ending, parting: Parting) {
        match parting {
            Parting::Nothing => {}
            Parting::Code(code) => self.send(code),
            Parting::Error(error) => {
                self.send(ControlCode::ServerError);
                self.outbox.push(&error.to_bytes());
            }
        }
        let is_refusal =
            matches!(parting, Parting::Error(_) | Parting::Code(ControlCode::AccessDenied));
        let is_explained = self.explains.as_ref().is_some() && is_refusal;
        if let (true, Ending::Failed(error)) = (is_explained, ending) {
            self.refused.set(|| error);
            self.outbox.push_document(DocumentKind::Explanation);
        }
        self.phase = Phase::Over;
        self.timers.disarm_all();
        self.samples_wanted.clear();
        self.act(Action::CloseStreams);
        self.act(Action::CloseControl);
        let ending = match (ending, self.incomplete) {
            (Ending::Complete, Some(error)) => Ending::Failed(error),
            _ => ending,
        };
        self.tell(Event::Finished(ending));
    }

    pub(super) fn want_sample(&mut self, purpose: Purpose) {
        let is_queued = self.samples_wanted.iter().any(|&queued| queued == purpose);
        if !is_queued {
            self.samples_wanted.push_back(purpose).expect("room for each purpose once");
            self.act(Action::Sample);
        }
    }

    fn on_interval(&mut self, now: Instant, samples: &[Sample]) {
        let omitted = self.accounts.is_omitting();
        let span = self.accounts.cut(now, samples);
        self.tell(Event::Interval { span, omitted });
    }

    /// The measured part begins when it was planned to, however late the sample comes: the flows
    /// know what they had counted then.
    fn on_omit_end(&mut self, now: Instant, samples: &[Sample]) {
        let Some(began) = self.began else { return };
        let ended = self.omit_until(began);
        let span = self.accounts.cut(ended, samples);
        if self.is_worth_reporting(span.nanos()) {
            self.tell(Event::Interval { span, omitted: true });
        }
        self.accounts.end_omit(ended);
        self.tell(Event::OmitEnded);
        self.next_interval = ended;
        self.arm_interval(now);
    }

    fn on_final(&mut self, now: Instant, samples: &[Sample], cpu: CpuTimes) -> Option<Conclusion> {
        // A short measured part can be over before anybody came to end the omitted start. Its last
        // interval is not told: readers see one interval at a time.
        if self.accounts.is_omitting() && now >= self.measured_from() {
            self.accounts.cut(self.measured_from(), samples);
            self.accounts.end_omit(self.measured_from());
            self.tell(Event::OmitEnded);
        }
        let omitted = self.accounts.is_omitting();
        let span = self.accounts.cut(now, samples);
        self.accounts.finish_cpu(now, cpu);
        if self.accounts.interval_bytes() > 0 || self.is_worth_reporting(span.nanos()) {
            self.tell(Event::Interval { span, omitted });
        }
        self.tell(Event::Measured);
        self.stopping.take()
    }

    /// iperf3 since 3.2 leaves out a last interval that is empty and shorter than a tenth.
    fn is_worth_reporting(&self, span_ns: u64) -> bool {
        match self.interval_ns {
            Some(interval_ns) => span_ns.saturating_mul(10) >= interval_ns,
            None => span_ns > 0 && !self.accounts.is_omitting(),
        }
    }

    /// Intervals end on a grid from the start of their phase, so that they do not drift. Those that
    /// the caller slept through become one.
    fn arm_interval(&mut self, now: Instant) {
        let Some(interval_ns) = self.interval_ns.filter(|_| self.stopping.is_none()) else {
            return;
        };
        let missed = now.nanos_since(self.next_interval) / interval_ns;
        let step_ns = interval_ns.saturating_mul(missed.saturating_add(1));
        self.next_interval = self.next_interval.plus_nanos(step_ns);
        if self.next_interval > now {
            self.timers.arm(Timer::Interval, self.next_interval);
        }
    }

    fn arm_ends(&mut self, measured_from: Instant) {
        let seconds = self.settings.limits.seconds.map(|secs| u64::from(secs) * NANOS_PER_SEC);
        match self.end {
            End::Client => {
                if let Some(nanos) = seconds {
                    self.timers.arm(Timer::TestEnd, measured_from.plus_nanos(nanos));
                }
            }
            End::Server => {
                if let Some(nanos) = seconds {
                    let longest = nanos.saturating_add(self.deadlines.grace_ns);
                    self.timers.arm(Timer::TestLimit, measured_from.plus_nanos(longest));
                }
            }
        }
    }

    /// The start of the measured part, once the clock runs.
    pub(super) fn measured_from(&self) -> Instant {
        self.omit_until(self.began.unwrap_or(Instant::ZERO))
    }

    fn omit_until(&self, began: Instant) -> Instant {
        began.plus_nanos(u64::from(self.settings.omit_secs) * NANOS_PER_SEC)
    }
}

/// A reader of the results of an end with which this is agreed.
pub(super) const fn results_reader<const N: usize>(accepted: Option<Offer>) -> ResultsReader<N> {
    if accepted.is_some() { ResultsReader::of_linerate() } else { ResultsReader::new() }
}
