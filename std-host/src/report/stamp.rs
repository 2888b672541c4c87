//! Time stamps before the lines of a report (`--timestamps`): local time in a strftime format, in the
//! words of the C locale, as iperf3 prints it. What is no specification of strftime is printed as it
//! stands, so that every format gives a stamp.

use jiff::Zoned;
use jiff::fmt::strtime::{BrokenDownTime, Config, PosixCustom};

/// How stamps look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamps {
    format: String,
}

impl Stamps {
    /// Stamps in a format such as `%H:%M:%S `; nothing is put between stamp and line.
    pub fn new(format: impl Into<String>) -> Self {
        Self { format: format.into() }
    }

    /// Puts this moment's stamp before each line of `text`.
    pub fn put(&self, text: &str) -> String {
        super::text::prefix_lines(text, &self.at(&Zoned::now()))
    }

    fn at(&self, time: &Zoned) -> String {
        let config = Config::new().custom(PosixCustom::new()).lenient(true);
        let stamp = BrokenDownTime::from(time).to_string_with_config(&config, &self.format);
        // A stamp of another form says more than none.
        stamp.unwrap_or_else(|_| self.format.clone())
    }
}

impl Default for Stamps {
    /// The format of iperf3: date and time, then a blank.
    fn default() -> Self {
        Self::new("%c ")
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;
    use jiff::tz::{TimeZone, offset};

    use super::*;

    #[test]
    fn formats_give_what_the_c_library_gives() {
        for (format, stamp) in [
            ("%c ", "Tue Dec  1 03:04:05 2026 "),
            ("%Y-%m-%dT%H:%M:%S%z ", "2026-12-01T03:04:05+0100 "),
            ("%F_%T|", "2026-12-01_03:04:05|"),
            (
                "%D %R %p %I %j %e %a %A %b %B ",
                "12/01/26 03:04 AM 03 335  1 Tue Tuesday Dec December ",
            ),
            ("%s ", "1796090645 "),
            ("%x %X %%", "12/01/26 03:04:05 %"),
            ("", ""),
            ("100% %! %", "100% %! %"),
        ] {
            assert_eq!(Stamps::new(format).at(&that_day()), stamp, "{format}");
        }
    }

    #[test]
    fn no_format_panics() {
        for first in ' '..='~' {
            for second in ' '..='~' {
                for format in [format!("%{first}{second}"), format!("%{first}999{second}%")] {
                    let _ = Stamps::new(format).put("line\n");
                }
            }
        }
        let long = "%c".repeat(10_000);
        assert!(Stamps::new(long).at(&that_day()).len() > 200_000);
    }

    #[test]
    fn every_line_has_its_stamp() {
        assert_eq!(Stamps::new("> ").put("one\n\ntwo\n"), "> one\n> \n> two\n");
        assert_eq!(Stamps::new("> ").put(""), "");
    }

    fn that_day() -> Zoned {
        let zone = TimeZone::fixed(offset(1));
        date(2026, 12, 1).at(3, 4, 5, 0).to_zoned(zone).expect("a day of this era")
    }
}
