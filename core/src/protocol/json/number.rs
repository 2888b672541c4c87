//! Numbers as they are written, brought to integers without floats and without storing the digits.

/// A number read so far: mantissa times a power of ten. Digits beyond the nineteenth significant
/// one are dropped; no quantity of the protocol is known that exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Decimal {
    negative: bool,
    mantissa: u64,
    exponent: i32,
}

impl Decimal {
    /// The whole part, towards zero as in C, between `-i64::MAX` and `i64::MAX`.
    pub(super) fn truncated(self) -> i64 {
        self.times_power_of_ten(0, false)
    }

    /// The number in units of 10^-`digits`, to the nearest, between `-i64::MAX` and `i64::MAX`.
    pub(super) fn scaled(self, digits: u8) -> i64 {
        self.times_power_of_ten(digits, true)
    }

    /// Whether it is written as zero.
    pub(super) fn is_zero(self) -> bool {
        self.mantissa == 0
    }

    fn times_power_of_ten(self, digits: u8, round: bool) -> i64 {
        let power = self.exponent.saturating_add(i32::from(digits));
        let magnitude = if power >= 0 {
            multiplied(self.mantissa, power.unsigned_abs())
        } else {
            divided(self.mantissa, power.unsigned_abs(), round)
        };
        let magnitude = i64::try_from(magnitude).unwrap_or(i64::MAX);
        if self.negative { -magnitude } else { magnitude }
    }

    fn push_digit(&mut self, byte: u8, in_fraction: bool) {
        if self.mantissa < MANTISSA_LIMIT {
            self.mantissa = self.mantissa * 10 + u64::from(byte - b'0');
            self.exponent = self.exponent.saturating_sub(in_fraction.into());
        } else {
            self.exponent = self.exponent.saturating_add((!in_fraction).into());
        }
    }
}

fn multiplied(mantissa: u64, power: u32) -> u64 {
    if mantissa == 0 {
        return 0;
    }
    10_u64.checked_pow(power).map_or(u64::MAX, |factor| mantissa.saturating_mul(factor))
}

fn divided(mantissa: u64, power: u32, round: bool) -> u64 {
    // A divisor above 10^19 is more than twice any mantissa.
    let Some(divisor) = 10_u64.checked_pow(power) else { return 0 };
    let (whole, rest) = (mantissa / divisor, mantissa % divisor);
    whole + u64::from(round && rest >= divisor - rest)
}

/// One more digit than below this still fits the mantissa.
const MANTISSA_LIMIT: u64 = 1_000_000_000_000_000_000;

/// The grammar of a number, fed byte by byte.
#[derive(Debug, Clone, Copy)]
pub(super) struct NumberReader {
    decimal: Decimal,
    exponent: i32,
    exponent_negative: bool,
    place: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// After the minus.
    Minus,
    /// After a leading zero, which stands alone.
    Zero,
    Whole,
    Point,
    Fraction,
    /// After the `e`.
    Exponent,
    /// After the sign of the exponent.
    ExponentSign,
    ExponentDigits,
}

/// What a byte does to a number.
pub(super) enum Step {
    /// It belongs to it.
    More,
    /// It does not, and the number is complete.
    Complete(Decimal),
    /// It does not, and the number is broken.
    Broken,
}

impl NumberReader {
    /// A number that begins with `byte`, if one can.
    pub(super) fn begin(byte: u8) -> Option<Self> {
        let mut decimal = Decimal { negative: byte == b'-', mantissa: 0, exponent: 0 };
        let place = match byte {
            b'-' => Place::Minus,
            b'0' => Place::Zero,
            b'1'..=b'9' => {
                decimal.push_digit(byte, false);
                Place::Whole
            }
            _ => return None,
        };
        Some(Self { decimal, exponent: 0, exponent_negative: false, place })
    }

    pub(super) fn push(&mut self, byte: u8) -> Step {
        use Place as P;
        self.place = match (self.place, byte) {
            (P::Minus, b'0') => P::Zero,
            (P::Minus | P::Whole, b'0'..=b'9') => {
                self.decimal.push_digit(byte, false);
                P::Whole
            }
            (P::Zero | P::Whole, b'.') => P::Point,
            (P::Point | P::Fraction, b'0'..=b'9') => {
                self.decimal.push_digit(byte, true);
                P::Fraction
            }
            (P::Zero | P::Whole | P::Fraction, b'e' | b'E') => P::Exponent,
            (P::Exponent, b'+' | b'-') => {
                self.exponent_negative = byte == b'-';
                P::ExponentSign
            }
            (P::Exponent | P::ExponentSign | P::ExponentDigits, b'0'..=b'9') => {
                let digit = i32::from(byte - b'0');
                self.exponent = self.exponent.saturating_mul(10).saturating_add(digit);
                P::ExponentDigits
            }
            _ => return self.end().map_or(Step::Broken, Step::Complete),
        };
        Step::More
    }

    /// The number, if it can end here.
    pub(super) fn end(&self) -> Option<Decimal> {
        match self.place {
            Place::Zero | Place::Whole | Place::Fraction | Place::ExponentDigits => {}
            _ => return None,
        }
        let exponent = if self.exponent_negative { -self.exponent } else { self.exponent };
        let exponent = self.decimal.exponent.saturating_add(exponent);
        Some(Decimal { exponent, ..self.decimal })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Decimal> {
        let mut reader = NumberReader::begin(text.as_bytes()[0])?;
        for &byte in &text.as_bytes()[1..] {
            if !matches!(reader.push(byte), Step::More) {
                return None;
            }
        }
        reader.end()
    }

    #[test]
    fn every_spelling_of_a_c_printer_becomes_an_integer() {
        let cases = [
            ("12", 12),
            ("12.0", 12),
            ("12.9", 12),
            ("-12.9", -12),
            ("-0", 0),
            ("1.5e4", 15_000),
            ("1e+04", 10_000),
            ("1e-05", 0),
            ("9223372036854775807", i64::MAX),
            ("18446744073709551615", i64::MAX),
            ("1.8446744073709552e+19", i64::MAX),
            ("-1e999999999999", -i64::MAX),
            ("1e-999999999999", 0),
            ("0e999999999999", 0),
            ("10000000000000000000000e-20", 100),
            ("0.000000000000000000000000012e27", 12),
        ];
        for (text, value) in cases {
            assert_eq!(read(text).map(Decimal::truncated), Some(value), "{text}");
        }
    }

    #[test]
    fn scaling_rounds_to_the_nearest_unit() {
        let cases = [
            ("1.000559", 1_000_559_000),
            ("0.00015451200114206584", 154_512),
            ("1e-05", 10_000),
            ("1.5e-09", 2),
            ("4.9e-10", 0),
            ("5e-10", 1),
            ("-5e-10", -1),
            ("0.29999999999999999", 300_000_000),
            ("58873076.093619", 58_873_076_093_619_000),
            ("1e300", i64::MAX),
        ];
        for (text, nanos) in cases {
            assert_eq!(read(text).map(|d| d.scaled(9)), Some(nanos), "{text}");
        }
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in ["-", "01", "1.", "1.e5", "1e", "1e+", "--1", "-nan", "-inf", "1x", "+1", ".5"]
        {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
