//! What a sender with a rate does after a path was gone for a while.

use std::sync::Arc;
use std::time::Duration;

use super::super::network::Network;
use super::super::run::Ran;
use super::{Finding, Kit, cable};

/// `-b 5M` over 30 s, with the plug out from the fifth second to the tenth.
pub(super) fn after_an_outage(kit: &Kit) -> Result<Finding, String> {
    let cable = match cable() {
        Ok(cable) => cable,
        Err(skipped) => return Ok(skipped),
    };
    let (mut holds, mut figures) = (true, Vec::new());
    for (name, flags) in [("TCP", "-b 5M"), ("UDP", "-u -b 5M")] {
        let ran = with_an_outage(kit, &cable, flags).map_err(|why| format!("{name}: {why}"))?;
        let rates = rates(&ran);
        let after = |from: usize| rates.iter().skip(from).copied().fold(0.0, f64::max) / 1e6;
        let (at_most, later) = (after(BACK), after(BACK + SETTLED));
        holds &= rates.len() >= LENGTH as usize && later <= 1.1 * RATE_MBITS;
        figures.push(format!("{name}: {at_most:.2} Mbit/s at most, {later:.2} after 3 s"));
    }
    Ok(Finding::of(holds, figures.join("; ")))
}

fn with_an_outage(kit: &Kit, network: &Arc<Network>, flags: &str) -> Result<Ran, String> {
    let Network::Veth(cable) = &**network else { return Err("there is no plug".into()) };
    std::thread::scope(|scope| {
        let pulling = scope.spawn(|| {
            std::thread::sleep(Duration::from_secs(GONE as u64));
            cable.plug(false)?;
            std::thread::sleep(Duration::from_secs((BACK - GONE) as u64));
            cable.plug(true)
        });
        let ran = kit.over(network, flags, LENGTH, false);
        pulling.join().map_err(|_| "the plug is stuck")??;
        ran
    })
}

/// Of each second, as the sender counted.
fn rates(ran: &Ran) -> Vec<f64> {
    let intervals = ran.document["intervals"].as_array().map_or(&[][..], Vec::as_slice);
    intervals.iter().filter_map(|one| one["sum"]["bits_per_second"].as_f64()).collect()
}

const LENGTH: u32 = 30;
const GONE: usize = 5;
const BACK: usize = 10;
const SETTLED: usize = 3;
const RATE_MBITS: f64 = 5.0;
