//! The stack's clock and the engine's: the same moments, in microseconds and in nanoseconds.

use linerate_core::time::Instant;

/// The engine's name for a moment of the stack. Before the start of the clock is its start.
pub(super) fn engine_time(now: smoltcp::time::Instant) -> Instant {
    let micros = u64::try_from(now.total_micros()).unwrap_or(0);
    Instant::from_nanos(micros.saturating_mul(NANOS_PER_MICRO))
}

/// When to poll again, in the stack's time. It seldom changes, and small chips take long to divide.
#[derive(Debug, Default)]
pub(super) struct Next(Option<(Instant, smoltcp::time::Instant)>);

impl Next {
    pub(super) fn stack_time(&mut self, at: Instant) -> smoltcp::time::Instant {
        match self.0 {
            Some((last, time)) if last == at => time,
            _ => {
                let time = stack_time(at);
                self.0 = Some((at, time));
                time
            }
        }
    }
}

/// The first moment of the stack that is not before `at`: a poll then finds due what is due at `at`.
fn stack_time(at: Instant) -> smoltcp::time::Instant {
    let micros = at.as_nanos().div_ceil(NANOS_PER_MICRO);
    smoltcp::time::Instant::from_micros(i64::try_from(micros).unwrap_or(i64::MAX))
}

const NANOS_PER_MICRO: u64 = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_up_is_never_before_its_time() {
        for nanos in [0, 1, 999, 1000, 1001, u64::MAX] {
            let at = Instant::from_nanos(nanos);
            assert!(engine_time(stack_time(at)) >= at, "{nanos}");
        }
        assert_eq!(stack_time(Instant::from_nanos(1001)).total_micros(), 2);
        assert_eq!(engine_time(smoltcp::time::Instant::from_micros(-1)), Instant::ZERO);
    }
}
