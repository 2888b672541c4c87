//! What the system says of a stream's socket and thread, between the first look at it and the last.

use super::Histogram;
use crate::on_host::OnHost;
use crate::report::{SenderWaits, StreamDetail, ThreadUse};
use crate::time::Instant;

/// One look. Counters run since any fixed moment before; a field that the system cannot tell is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct HostView {
    /// Datagrams that the receiving socket had no room for.
    pub socket_drops: Option<u64>,
    /// Usable bytes of the buffer that the stream's direction has.
    pub buffer_bytes: Option<u64>,
    /// CPU time of the thread, nanoseconds.
    pub thread_cpu_ns: Option<u64>,
    /// Time for which it could have run and had no CPU, nanoseconds.
    pub thread_queued_ns: Option<u64>,
    /// TCP sender: the connection.
    pub tcp: Option<TcpView>,
}

/// A TCP connection at one moment, as its sender's kernel sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct TcpView {
    /// Smoothed round trip, microseconds.
    pub rtt_us: Option<u32>,
    /// What it waited for.
    pub waits: Option<SenderWaits>,
    /// Bytes sent again.
    pub resent_bytes: Option<u64>,
    /// Delivery rate, bytes a second.
    pub delivery_bytes_per_sec: Option<u64>,
    /// Window that the receiver offers, bytes.
    pub window_bytes: Option<u64>,
}

/// All looks of a stream together.
#[derive(Debug, Clone, Default)]
pub(crate) struct HostAccount<const B: usize> {
    first: OnHost<(Instant, HostView)>,
    last: OnHost<(Instant, HostView)>,
    idle_round_trip_us: Option<u32>,
    round_trips: Histogram<B>,
}

impl<const B: usize> HostAccount<B> {
    /// Takes a look; the first is taken before there is data.
    pub(crate) fn record(&mut self, now: Instant, view: HostView) {
        let rtt_us = view.tcp.and_then(|tcp| tcp.rtt_us).filter(|&rtt_us| rtt_us > 0);
        match self.first.as_ref() {
            None => {
                self.first.set(|| (now, view));
                self.idle_round_trip_us = rtt_us;
            }
            Some(_) => {
                let rtt_ns = rtt_us.map(|rtt_us| u64::from(rtt_us) * 1000);
                rtt_ns.into_iter().for_each(|ns| self.round_trips.record(ns));
            }
        }
        self.last.set(|| (now, view));
    }

    /// Counts anew from the last look on.
    pub(crate) fn restart(&mut self) {
        self.first = self.last;
        self.round_trips = Histogram::new();
    }

    /// Fills in what is known of the stretch.
    pub(crate) fn tell(&self, detail: &mut StreamDetail) {
        let (Some((began, first)), Some((ended, last))) = (self.first.get(), self.last.get())
        else {
            return;
        };
        detail.socket_drops = grown(last.socket_drops, first.socket_drops);
        detail.buffer_bytes = last.buffer_bytes;
        detail.idle_round_trip_us = self.idle_round_trip_us;
        detail.round_trips = self.round_trips.percentiles(0);
        detail.thread = grown(last.thread_cpu_ns, first.thread_cpu_ns).map(|cpu_ns| ThreadUse {
            wall_ns: ended.nanos_since(began),
            cpu_ns,
            queued_ns: grown(last.thread_queued_ns, first.thread_queued_ns),
        });
        let (Some(last), first) = (last.tcp, first.tcp.unwrap_or_default()) else { return };
        detail.waits = last.waits.map(|waits| {
            let before = first.waits.unwrap_or_default();
            SenderWaits {
                busy_us: waits.busy_us.saturating_sub(before.busy_us),
                receive_window_us: waits.receive_window_us.saturating_sub(before.receive_window_us),
                send_buffer_us: waits.send_buffer_us.saturating_sub(before.send_buffer_us),
            }
        });
        detail.resent_bytes = grown(last.resent_bytes, first.resent_bytes);
        detail.delivery_bytes_per_sec = last.delivery_bytes_per_sec;
        detail.window_bytes = last.window_bytes;
    }

    /// The stretch from the last look of `earlier` to that of this.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        Self {
            first: if earlier.last.as_ref().is_some() { earlier.last } else { self.first },
            last: self.last,
            idle_round_trip_us: self.idle_round_trip_us,
            round_trips: self.round_trips.since(&earlier.round_trips),
        }
    }
}

/// How much a counter grew; what was not known at first began at zero.
fn grown(last: Option<u64>, first: Option<u64>) -> Option<u64> {
    Some(last?.saturating_sub(first.unwrap_or(0)))
}
