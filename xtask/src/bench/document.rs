//! What a test's documents say of it. Loss and rate are the receiving end's own words: the server's
//! document for a forward test, the client's for a reverse one.

use serde_json::Value;

/// What arrived.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Received {
    pub(super) bytes: f64,
    pub(super) seconds: f64,
    /// For datagrams.
    pub(super) lost_percent: Option<f64>,
}

impl Received {
    /// Reads the receiver's document. iperf3 before 3.17 or so has no `sum_received` for UDP in some
    /// builds; there the one `sum` is the receiver's, and what was lost is not in its bytes.
    pub(super) fn read(document: &Value) -> Result<Self, String> {
        let end = &document["end"];
        let number = |sum: &str, key: &str| end[sum][key].as_f64();
        let sum = if end["sum_received"].is_object() { "sum_received" } else { "sum" };
        let Some((mut bytes, seconds)) = number(sum, "bytes").zip(number(sum, "seconds")) else {
            return Err(match document["error"].as_str() {
                Some(error) => error.to_owned(),
                None => "its document has no end".to_owned(),
            });
        };
        if sum == "sum" && end[sum]["sender"] == Value::Bool(true) {
            let lost = number(sum, "lost_packets").zip(number(sum, "packets"));
            bytes *= lost.map_or(1.0, |(lost, all)| 1.0 - lost / all.max(1.0));
        }
        Ok(Self { bytes, seconds, lost_percent: number(sum, "lost_percent") })
    }

    pub(super) fn bits_per_second(&self) -> f64 {
        self.bytes * 8.0 / self.seconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_receivers_sum_is_taken_where_there_is_one() {
        let document = json!({ "end": {
            "sum": { "bytes": 1000, "seconds": 1.0, "lost_percent": 50.0, "sender": true },
            "sum_received": { "bytes": 500, "seconds": 2.0, "lost_percent": 50.0 },
        }});
        let received = Received::read(&document).expect("it is whole");
        assert_eq!(received.bits_per_second(), 2000.0);
        assert_eq!(received.lost_percent, Some(50.0));
    }

    #[test]
    fn what_was_lost_is_taken_off_a_senders_sum() {
        let document = json!({ "end": { "sum":
            { "bytes": 1000, "seconds": 1, "packets": 10, "lost_packets": 4, "sender": true } }});
        assert_eq!(Received::read(&document).map(|r| r.bytes), Ok(600.0));
    }

    #[test]
    fn a_failed_test_says_why() {
        let document = json!({ "error": "no route", "end": {} });
        assert_eq!(Received::read(&document), Err("no route".to_owned()));
    }
}
