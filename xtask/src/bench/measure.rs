//! Measures a row: every side of it in turn, as often as asked for. Who goes first changes with each
//! turn: a machine that heats up or slows down favours nobody.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::network::Network;
use super::numbers::Series;
use super::plan::Plan;
use super::rows::{Bound, CAPTURED_BLOCK, Row, Table, Wanted};
use super::run::{Test, peak_of, start_server};
use super::side::{Figures, Metric, Side, Who, figures};
use super::tool::Tool;

/// A row with what came of it, under one congestion control.
pub(super) struct Measured {
    pub(super) name: String,
    pub(super) table: Table,
    pub(super) outcome: Outcome,
}

/// How measuring ended.
pub(super) enum Outcome {
    Done(Vec<Column>),
    /// It cannot be measured here, and why.
    Skipped(String),
    Failed(String),
}

/// All figures of one side.
pub(super) struct Column {
    side: Side,
    /// Of the side.
    pub(super) name: &'static str,
    pub(super) series: BTreeMap<Metric, Series>,
    /// What the side is held to; iperf3 with itself is the measure and has none.
    pub(super) verdicts: Vec<Verdict>,
}

/// What a figure came to beside what was wanted.
pub(super) struct Verdict {
    pub(super) metric: Metric,
    ratio: Option<f64>,
    pub(super) text: String,
    is_met: bool,
}

/// The row, once for each congestion control where that matters.
pub(super) fn row(
    row: &Row,
    plan: &Plan,
    own: &Tool,
    peer: &Tool,
    network: &Arc<Network>,
) -> Vec<Measured> {
    let bench = Bench { row, plan, own, peer, network };
    let (flags, without) = bench.shared_flags();
    let name = format!("{}{without}", row.name);
    if let Some(why) = bench.lacks() {
        return vec![Measured { name, table: row.table, outcome: Outcome::Skipped(why) }];
    }
    // Windows has one way to control congestion.
    if row.table != Table::Tcp || plan.wine {
        let outcome = bench.measure(&name, &flags);
        return vec![Measured { name, table: row.table, outcome }];
    }
    let under = |congestion: &String| {
        let name = format!("{name}, {congestion}");
        let outcome = if has_congestion(congestion) {
            let mut flags = flags.clone();
            flags.extend(["-C".to_owned(), congestion.clone()]);
            bench.measure(&name, &flags)
        } else {
            Outcome::Skipped(format!("this kernel has no {congestion}"))
        };
        Measured { name, table: row.table, outcome }
    };
    plan.congestion.iter().map(under).collect()
}

/// Where the kernel does not say what it has, the test will.
fn has_congestion(name: &str) -> bool {
    let available = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    fs::read_to_string(available).is_ok_and(|all| all.split_whitespace().any(|one| one == name))
}

struct Bench<'a> {
    row: &'a Row,
    plan: &'a Plan,
    own: &'a Tool,
    peer: &'a Tool,
    network: &'a Arc<Network>,
}

