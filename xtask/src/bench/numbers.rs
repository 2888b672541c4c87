//! The arithmetic of the bench: what many runs come to, and how regular departures were.

use serde_json::{Value, json};

/// One figure over all runs, sorted.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Series(Vec<f64>);

impl Series {
    pub(super) fn add(&mut self, figure: f64) {
        let place = self.0.partition_point(|other| *other <= figure);
        self.0.insert(place, figure);
    }

    /// The middle one; of an even count the mean of the two in the middle.
    pub(super) fn median(&self) -> f64 {
        let upper = self.0.len() / 2;
        match self.0.len() {
            0 => f64::NAN,
            odd if odd % 2 == 1 => self.0[upper],
            _ => (self.0[upper - 1] + self.0[upper]) / 2.0,
        }
    }

    pub(super) fn least(&self) -> f64 {
        self.0.first().copied().unwrap_or(f64::NAN)
    }

    pub(super) fn most(&self) -> f64 {
        self.0.last().copied().unwrap_or(f64::NAN)
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "median": self.median(),
            "min": self.least(),
            "max": self.most(),
            "runs_sorted": self.0,
        })
    }
}

/// Three digits that count.
pub(super) fn figure(number: f64) -> String {
    let decimals = match number.abs() {
        size if size >= 99.95 || size == 0.0 => 0,
        size if size >= 9.995 => 1,
        size if size >= 0.9995 => 2,
        _ => 3,
    };
    format!("{number:.decimals$}")
}

/// The times between departures, in nanoseconds; `departures` has the time and the datagrams of each.
/// Datagrams that left in one piece have nothing between them.
pub(super) fn gaps(departures: &[(u64, u64)]) -> Vec<f64> {
    let mut gaps = Vec::new();
    let mut before = None;
    for (at, datagrams) in departures {
        gaps.extend(before.map(|before| at.saturating_sub(before) as f64));
        gaps.extend((1..*datagrams).map(|_| 0.0));
        before = Some(*at);
    }
    gaps
}

/// The standard deviation.
pub(super) fn spread(figures: &[f64]) -> f64 {
    let count = figures.len() as f64;
    let mean = figures.iter().sum::<f64>() / count;
    (figures.iter().map(|figure| (figure - mean).powi(2)).sum::<f64>() / count).sqrt()
}

/// How many of a hundred are within `tolerance` of `ideal`.
pub(super) fn percent_within(figures: &[f64], ideal: f64, tolerance: f64) -> f64 {
    let within = figures.iter().filter(|figure| (*figure - ideal).abs() <= tolerance).count();
    100.0 * within as f64 / figures.len() as f64
}

/// How many datagrams left together: what is closer than `apart` nanoseconds belongs to one lump.
pub(super) fn lumps(departures: &[(u64, u64)], apart: u64) -> Vec<u64> {
    let mut lumps: Vec<u64> = Vec::new();
    let mut before = None;
    for (at, datagrams) in departures {
        let joins = before.is_some_and(|before| at.saturating_sub(before) < apart);
        match lumps.last_mut().filter(|_| joins) {
            Some(lump) => *lump += datagrams,
            None => lumps.push(*datagrams),
        }
        before = Some(*at);
    }
    lumps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_an_even_count_lies_between_the_two_in_the_middle() {
        let mut series = Series::default();
        assert!(series.median().is_nan());
        for figure in [9.0, 1.0, 3.0] {
            series.add(figure);
        }
        assert_eq!((series.median(), series.least(), series.most()), (3.0, 1.0, 9.0));
        series.add(5.0);
        assert_eq!(series.median(), 4.0);
    }

    #[test]
    fn figures_have_three_digits() {
        let shown = [123.4, 99.97, 12.34, 9.996, 1.234, 0.1234, 0.0].map(figure);
        assert_eq!(shown, ["123", "100", "12.3", "10.0", "1.23", "0.123", "0"]);
    }

    #[test]
    fn datagrams_of_one_piece_have_no_gap() {
        assert_eq!(gaps(&[(100, 1), (300, 3), (400, 1)]), [200.0, 0.0, 0.0, 100.0]);
        assert!(gaps(&[]).is_empty());
    }

    #[test]
    fn spread_is_the_standard_deviation() {
        // Mean 5, squares 9, 1, 1, 9: 20 / 4 = 5.
        assert_eq!(spread(&[2.0, 4.0, 6.0, 8.0]), 5.0f64.sqrt());
        assert_eq!(spread(&[7.0, 7.0]), 0.0);
    }

    #[test]
    fn what_is_within_a_tolerance_is_counted_on_both_sides() {
        assert_eq!(percent_within(&[8.0, 9.0, 11.0, 12.0], 10.0, 1.0), 50.0);
    }

    #[test]
    fn lumps_are_what_left_together() {
        assert_eq!(lumps(&[(0, 1), (10, 2), (500, 1), (509, 1), (600, 4)], 50), [3, 2, 4]);
    }
}
