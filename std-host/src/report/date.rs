//! The one date format of the reports: GMT as HTTP writes it (RFC 9110, IMF-fixdate), which iperf3
//! uses too.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The date of `time`, such as `Mon, 30 Nov 2026 21:30:11 GMT`. Times before 1970 show as 1970.
pub(super) fn http_date(time: SystemTime) -> String {
    let seconds = since_epoch(time).as_secs();
    let (days, second_of_day) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil_from_days(days);
    format!(
        "{}, {day:02} {} {year} {:02}:{:02}:{:02} GMT",
        WEEKDAYS[(days % 7) as usize],
        MONTHS[month],
        second_of_day / 3600,
        second_of_day / 60 % 60,
        second_of_day % 60,
    )
}

/// Time since the start of 1970; zero before.
pub(super) fn since_epoch(time: SystemTime) -> Duration {
    time.duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Year, month (from zero) and day (from one) of a day counted from 1 January 1970. Years start in
/// March here, so that the leap day is the last of its year and months have regular lengths.
fn civil_from_days(days: u64) -> (u64, usize, u64) {
    let days = days + DAYS_TO_1970;
    let era = days / DAYS_PER_ERA;
    let day_of_era = days % DAYS_PER_ERA;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12;
    let year = era * 400 + year_of_era + u64::from(month < 2);
    (year, month as usize, day)
}

/// Days from 1 March of year 0 to 1 January 1970.
const DAYS_TO_1970: u64 = 719_468;
/// Days of the 400 years after which the calendar repeats.
const DAYS_PER_ERA: u64 = 146_097;
/// 1 January 1970 was a Thursday.
const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_follow_the_calendar() {
        for (seconds, expected) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (951_868_799, "Tue, 29 Feb 2000 23:59:59 GMT"),
            (1_796_074_337, "Mon, 30 Nov 2026 21:32:17 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
        ] {
            assert_eq!(http_date(UNIX_EPOCH + Duration::from_secs(seconds)), expected);
        }
        assert_eq!(http_date(UNIX_EPOCH - Duration::from_secs(1)), http_date(UNIX_EPOCH));
    }
}
