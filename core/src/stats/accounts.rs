//! The accounts of a whole test: samples of all streams go in, intervals, an omitted start and
//! summaries come out. Direction is data here: nothing asks whether this end is client or server.

use heapless::{String, Vec};

use super::verdict::{Ends, Test};
use super::{CpuMeter, CpuTimes, Sample, StreamAccount, StreamState};
use crate::protocol::results::{ReceivedResults, ResultsStream};
use crate::report::{CpuUse, Span, StreamDetail, StreamInterval, StreamSummary, Verdict};
use crate::test::{End, Role, StreamId, TestSettings};
use crate::time::Instant;

/// The books of a test with at most `N` streams, both directions together.
#[derive(Debug, Clone)]
pub struct Accounts<const N: usize> {
    streams: Vec<StreamAccount, N>,
    /// Start of the omitted start, or of the measured part.
    phase_began: Instant,
    interval: Span,
    omits: bool,
    omitting: bool,
    restarts: bool,
    interval_omitted: bool,
    duration_ns: u64,
    cpu_meter: CpuMeter,
    cpu: CpuUse,
    remote: Option<Remote>,
    /// The other end knows details of a stream with this number, which does not exist.
    unknown_stream: Option<u32>,
}

/// What the other end's results say about it as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remote {
    /// Its CPU use.
    pub cpu: CpuUse,
    /// Its congestion control.
    pub congestion: Option<String<16>>,
    /// It counts retransmits.
    pub has_retransmits: bool,
    /// A server's: other tests that ran on it beside this one, where it says so.
    pub concurrent_tests: Option<u32>,
    /// Its jitter is that of batches of datagrams, as far as it says.
    pub jitter_of_batches: bool,
}

impl<const N: usize> Accounts<N> {
    pub(crate) const fn new() -> Self {
        Self {
            streams: Vec::new(),
            phase_began: Instant::ZERO,
            interval: Span { start_ns: 0, end_ns: 0 },
            omits: false,
            omitting: false,
            restarts: false,
            interval_omitted: false,
            duration_ns: 0,
            cpu_meter: CpuMeter::new(Instant::ZERO, CpuTimes { user_ns: 0, system_ns: 0 }),
            cpu: CpuUse { total_micropercent: 0, user_micropercent: 0, system_micropercent: 0 },
            remote: None,
            unknown_stream: None,
        }
    }

    /// The streams in order of creation.
    pub fn streams(&self) -> &[StreamAccount] {
        &self.streams
    }

    /// One stream's part of the last interval.
    pub fn interval(&self, index: usize) -> Option<StreamInterval> {
        Some(self.streams.get(index)?.interval(self.interval, self.interval_omitted))
    }

    /// One stream's totals so far, the omitted start left out.
    pub fn summary(&self, index: usize) -> Option<StreamSummary> {
        Some(self.streams.get(index)?.summary(self.duration_ns))
    }

    /// What this end knows of a stream beyond its totals, once the test is measured.
    ///
    /// # Panics
    /// If there is no such stream.
    pub fn detail(&self, index: usize) -> StreamDetail {
        self.streams[index].detail()
    }

    /// What the other end knows of it, once its results are here and if they say it.
    ///
    /// # Panics
    /// If there is no such stream.
    pub fn remote_detail(&self, index: usize) -> Option<StreamDetail> {
        self.remote.as_ref().and_then(|_| self.streams[index].remote_detail())
    }

    /// What limited a direction, from what is known of it so far.
    pub(crate) fn verdict(
        &self,
        settings: &TestSettings,
        role: Role,
        local_congestion: Option<&str>,
    ) -> Option<Verdict> {
        let remote = self.remote.as_ref();
        let congestion = match role {
            Role::Sender => local_congestion,
            Role::Receiver => remote.and_then(|remote| remote.congestion.as_deref()),
        };
        let remote_cpu = remote.map(|remote| remote.cpu);
        let streams = self.streams.iter().enumerate().map(|(index, stream)| Ends {
            summary: stream.summary(self.duration_ns),
            local: self.detail(index),
            remote: self.remote_detail(index),
        });
        Verdict::of(&Test { settings, role, congestion, remote_cpu }, streams)
    }

    /// Length of the measured part so far, up to the last sample, nanoseconds.
    pub const fn duration_ns(&self) -> u64 {
        self.duration_ns
    }

    /// CPU use of this end, complete once the test is measured.
    pub const fn cpu(&self) -> CpuUse {
        self.cpu
    }

    /// What the other end said about itself, once its results are here.
    pub const fn remote(&self) -> Option<&Remote> {
        self.remote.as_ref()
    }

