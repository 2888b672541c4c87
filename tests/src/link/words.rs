//! A model of a link as a person types it: `--latency 20ms --loss 1%`.

use super::model::{Burst, Holes, LinkModel, Pattern, Reorder};

/// Applies one option with its value.
///
/// # Errors
///
/// When there is no such option, or its value is not of its kind.
pub fn set(model: &mut LinkModel, option: &str, value: &str) -> Result<(), String> {
    let wrong = |kind| format!("{option} takes {kind}, not {value:?}");
    let time = |text| nanoseconds(text).ok_or_else(|| wrong("a time such as 20ms"));
    let chance = |text| millionths(text).ok_or_else(|| wrong("a part such as 1%"));
    let amount = |text| thousands(text).ok_or_else(|| wrong("a number such as 20M"));
    let pair = || value.split_once(',').ok_or_else(|| wrong("two values with a comma"));
    match option {
        "--latency" => model.latency_ns = time(value)?,
        "--jitter" => model.jitter_ns = time(value)?,
        "--loss" => model.loss_ppm = chance(value)?,
        "--burst" => {
            let (begin, end) = pair()?;
            model.burst = Some(Burst { begin_ppm: chance(begin)?, end_ppm: chance(end)? });
        }
        "--holes" => {
            let (every, length) = pair()?;
            model.holes = Some(Holes { every: amount(every)?, length: amount(length)? });
        }
        "--spikes" => {
            let (part, by) = pair()?;
            model.pattern = Some(Pattern::Spikes { ppm: chance(part)?, by_ns: time(by)? });
        }
        "--wave" => {
            let (period, deepest) = pair()?;
            let (period_ns, deepest_ns) = (time(period)?, time(deepest)?);
            if period_ns < 2 {
                return Err(wrong("a period"));
            }
            model.pattern = Some(Pattern::Queue { period_ns, deepest_ns });
        }
        "--lumps" => match time(value)? {
            0 => return Err(wrong("a time above zero")),
            every_ns => model.pattern = Some(Pattern::Lumps { every_ns }),
        },
        "--duplicate" => model.duplicate_ppm = chance(value)?,
        "--reorder" => {
            let (part, by) = pair()?;
            model.reorder = Some(Reorder { ppm: chance(part)?, by_ns: time(by)? });
        }
        "--rate" => model.rate = Some(amount(value)?).filter(|rate| *rate > 0),
        "--queue" => model.queue_bytes = Some(amount(value)?),
        _ => return Err(format!("no option {option}")),
    }
    Ok(())
}

/// What [`set`] takes, for a help text.
pub const OPTIONS: &str = "\
--latency TIME         every packet takes so long (20ms, 300us, 1s)
--jitter TIME          and up to so much longer, in order
--loss PART            so many are lost (1%)
--burst BEGIN,END      loss in bursts: the chances of a packet to begin and to end one
--holes NUMBER,NUMBER  after so many packets, so many are lost
--spikes PART,TIME     so many are held up so long, and those behind them
--wave TIME,TIME       a queue that fills and drains: its period, and what it delays when full
--lumps TIME           everything at once, each time so long after the last
--duplicate PART       so many arrive twice
--reorder PART,TIME    so many are held back so long
--rate BITS            bits a second (20M)
--queue BYTES          most that waits for the rate (60K); without it, everything waits";

fn nanoseconds(text: &str) -> Option<u64> {
    let units = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
    let (unit, factor) = units.into_iter().find(|(unit, _)| {
        text.strip_suffix(unit).is_some_and(|number| number.ends_with(|c: char| c.is_ascii_digit()))
    })?;
    Some((positive(text.strip_suffix(unit)?)? * factor).round() as u64)
}

fn millionths(text: &str) -> Option<u32> {
    let percent = positive(text.strip_suffix('%')?)?;
    (percent <= 100.0).then(|| (percent * 1e4).round() as u32)
}

fn thousands(text: &str) -> Option<u64> {
    let units = [("K", 1e3), ("M", 1e6), ("G", 1e9)];
    let found = units.into_iter().find_map(|(unit, by)| Some((text.strip_suffix(unit)?, by)));
    let (number, factor) = found.unwrap_or((text, 1.0));
    Some((positive(number)? * factor).round() as u64)
}

fn positive(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_sets_its_part_of_the_model() {
        let mut model = LinkModel::default();
        for (option, value) in [
            ("--latency", "20ms"),
            ("--jitter", "1.5us"),
            ("--loss", "1%"),
            ("--burst", "0.1%,25%"),
            ("--holes", "100,3"),
            ("--spikes", "1%,5ms"),
            ("--lumps", "300ms"),
            ("--wave", "1s,20ms"),
            ("--duplicate", "100%"),
            ("--reorder", "2%,1s"),
            ("--rate", "20M"),
            ("--queue", "60K"),
        ] {
            set(&mut model, option, value).expect("it is right");
            assert!(OPTIONS.contains(option), "{option} is in the help");
        }
        let expected = LinkModel {
            latency_ns: 20_000_000,
            jitter_ns: 1500,
            loss_ppm: 10_000,
            burst: Some(Burst { begin_ppm: 1000, end_ppm: 250_000 }),
            holes: Some(Holes { every: 100, length: 3 }),
            pattern: Some(Pattern::Queue { period_ns: 1_000_000_000, deepest_ns: 20_000_000 }),
            duplicate_ppm: 1_000_000,
            reorder: Some(Reorder { ppm: 20_000, by_ns: 1_000_000_000 }),
            rate: Some(20_000_000),
            queue_bytes: Some(60_000),
            clock_offset_ns: 0,
        };
        assert_eq!(model, expected);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (option, value) in [
            ("--latency", "20"),
            ("--latency", "ms"),
            ("--loss", "1"),
            ("--loss", "101%"),
            ("--burst", "1%"),
            ("--wave", "0s,1ms"),
            ("--rate", "-1"),
            ("--queue", "much"),
            ("--delay", "1ms"),
        ] {
            assert!(set(&mut LinkModel::default(), option, value).is_err(), "{option} {value}");
        }
    }
}
