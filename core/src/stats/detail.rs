//! What a flow knows beyond its tally. It is large, so it is copied a few times a second at most, and
//! only where somebody asks for more than iperf3's numbers.

use super::host::HostAccount;
use super::{DelayMeter, Histogram};
use crate::report::{LossBursts, Reordering, StreamDetail};

/// One stream at one moment; everything since the omitted start.
#[derive(Debug, Clone)]
pub struct FlowDetail<const B: usize> {
    pub(crate) host: HostAccount<B>,
    pub(crate) flow: Seen<B>,
    /// The omitted start was over.
    pub(crate) is_measured: bool,
}

/// What the flow itself has seen.
#[derive(Debug, Clone)]
pub(crate) enum Seen<const B: usize> {
    /// Bytes.
    Bytes,
    /// Datagrams on their way out.
    Sent { gaps: Histogram<B>, refusals: u64 },
    /// Datagrams that came.
    Received { delay: DelayMeter<B>, reordering: Reordering, loss_bursts: LossBursts },
}

impl<const B: usize> FlowDetail<B> {
    /// The whole stretch.
    pub fn whole(&self) -> StreamDetail {
        let mut detail = StreamDetail::default();
        self.host.tell(&mut detail);
        match &self.flow {
            Seen::Bytes => {}
            Seen::Sent { gaps, refusals } => {
                detail.gaps = gaps.percentiles(0);
                detail.refusals = Some(*refusals);
            }
            Seen::Received { delay, reordering, loss_bursts } => {
                detail.jitter = delay.jitter();
                detail.delay_variation = delay.variation();
                detail.delay_differences = delay.differences();
                detail.reordering = Some(*reordering);
                detail.loss_bursts = Some(*loss_bursts);
            }
        }
        detail
    }

    /// The measured part; nothing where the omitted start did not end.
    pub fn measured(&self) -> StreamDetail {
        if self.is_measured { self.whole() } else { StreamDetail::default() }
    }

    /// The stretch since this was `earlier`. Rows of losses are known of the whole only, since a row may
    /// still be repaired when its interval ends.
    pub fn since(&self, earlier: &Self) -> StreamDetail {
        if self.is_measured != earlier.is_measured {
            return self.whole();
        }
        let mut detail = StreamDetail::default();
        self.host.since(&earlier.host).tell(&mut detail);
        match (&self.flow, &earlier.flow) {
            (
                Seen::Sent { gaps, refusals },
                Seen::Sent { gaps: gaps_before, refusals: refusals_before },
            ) => {
                detail.gaps = gaps.since(gaps_before).percentiles(0);
                detail.refusals = Some(refusals.saturating_sub(*refusals_before));
            }
            (
                Seen::Received { delay, reordering, .. },
                Seen::Received { delay: delay_before, reordering: before, .. },
            ) => {
                detail.jitter = delay.jitter();
                (detail.delay_variation, detail.delay_differences) = delay.since(delay_before);
                let late = reordering.count.saturating_sub(before.count);
                detail.reordering = Some(Reordering {
                    count: late,
                    extent_sum: reordering.extent_sum.saturating_sub(before.extent_sum),
                    max_extent: if late > 0 { reordering.max_extent } else { 0 },
                });
            }
            _ => {}
        }
        detail
    }
}

/// Cuts what a flow tells into intervals.
#[derive(Debug, Clone, Default)]
pub struct DetailMeter<const B: usize> {
    last: Option<FlowDetail<B>>,
}

impl<const B: usize> DetailMeter<B> {
    /// Ends an interval.
    pub fn cut(&mut self, now: FlowDetail<B>) -> StreamDetail {
        let interval = match &self.last {
            Some(last) => now.since(last),
            None => now.whole(),
        };
        self.last = Some(now);
        interval
    }
}
