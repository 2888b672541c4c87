//! What tests cost when there is little to do, and how directions compare when there is much.

use super::super::numbers::Series;
use super::{Finding, Kit};

/// `-b 7776 -l 972`, which is a packet a second.
pub(super) fn a_packet_a_second(kit: &Kit) -> Result<Finding, String> {
    let (mut holds, mut figures) = (true, Vec::new());
    for (name, flags) in [("TCP", "-b 7776 -l 972"), ("UDP", "-u -b 7776 -l 972")] {
        let ran = kit.test(flags, SLOW_SECONDS)?;
        let percent = [ran.client, ran.server]
            .map(|usage| 100.0 * usage.cpu.as_secs_f64() / f64::from(SLOW_SECONDS));
        holds &= percent.iter().all(|percent| *percent < 2.0);
        figures.push(format!("{name}: client {:.2} %, server {:.2} %", percent[0], percent[1]));
    }
    Ok(Finding::of(holds, figures.join("; ")))
}

/// `-u -b 0`, and with `-R`.
pub(super) fn both_directions(kit: &Kit) -> Result<Finding, String> {
    let rates = in_turn(kit, ["-u -b 0 -l 1400", "-u -b 0 -l 1400 -R"], |ran| {
        ran.received.bits_per_second()
    })?;
    let [forward, reverse] = rates;
    let ratio = reverse / forward;
    let figures = format!("{:.2} and {:.2} Gbit/s, ×{ratio:.3}", forward / 1e9, reverse / 1e9);
    Ok(Finding::of((ratio - 1.0).abs() <= 0.05, figures))
}

/// Forward, `-R` and `--bidir` of TCP.
pub(super) fn both_at_once(kit: &Kit) -> Result<Finding, String> {
    let rates = in_turn(kit, ["-P 1", "-R", "--bidir"], |ran| {
        let back = Kit::rate(ran, "sum_received_bidir_reverse");
        Kit::rate(ran, "sum_received") + if back.is_nan() { 0.0 } else { back }
    })?;
    let [forward, reverse, both] = rates;
    let part = both / forward.max(reverse);
    let [forward, reverse, both] = rates.map(|rate| rate / 1e9);
    let figures = format!(
        "{forward:.1} and {reverse:.1} Gbit/s alone, {both:.1} together, {:.0} %",
        100.0 * part
    );
    Ok(Finding::of(part >= 0.8, figures))
}

/// The medians of tests that take turns.
fn in_turn<const N: usize>(
    kit: &Kit,
    flags: [&str; N],
    rate: impl Fn(&super::Ran) -> f64,
) -> Result<[f64; N], String> {
    let mut all = [(); N].map(|()| Series::default());
    for turn in 0..TURNS {
        for place in 0..N {
            let index = (turn + place) % N;
            all[index].add(rate(&kit.test(flags[index], FAST_SECONDS)?));
        }
    }
    Ok(all.map(|series| series.median()))
}

const TURNS: usize = 5;
const FAST_SECONDS: u32 = 2;
const SLOW_SECONDS: u32 = 10;
