//! The numbers that every summary and every interval of a document has.

use serde_json::Value;

/// One summary; what a document leaves out is zero, or no number where there is no zero.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sum {
    pub(super) bytes: u64,
    pub(super) seconds: f64,
    pub(super) rate: f64,
    pub(super) packets: u64,
    pub(super) lost: u64,
}

impl From<&Value> for Sum {
    fn from(value: &Value) -> Self {
        let whole = |key: &str| value[key].as_u64().unwrap_or(0);
        let real = |key: &str| value[key].as_f64().unwrap_or(f64::NAN);
        Self {
            bytes: whole("bytes"),
            seconds: real("seconds"),
            rate: real("bits_per_second"),
            packets: whole("packets"),
            lost: whole("lost_packets"),
        }
    }
}

impl Sum {
    /// Within a thousandth; without any time there is no rate.
    pub(super) fn rate_is_right(&self) -> bool {
        if self.seconds <= 0.0 {
            return self.rate == 0.0;
        }
        let expected = self.bytes as f64 * 8.0 / self.seconds;
        (self.rate - expected).abs() <= expected * 0.001
    }
}