    /// Opens the books: the clock runs from `now`.
    ///
    /// # Errors
    /// Gives back the settings' number of streams if there is no room for them.
    pub(crate) fn start(
        &mut self,
        now: Instant,
        end: End,
        settings: &TestSettings,
    ) -> Result<(), usize> {
        let count = settings.stream_count();
        for index in 0..count {
            let account =
                StreamAccount::new(StreamId::from_index(index), settings.role(end, index));
            self.streams.push(account).map_err(|_| count)?;
        }
        self.phase_began = now;
        self.omits = settings.omit_secs > 0;
        self.omitting = self.omits;
        Ok(())
    }

    pub(crate) fn begin_cpu(&mut self, now: Instant, cpu: CpuTimes) {
        self.cpu_meter = CpuMeter::new(now, cpu);
    }

    /// Ends an interval at `now`.
    pub(crate) fn cut(&mut self, now: Instant, samples: &[Sample]) -> Span {
        let start_ns = if self.restarts { 0 } else { self.interval.end_ns };
        self.restarts = false;
        self.interval = Span { start_ns, end_ns: now.nanos_since(self.phase_began) };
        self.interval_omitted = self.omitting;
        for (stream, sample) in self.streams.iter_mut().zip(samples) {
            stream.cut(*sample, self.omitting);
        }
        if !self.omitting {
            self.duration_ns = self.interval.end_ns;
        }
        self.interval
    }

    /// The omitted start is not over yet.
    pub(crate) const fn is_omitting(&self) -> bool {
        self.omitting
    }

    /// What the last interval moved on all streams together, bytes.
    pub(crate) fn interval_bytes(&self) -> u64 {
        let span = self.interval;
        self.streams.iter().map(|stream| stream.interval(span, false).bytes).sum()
    }

    /// Ends the omitted start at the last sample, taken at `now`: counting begins anew.
    pub(crate) fn end_omit(&mut self, now: Instant) {
        self.omitting = false;
        self.restarts = true;
        self.phase_began = now;
        for stream in &mut self.streams {
            stream.restart_extremes();
        }
    }

    pub(crate) fn finish_cpu(&mut self, now: Instant, cpu: CpuTimes) {
        self.cpu = self.cpu_meter.usage(now, cpu);
    }

    pub(crate) fn set_detail(&mut self, index: usize, detail: StreamDetail) {
        if let Some(stream) = self.streams.get_mut(index) {
            stream.set_detail(&detail);
        }
    }

    pub(crate) fn set_state(&mut self, id: StreamId, state: StreamState) {
        if let Some(stream) = self.streams.get_mut(id.index()) {
            stream.state = state;
        }
    }

    /// Bytes received since the omitted start, according to `samples`.
    pub(crate) fn received_bytes(&self, samples: &[Sample]) -> u64 {
        let streams = self.streams.iter().zip(samples);
        let receivers = streams.filter(|(stream, _)| stream.role() == Role::Receiver);
        receivers.map(|(stream, sample)| stream.measured_bytes(&sample.tally)).sum()
    }

    /// This end's line for a stream in its results document.
    pub(crate) fn results(&self, index: usize) -> ResultsStream {
        self.streams[index].results(self.duration_ns)
    }

    /// Takes what the other end knows of a stream beyond its totals, ahead of its results.
    pub(crate) fn handle_remote_detail(&mut self, number: u32, detail: StreamDetail) {
        match self.stream_of_number(number) {
            Some(stream) => stream.apply_remote_detail(&detail),
            None => self.unknown_stream = Some(number),
        }
    }

    /// Takes the other end's results.
    ///
    /// # Errors
    /// Gives back the number of a stream that does not exist.
    pub(crate) fn apply_remote(&mut self, results: &ReceivedResults<N>) -> Result<(), u32> {
        let omits = self.omits;
        for peer in &results.streams {
            let stream = self.stream_of_number(peer.number).ok_or(peer.number)?;
            stream.apply_remote(peer, omits);
        }
        if let Some(number) = self.unknown_stream {
            return Err(number);
        }
        self.remote = Some(Remote {
            cpu: results.cpu,
            congestion: results.congestion.clone(),
            has_retransmits: results.sender_has_retransmits == Some(true),
            concurrent_tests: results.concurrent_tests,
            jitter_of_batches: results.jitter_of_batches,
        });
        Ok(())
    }

    fn stream_of_number(&mut self, number: u32) -> Option<&mut StreamAccount> {
        self.streams.get_mut(StreamId::from_number(number)?.index())
    }
}
