//! Jitter as iperf3 computes it, so that old and new records compare: the smoothed difference of
//! successive transit times (RFC 1889 A.8, gain 1/16), in whole microseconds, reordered datagrams
//! included. Fixed point: the state is kept sixteenfold.

/// Smoothed jitter of one stream.
#[derive(Debug, Clone, Copy)]
pub struct Jitter {
    sixteenfold_ns: u64,
    /// Or [`NONE`].
    previous_transit_us: i64,
}

impl Default for Jitter {
    fn default() -> Self {
        Self { sixteenfold_ns: 0, previous_transit_us: NONE }
    }
}

impl Jitter {
    /// Notes a datagram by its two stamps, each on its own end's clock, whole microseconds.
    pub fn record(&mut self, sent_us: u64, arrived_us: u64) {
        let transit_us = arrived_us.wrapping_sub(sent_us) as i64;
        let previous_us = core::mem::replace(&mut self.previous_transit_us, transit_us);
        if previous_us != NONE {
            let difference_ns = transit_us.abs_diff(previous_us).min(LARGEST_US) * 1000;
            self.sixteenfold_ns += difference_ns;
            self.sixteenfold_ns -= self.sixteenfold_ns.saturating_sub(difference_ns) / 16;
        }
    }

    /// Notes `count` more datagrams that took as long as the one before them.
    pub fn record_equal(&mut self, count: u64) {
        for _ in 0..count {
            if self.sixteenfold_ns < 16 {
                return;
            }
            self.sixteenfold_ns -= self.sixteenfold_ns / 16;
        }
    }

    /// The value now, nanoseconds.
    pub const fn nanos(&self) -> u64 {
        self.sixteenfold_ns / 16
    }
}

/// No datagram takes as long.
const NONE: i64 = i64::MAX;
/// Larger differences are a peer's nonsense; a day keeps the fixed point far from overflow.
const LARGEST_US: u64 = 86_400_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// iperf3's own arithmetic: seconds in floating point.
    fn reference_ns(stamps: &[(u64, u64)]) -> f64 {
        let mut jitter = 0.0;
        let mut previous = None;
        for &(sent, arrived) in stamps {
            let transit = arrived as f64 - sent as f64;
            let difference = f64::abs(transit - previous.replace(transit).unwrap_or(transit));
            jitter += (difference - jitter) / 16.0;
        }
        jitter * 1000.0
    }

    #[test]
    fn equals_iperf3s_within_a_microsecond() {
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut jitter = Jitter::default();
        let mut stamps = [(0, 0); 500];
        for (index, stamp) in stamps.iter_mut().enumerate() {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let sent = index as u64 * 1000;
            *stamp = (sent, 5_000_000 + sent + state % 700);
            jitter.record(stamp.0, stamp.1);
        }
        let expected = reference_ns(&stamps);
        assert!((jitter.nanos() as f64 - expected).abs() < 1000.0, "{} {expected}", jitter.nanos());
    }

    #[test]
    fn a_constant_transit_has_no_jitter_whatever_the_clocks() {
        let mut jitter = Jitter::default();
        for sent in (0..100_000).step_by(1000) {
            jitter.record(9_000_000_000 + sent, 3 + sent);
        }
        assert_eq!(jitter.nanos(), 0);
    }

    #[test]
    fn nonsense_stamps_do_not_overflow() {
        let mut jitter = Jitter::default();
        for index in 0..1000u64 {
            jitter.record(if index % 2 == 0 { 0 } else { u64::MAX / 2 }, 0);
        }
        assert!(jitter.nanos() <= LARGEST_US * 1000);
    }
}
