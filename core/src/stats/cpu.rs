//! CPU use of this end over a test, from two readings of the CPU times and of the clock.

use super::CpuTimes;
use crate::report::CpuUse;
use crate::time::Instant;

/// The first reading.
#[derive(Debug, Clone, Copy, Default)]
pub struct CpuMeter {
    began: Instant,
    at_begin: CpuTimes,
}

impl CpuMeter {
    /// Begins a measurement.
    pub const fn new(now: Instant, times: CpuTimes) -> Self {
        Self { began: now, at_begin: times }
    }

    /// The use since then: CPU time as a share of the time that passed.
    pub fn usage(&self, now: Instant, times: CpuTimes) -> CpuUse {
        let wall_ns = now.nanos_since(self.began).max(1);
        let share = |from_ns: u64, to_ns: u64| {
            let used_ns = u128::from(to_ns.saturating_sub(from_ns));
            u64::try_from(used_ns * MICROPERCENT / u128::from(wall_ns)).unwrap_or(u64::MAX)
        };
        let user = share(self.at_begin.user_ns, times.user_ns);
        let system = share(self.at_begin.system_ns, times.system_ns);
        CpuUse {
            total_micropercent: user.saturating_add(system),
            user_micropercent: user,
            system_micropercent: system,
        }
    }
}

/// All of one CPU.
const MICROPERCENT: u128 = 100_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn use_is_cpu_time_over_wall_time() {
        let began = CpuTimes { user_ns: 1000, system_ns: 2000 };
        let meter = CpuMeter::new(Instant::from_nanos(5000), began);
        let times = CpuTimes { user_ns: 1000 + 250, system_ns: 2000 + 500 };
        let usage = meter.usage(Instant::from_nanos(6000), times);
        assert_eq!(usage.user_micropercent, 25_000_000);
        assert_eq!(usage.system_micropercent, 50_000_000);
        assert_eq!(usage.total_micropercent, 75_000_000);
    }
}