impl Bench<'_> {
    /// The flags of both, but for those that this iperf3 does not have, which are told.
    fn shared_flags(&self) -> (Vec<String>, String) {
        let is_lacking = |flag: &&str| flag.starts_with("--") && !self.peer.knows(flag);
        let (lacking, flags): (Vec<_>, Vec<_>) =
            self.row.flags.split_whitespace().partition(is_lacking);
        let without = match lacking.is_empty() {
            true => String::new(),
            false => format!(" (this iperf3 has no {}: without)", lacking.join(" ")),
        };
        (flags.into_iter().map(str::to_owned).collect(), without)
    }

    /// Why there is nothing to compare with.
    fn lacks(&self) -> Option<String> {
        let mut flags = self.row.peer_flags.split_whitespace();
        let lacking = flags.find(|flag| flag.starts_with("--") && !self.peer.knows(flag))?;
        Some(format!("this iperf3 has no {lacking}"))
    }

    fn measure(&self, name: &str, flags: &[String]) -> Outcome {
        let mut sides = vec![Side::PEERS];
        if !self.plan.wine {
            sides.push(Side::OWN);
        }
        if self.row.crosses {
            sides.extend([Side::TO_PEER, Side::FROM_PEER]);
        }
        let name_of = |side: Side| side.name(self.plan.wine);
        let mut columns: Vec<_> = sides
            .iter()
            .map(|side| Column {
                side: *side,
                name: name_of(*side),
                series: BTreeMap::new(),
                verdicts: Vec::new(),
            })
            .collect();
        for turn in 0..self.plan.runs {
            eprintln!("{name}: turn {} of {}", turn + 1, self.plan.runs);
            for place in 0..columns.len() {
                let column = &mut columns[(turn + place) % sides.len()];
                match self.patiently(column.side, flags) {
                    Ok(figures) => column.add(&figures),
                    Err(why) if self.row.table == Table::Captured && why.contains(NO_CAPTURE) => {
                        return Outcome::Skipped(why);
                    }
                    Err(why) => return Outcome::Failed(format!("{}: {why}", column.name)),
                }
            }
        }
        self.judge(&mut columns);
        Outcome::Done(columns)
    }

    /// A test that fails is run again, aloud: one of hundreds may meet a port that somebody took.
    fn patiently(&self, side: Side, flags: &[String]) -> Result<Figures, String> {
        for _ in 1..TRIES {
            match self.one(side, flags) {
                Err(why) if !why.contains(NO_CAPTURE) => {
                    eprintln!("  {}: {why}; once more", side.name(self.plan.wine));
                }
                done => return done,
            }
        }
        self.one(side, flags)
    }

    fn one(&self, side: Side, flags: &[String]) -> Result<Figures, String> {
        let tool = |who| if who == Who::Own { self.own } else { self.peer };
        let seconds = self.plan.seconds.unwrap_or(self.row.seconds);
        if self.row.table == Table::Idle {
            return self.idle(tool(side.server), seconds);
        }
        let more = if side == Side::OWN { self.row.own_flags } else { self.row.peer_flags };
        let mut flags = flags.to_vec();
        flags.extend(more.split_whitespace().map(str::to_owned));
        let test = Test {
            client: tool(side.client),
            server: tool(side.server),
            network: self.network,
            flags,
            seconds,
            captures: self.row.table == Table::Captured,
        };
        Ok(figures(&test.run()?, seconds, CAPTURED_BLOCK))
    }

    /// A server that nobody asks for anything.
    fn idle(&self, tool: &Tool, seconds: u32) -> Result<Figures, String> {
        let server = start_server(&mut tool.command(|program| self.network.server(program)), &[])?;
        std::thread::sleep(Duration::from_secs(seconds.into()));
        Ok(Figures::from([(Metric::ServerMb, peak_of(server.id())? as f64 / 1e6)]))
    }

    /// Holds each side against iperf3 with itself, under Wine against linerate for Linux.
    fn judge(&self, columns: &mut [Column]) {
        let (measure, others) = columns.split_first_mut().expect("the first is the measure");
        for column in others {
            let is_of_the_row = column.side == Side::OWN || self.plan.wine;
            let wanted = if is_of_the_row { self.row.wanted } else { &NEVER_SLOWER };
            for metric in self.row.table.metrics() {
                let Some(own) = column.series.get(metric) else { continue };
                let base = measure.series.get(metric).map(Series::median);
                let bound = wanted.iter().find(|wanted| wanted.metric == *metric);
                let bound = bound.and_then(|wanted| wanted.bound.against(self.peer.minor()));
                column.verdicts.push(Verdict::of(*metric, own.median(), base, bound));
            }
        }
    }
}

/// What is wanted of each tool towards the other.
const NEVER_SLOWER: [Wanted; 1] = [Wanted { metric: Metric::Rate, bound: Bound::AtLeast(1.0) }];
const TRIES: usize = 3;
const NO_CAPTURE: &str = "no capture";

impl Bound {
    /// The bound as it is against an iperf3 of this age; none if there is none.
    fn against(self, minor: Option<u32>) -> Option<Self> {
        let Self::AtMostByAge { bursts, sleeps } = self else { return Some(self) };
        let is_old = minor.is_some_and(|minor| minor < FIRST_THAT_SLEEPS);
        if is_old { bursts } else { sleeps }.map(Self::AtMost)
    }
}

