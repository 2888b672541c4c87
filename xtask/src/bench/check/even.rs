//! How evenly datagrams leave, as a capture shows it.

use super::super::capture::streams;
use super::super::numbers::{gaps, lumps, percent_within, spread};
use super::super::run::Ran;
use super::{Finding, Kit, cable};

/// `-b 30M -l 1470`.
pub(super) fn one_stream(kit: &Kit) -> Result<Finding, String> {
    let (block, rate) = (1470, 30e6);
    let cable = match cable() {
        Ok(cable) => cable,
        Err(skipped) => return Ok(skipped),
    };
    let ran = kit.over(&cable, "-u -b 30M -l 1470", SECONDS, true)?;
    let stream = only_stream(&ran, block)?;
    let ideal = block as f64 * 8e9 / rate;
    let gaps = gaps(&stream);
    let within = percent_within(&gaps, ideal, MILLISECOND);
    // What is closer than a tenth of the gap left together.
    let lump = lumps(&stream, (ideal / 10.0) as u64).into_iter().max().unwrap_or(0);
    let most = (10.0 * MILLISECOND / ideal) as u64;
    let figures = format!(
        "{within:.2} % within 1 ms of {:.0} µs, spread {:.0} µs, largest lump {lump}",
        ideal / 1e3,
        spread(&gaps) / 1e3
    );
    Ok(Finding::of(within >= 99.0 && lump <= most, figures))
}

/// `-b 10M/10` and `-b 1M/100`.
pub(super) fn bursts(kit: &Kit) -> Result<Finding, String> {
    let cable = match cable() {
        Ok(cable) => cable,
        Err(skipped) => return Ok(skipped),
    };
    let (mut holds, mut figures) = (true, Vec::new());
    for (flag, rate, burst) in [("10M/10", 10e6, 10), ("1M/100", 1e6, 100)] {
        let ran = kit.over(&cable, &format!("-u -l 1400 -b {flag}"), SECONDS, true)?;
        let stream = only_stream(&ran, 1400)?;
        let burst_bits = f64::from(burst) * 1400.0 * 8.0;
        let mut sizes = lumps(&stream, (burst_bits * 1e9 / rate / 4.0) as u64);
        // The end of the test may have cut the last.
        sizes.pop();
        let right = sizes.iter().filter(|size| **size == u64::from(burst as u32)).count();
        let right = 100.0 * right as f64 / sizes.len() as f64;
        let beyond = beyond(&ran, rate, burst_bits);
        holds &= right >= 95.0 && beyond.abs() <= 1.0;
        figures.push(format!("{flag}: {right:.0} % of bursts whole, {beyond:+.2} bursts off"));
    }
    Ok(Finding::of(holds, figures.join("; ")))
}

/// `-b 10k -l 1340`.
pub(super) fn slow_and_large(kit: &Kit) -> Result<Finding, String> {
    let ran = kit.test("-u -b 10k -l 1340", SECONDS)?;
    let beyond = beyond(&ran, 10e3, 1340.0 * 8.0);
    let rate = Kit::rate(&ran, "sum_sent");
    Ok(Finding::of(beyond.abs() <= 1.0, format!("{rate:.0} bit/s, {beyond:+.2} datagrams off")))
}

/// `-b 1M -P 8 -i 0.1`.
pub(super) fn many_streams(kit: &Kit) -> Result<Finding, String> {
    let cable = match cable() {
        Ok(cable) => cable,
        Err(skipped) => return Ok(skipped),
    };
    let ran = kit.over(&cable, "-u -b 1M -P 8 -i 0.1 -l 1400", SECONDS, true)?;
    let ideal = 1400.0 * 8e9 / 1e6;
    let streams = streams(&ran.departures, 1400);
    let sizes: Vec<u64> =
        streams.iter().flat_map(|stream| lumps(stream, (ideal / 4.0) as u64)).collect();
    let alone = sizes.iter().filter(|size| **size == 1).count() as f64 / sizes.len() as f64;
    let most = sizes.iter().max().copied().unwrap_or(0);
    let figures = format!(
        "{} streams, {:.2} % of departures alone, at most {most} together",
        streams.len(),
        100.0 * alone
    );
    Ok(Finding::of(streams.len() == 8 && alone >= 0.99, figures))
}

fn only_stream(ran: &Ran, block: u64) -> Result<Vec<(u64, u64)>, String> {
    let stream = streams(&ran.departures, block).into_iter().next();
    stream.ok_or_else(|| "the capture saw no datagrams".to_owned())
}

/// How many units of so many bits left more than the rate had made due. The first leaves at the start.
fn beyond(ran: &Ran, rate: f64, unit: f64) -> f64 {
    let number = |key| ran.document["end"]["sum_sent"][key].as_f64().unwrap_or(f64::NAN);
    (number("bytes") * 8.0 - rate * number("seconds")) / unit
}

const SECONDS: u32 = 10;
const MILLISECOND: f64 = 1e6;
