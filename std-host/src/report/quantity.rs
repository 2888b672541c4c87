//! How numbers look in the text report: amounts and rates with three significant digits and a unit
//! word, percentages of loss with two. The shapes are iperf3's (`units.c`), because scripts cut
//! these columns apart.

use std::str::FromStr;

/// The unit of rates that `-f` asks for. Lower case letters mean bits in steps of 1000, upper case
/// letters mean bytes in steps of 1024.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnitFormat {
    bytes: bool,
    /// Steps above the plain unit, 1 (kilo) to 4 (tera).
    power: usize,
}

/// The letter after `-f` names no unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownFormat;

impl std::fmt::Display for UnknownFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("bad format specifier (valid formats are in the set [kmgtKMGT])")
    }
}

impl std::error::Error for UnknownFormat {}

impl FromStr for UnitFormat {
    type Err = UnknownFormat;

    /// Only the first letter counts, as in iperf3.
    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        let letter = text.chars().next().ok_or(UnknownFormat)?;
        let power = "kmgt".find(letter.to_ascii_lowercase()).ok_or(UnknownFormat)? + 1;
        Ok(Self { bytes: letter.is_ascii_uppercase(), power })
    }
}

/// An amount of data with its unit word, in the singular: `1.12 MByte`.
pub(super) fn amount(bytes: u64) -> String {
    adaptive(bytes as f64, 1024.0, &BYTE_WORDS)
}

/// A rate in `format`, or in bits of the fitting size: `25.9 Gbit`.
pub fn rate(bits_per_second: f64, format: Option<UnitFormat>) -> String {
    match format {
        None => adaptive(bits_per_second, 1000.0, &BIT_WORDS),
        Some(UnitFormat { bytes: false, power }) => {
            number(bits_per_second / 1000f64.powi(power as i32), BIT_WORDS[power])
        }
        Some(UnitFormat { bytes: true, power }) => {
            number(bits_per_second / 8.0 / 1024f64.powi(power as i32), BYTE_WORDS[power])
        }
    }
}

/// A percentage with two significant digits, as C's `%.2g` writes it; but all of it is `100`, where
/// iperf3 prints `1e+02`.
pub(super) fn percent(value: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    if value >= 99.5 {
        return format!("{value:.0}");
    }
    // Rust writes `1.2e-5`: mantissa and exponent are right, the notation is chosen here.
    let scientific = format!("{value:.1e}");
    let exponent: i32 =
        scientific.split_once('e').and_then(|(_, power)| power.parse().ok()).unwrap_or(0);
    if exponent < -4 {
        let mantissa = scientific.split('e').next().unwrap_or_default();
        return format!("{}e-{:02}", without_trailing_zeros(mantissa), -exponent);
    }
    let decimals = usize::try_from(1 - exponent).unwrap_or(0);
    without_trailing_zeros(&format!("{value:.decimals$}")).into()
}

/// Bits per second of `bytes` over `nanos`; zero when no time passed.
pub(super) fn bits_per_second(bytes: u64, nanos: u64) -> f64 {
    if nanos == 0 { 0.0 } else { bytes as f64 * 8.0 / seconds(nanos) }
}

/// Nanoseconds as seconds.
pub(super) fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

/// `part` of `whole` in percent; zero of nothing is zero.
pub(super) fn percentage(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

/// A part of a file in whole percent; of an empty one, as in iperf3, everything was moved.
pub(super) fn file_percentage(part: u64, whole: u64) -> u64 {
    if whole == 0 { 100 } else { percentage(part, whole) as u64 }
}

fn adaptive(value: f64, step: f64, words: &[&str; 5]) -> String {
    let mut value = value;
    let mut power = 0;
    while value >= step && power + 1 < words.len() {
        value /= step;
        power += 1;
    }
    number(value, words[power])
}

/// Three significant digits, or all digits before the point.
fn number(value: f64, word: &str) -> String {
    // The limits make what rounds to the next power of ten take that power's width.
    if value < 9.995 {
        format!("{value:>4.2} {word}")
    } else if value < 99.95 {
        format!("{value:>4.1} {word}")
    } else {
        format!("{value:>4.0} {word}")
    }
}

fn without_trailing_zeros(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}

const BYTE_WORDS: [&str; 5] = ["Byte", "KByte", "MByte", "GByte", "TByte"];
const BIT_WORDS: [&str; 5] = ["bit", "Kbit", "Mbit", "Gbit", "Tbit"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_step_by_1024_and_keep_three_digits() {
        for (bytes, expected) in [
            (0, "0.00 Byte"),
            (1, "1.00 Byte"),
            (999, " 999 Byte"),
            (1023, "1023 Byte"),
            (1024, "1.00 KByte"),
            (9000, "8.79 KByte"),
            (61_440, "60.0 KByte"),
            (133_120, " 130 KByte"),
            (1_047_552, "1023 KByte"),
            (1 << 20, "1.00 MByte"),
            (25_034_752, "23.9 MByte"),
            (1 << 31, "2.00 GByte"),
            (1 << 32, "4.00 GByte"),
            (6_335_076_761, "5.90 GByte"),
            ((1 << 63) - 1, "8388608 TByte"),
            (u64::MAX, "16777216 TByte"),
        ] {
            assert_eq!(amount(bytes), expected, "{bytes}");
        }
    }

    #[test]
    fn rates_adapt_or_keep_the_unit_asked_for() {
        for (bits, format, expected) in [
            (0.0, "", "0.00 bit"),
            (999.4, "", " 999 bit"),
            (1000.0, "", "1.00 Kbit"),
            (9_994_000.0, "", "9.99 Mbit"),
            (9_996_000.0, "", "10.0 Mbit"),
            (25.9e9, "", "25.9 Gbit"),
            (5e15, "", "5000 Tbit"),
            (100_563_000.0, "k", "100563 Kbit"),
            (100_563_000.0, "m", " 101 Mbit"),
            (100_563_000.0, "g", "0.10 Gbit"),
            (100_563_000.0, "t", "0.00 Tbit"),
            (100_563_000.0, "K", "12276 KByte"),
            (100_563_000.0, "M", "12.0 MByte"),
            (100_563_000.0, "G", "0.01 GByte"),
            (100_563_000.0, "T", "0.00 TByte"),
        ] {
            assert_eq!(rate(bits, format.parse().ok()), expected, "{bits} {format}");
        }
    }

    #[test]
    fn only_the_first_letter_of_a_format_counts() {
        assert_eq!("megabits".parse::<UnitFormat>(), "m".parse());
        assert_eq!("x".parse::<UnitFormat>(), Err(UnknownFormat));
        assert_eq!("".parse::<UnitFormat>(), Err(UnknownFormat));
    }

    #[test]
    fn percentages_have_two_significant_digits() {
        for (value, expected) in [
            (0.0, "0"),
            (100.0, "100"),
            (99.9, "100"),
            (99.4, "99"),
            (33.3, "33"),
            (30.0, "30"),
            (9.96, "10"),
            (9.94, "9.9"),
            (5.0, "5"),
            (0.5, "0.5"),
            (0.0123, "0.012"),
            (0.000_123, "0.00012"),
            (0.000_012_3, "1.2e-05"),
        ] {
            assert_eq!(percent(value), expected, "{value}");
        }
    }
}
