//! All that a receiver of datagrams tells of its stream, and the same of what was injected, so that
//! one can stand above the other in a table.

use std::fmt;
use std::ops::Range;

use linerate_core::report::{
    Datagrams, Jitter3550, LossBursts, Percentiles, Reordering, StreamDetail,
};
use serde_json::Value;

use super::trace::{Delays, Trace, Truth};

/// All that is told of a stream.
#[derive(Debug, Clone, Copy, Default)]
pub struct Told {
    /// Counts.
    pub truth: Truth,
    /// Delays.
    pub delays: Delays,
}

/// The columns of a [`Told`].
pub const COLUMNS: &str = "packets  lost  rows longest twice overtaken extents farthest too late | \
                           iperf3  jitter    mean | PDV p50     p90     p99   p99.9     max |    \
                           IPDV     p90     p99   p99.9     max";

impl Told {
    /// What the network knows of a stretch of its arrivals, the first of a measurement.
    pub fn injected(trace: &Trace, stretch: Range<usize>) -> Self {
        let first = stretch.start;
        Self { truth: trace.truth_of(stretch.clone()), delays: trace.delays_of(stretch, first) }
    }

    /// What a receiver's engine tells.
    pub fn measured(datagrams: &Datagrams, detail: &StreamDetail) -> Self {
        Self {
            truth: Truth {
                packets: datagrams.packets,
                lost: datagrams.lost.unwrap_or_default(),
                out_of_order: datagrams.out_of_order.unwrap_or_default(),
                duplicates: datagrams.duplicates.unwrap_or_default(),
                too_late: datagrams.too_late.unwrap_or_default(),
                reordering: detail.reordering.unwrap_or_default(),
                loss_bursts: detail.loss_bursts.unwrap_or_default(),
            },
            delays: delays(detail, datagrams.jitter_ns),
        }
    }

    /// What linerate's document of a receiver tells; what is not there is zero.
    pub fn document(document: &Value) -> Self {
        let local = &document["linerate"]["streams"][0]["local"];
        let count = |of: &Value, key: &str| of[key].as_u64().unwrap_or(0);
        let percentiles = |of: &Value| Percentiles {
            count: count(of, "count"),
            p50_ns: count(of, "p50_ns"),
            p90_ns: count(of, "p90_ns"),
            p99_ns: count(of, "p99_ns"),
            p999_ns: count(of, "p999_ns"),
            max_ns: count(of, "max_ns"),
        };
        let [datagrams, reordering, bursts, jitter] =
            ["datagrams", "reordering", "loss_bursts", "jitter"].map(|key| &local[key]);
        Self {
            truth: Truth {
                packets: count(datagrams, "packets"),
                lost: count(datagrams, "lost"),
                out_of_order: count(datagrams, "out_of_order"),
                duplicates: count(datagrams, "duplicates"),
                too_late: count(datagrams, "too_late"),
                reordering: Reordering {
                    count: count(reordering, "count"),
                    extent_sum: count(reordering, "extent_sum"),
                    max_extent: count(reordering, "max_extent"),
                },
                loss_bursts: LossBursts {
                    count: count(bursts, "count"),
                    longest: count(bursts, "longest"),
                },
            },
            delays: Delays {
                variation: percentiles(&local["delay_variation"]),
                differences: percentiles(&local["delay_differences"]),
                smoothed_ns: count(jitter, "smoothed_ns") as f64,
                mean_ns: count(jitter, "mean_ns") as f64,
                iperf3_ns: iperf3_jitter_ns(document),
            },
        }
    }
}

/// What a receiver's engine tells of delays, with iperf3's jitter.
pub fn delays(detail: &StreamDetail, iperf3_ns: u64) -> Delays {
    let Jitter3550 { smoothed_ns, mean_ns } = detail.jitter.unwrap_or_default();
    Delays {
        variation: detail.delay_variation.unwrap_or_default(),
        differences: detail.delay_differences.unwrap_or_default(),
        smoothed_ns: smoothed_ns as f64,
        mean_ns: mean_ns as f64,
        iperf3_ns: iperf3_ns as f64,
    }
}

/// The jitter in the document of a receiver of either tool.
pub fn iperf3_jitter_ns(document: &Value) -> f64 {
    document["end"]["sum_received"]["jitter_ms"].as_f64().unwrap_or(0.0) * 1e6
}

impl Delays {
    /// Every number in it that is a time, nanoseconds, by its name.
    pub fn all_ns(&self) -> [(&'static str, f64); 13] {
        let [variation, differences] = [self.variation, self.differences]
            .map(|of| [of.p50_ns, of.p90_ns, of.p99_ns, of.p999_ns, of.max_ns].map(|ns| ns as f64));
        [
            ("jitter of iperf3", self.iperf3_ns),
            ("jitter", self.smoothed_ns),
            ("mean difference", self.mean_ns),
            ("PDV p50", variation[0]),
            ("PDV p90", variation[1]),
            ("PDV p99", variation[2]),
            ("PDV p99.9", variation[3]),
            ("PDV max", variation[4]),
            ("IPDV p50", differences[0]),
            ("IPDV p90", differences[1]),
            ("IPDV p99", differences[2]),
            ("IPDV p99.9", differences[3]),
            ("IPDV max", differences[4]),
        ]
    }
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Truth { packets, lost, out_of_order, duplicates, too_late, reordering, loss_bursts } =
            self.truth;
        write!(f, "{packets:7} {lost:5} {:5} {:7}", loss_bursts.count, loss_bursts.longest)?;
        write!(f, " {duplicates:5} {out_of_order:9} {:7}", reordering.extent_sum)?;
        write!(f, " {:8} {too_late:8}", reordering.max_extent)?;
        for (index, (_, ns)) in self.delays.all_ns().into_iter().enumerate() {
            let us = ns / 1000.0;
            match index {
                0 => write!(f, " | {us:6.1}")?,
                1 | 2 => write!(f, " {us:7.1}")?,
                3 | 8 => write!(f, " | {us:7.0}")?,
                _ => write!(f, " {us:7.0}")?,
            }
        }
        Ok(())
    }
}