/// The threads of 3.16 brought the sleep.
const FIRST_THAT_SLEEPS: u32 = 16;

impl Verdict {
    /// Without a bound only the ratio is told.
    fn of(metric: Metric, own: f64, base: Option<f64>, bound: Option<Bound>) -> Self {
        use super::numbers::figure;

        let ratio = base.filter(|base| *base != 0.0).map_or(f64::NAN, |base| own / base);
        let times = if ratio.is_nan() { "–".to_owned() } else { format!("×{}", figure(ratio)) };
        let (limit, is_met) = match bound {
            None => (String::new(), true),
            Some(Bound::AtLeast(least)) => (format!("≥ ×{least}"), ratio >= least),
            Some(Bound::AtMost(most)) => (format!("≤ ×{most}"), ratio <= most),
            Some(Bound::Own(most)) => (format!("≤ {most}"), own <= most),
            Some(Bound::AtMostByAge { .. }) => unreachable!("it is settled before"),
        };
        let verdict = if is_met { "met" } else { "NOT MET" };
        let text = if limit.is_empty() { times } else { format!("{times} ({limit}: {verdict})") };
        Self { metric, ratio: Some(ratio).filter(|ratio| !ratio.is_nan()), text, is_met }
    }
}

impl Column {
    fn add(&mut self, figures: &Figures) {
        for (metric, figure) in figures {
            self.series.entry(*metric).or_default().add(*figure);
        }
    }

    fn to_json(&self) -> Value {
        let series =
            self.series.iter().map(|(metric, all)| (metric.key().to_owned(), all.to_json()));
        let verdicts = self.verdicts.iter().map(|verdict| {
            json!({
                "of": verdict.metric.key(),
                "ratio": verdict.ratio,
                "is": verdict.text,
                "met": verdict.is_met,
            })
        });
        json!({
            "side": self.name,
            "figures": series.collect::<serde_json::Map<_, _>>(),
            "verdicts": verdicts.collect::<Vec<_>>(),
        })
    }
}

impl Measured {
    pub(super) fn to_json(&self) -> Value {
        match &self.outcome {
            Outcome::Done(columns) => json!({
                "row": self.name,
                "sides": columns.iter().map(Column::to_json).collect::<Vec<_>>(),
            }),
            Outcome::Skipped(why) => json!({ "row": self.name, "skipped": why }),
            Outcome::Failed(why) => json!({ "row": self.name, "failed": why }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_tells_the_ratio_and_what_was_wanted() {
        let verdict = |own, base, bound| {
            let verdict = Verdict::of(Metric::Rate, own, base, bound);
            (verdict.text, verdict.is_met)
        };
        let told = |text: &str, is_met| (text.to_owned(), is_met);
        assert_eq!(verdict(5.0, Some(4.0), None), told("×1.25", true));
        assert_eq!(
            verdict(5.0, Some(4.0), Some(Bound::AtLeast(1.5))),
            told("×1.25 (≥ ×1.5: NOT MET)", false)
        );
        assert_eq!(
            verdict(3.0, Some(4.0), Some(Bound::AtMost(0.85))),
            told("×0.750 (≤ ×0.85: met)", true)
        );
        assert_eq!(verdict(0.5, Some(0.0), Some(Bound::Own(1.0))), told("– (≤ 1: met)", true));
        assert!(!verdict(f64::NAN, Some(1.0), Some(Bound::Own(1.0))).1);
    }

    #[test]
    fn the_bound_of_spread_depends_on_the_age_of_iperf3() {
        let bound = Bound::AtMostByAge { bursts: Some(0.2), sleeps: Some(0.6) };
        assert_eq!(bound.against(Some(12)), Some(Bound::AtMost(0.2)));
        assert_eq!(bound.against(Some(21)), Some(Bound::AtMost(0.6)));
        let bound = Bound::AtMostByAge { bursts: None, sleeps: Some(1.0) };
        assert_eq!(bound.against(Some(12)), None);
    }
}
