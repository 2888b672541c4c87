//! Cases from reports of users that need a measurement, and so have no place among the tests: linerate
//! alone passes them or does not. Their ids are those of `docs/cases.md`.

mod catch_up;
mod cost;
mod even;
mod narrow;

use std::sync::Arc;

use serde_json::{Value, json};

use super::network::{Cable, Network};
use super::plan::Plan;
use super::run::{Ran, Test};
use super::tool::Tool;

/// A case.
struct Case {
    id: &'static str,
    /// What must hold.
    law: &'static str,
    look: fn(&Kit) -> Result<Finding, String>,
}

/// What a look found: whether the law holds, and the figures.
enum Finding {
    Holds(String),
    Broken(String),
    Skipped(String),
}

const CASES: [Case; 10] = [
    Case {
        id: "P01",
        law: "30 Mbit/s leaves evenly: 99 % of gaps within 1 ms, no lump of 10 ms",
        look: even::one_stream,
    },
    Case {
        id: "P03",
        law: "a packet a second costs both ends less than 2 % of a core, TCP and UDP",
        look: cost::a_packet_a_second,
    },
    Case {
        id: "P05",
        law: "waiting for results over a slow path costs no CPU",
        look: narrow::waiting_is_idle,
    },
    Case {
        id: "P06",
        law: "bursts have the size that was asked for, and the rate is kept",
        look: even::bursts,
    },
    Case {
        id: "P08",
        law: "3 s after an outage of 5 s the rate is the one asked for",
        look: catch_up::after_an_outage,
    },
    Case {
        id: "P10",
        law: "10 kbit/s of large datagrams is 10 kbit/s, to a datagram",
        look: even::slow_and_large,
    },
    Case {
        id: "P11",
        law: "eight slow streams leave each evenly, 99 % of datagrams alone",
        look: even::many_streams,
    },
    Case {
        id: "P13",
        law: "UDP without a limit is as fast in reverse, to 5 %",
        look: cost::both_directions,
    },
    Case {
        id: "B03",
        law: "both ways at once carry 80 % of the better one at least",
        look: cost::both_at_once,
    },
    Case {
        id: "E06",
        law: "on 1 Mbit/s intervals end within 10 ms of their time and count what was accepted",
        look: narrow::intervals_of_a_narrow_link,
    },
];

/// Looks at the cases that were asked for.
pub(super) fn run(plan: &Plan) -> Result<(), String> {
    let kit = Kit { own: super::own_tool(plan)?, loopback: Arc::new(Network::Loopback) };
    let mut broken = Vec::new();
    let mut rows = Vec::new();
    for case in CASES.iter().filter(|case| plan.wants(case.id)) {
        eprintln!("{}: {}", case.id, case.law);
        let (word, figures) = match (case.look)(&kit) {
            Ok(Finding::Holds(figures)) => ("holds", figures),
            Ok(Finding::Broken(figures)) => ("BROKEN", figures),
            Ok(Finding::Skipped(why)) => ("skipped", why),
            Err(why) => ("FAILED", why),
        };
        if matches!(word, "BROKEN" | "FAILED") {
            broken.push(case.id);
        }
        if !plan.json {
            println!("{} {word:<8} {}\n    {figures}", case.id, case.law);
        }
        rows.push(json!({ "id": case.id, "law": case.law, "is": word, "figures": figures }));
    }
    if plan.json {
        println!("{:#}", Value::Array(rows));
    }
    if broken.is_empty() { Ok(()) } else { Err(format!("broken: {}", broken.join(" "))) }
}

/// What the cases work with.
struct Kit {
    own: Tool,
    loopback: Arc<Network>,
}

impl Kit {
    /// A test over the loopback.
    fn test(&self, flags: &str, seconds: u32) -> Result<Ran, String> {
        self.over(&self.loopback, flags, seconds, false)
    }

    fn over(
        &self,
        network: &Arc<Network>,
        flags: &str,
        seconds: u32,
        captures: bool,
    ) -> Result<Ran, String> {
        let flags = flags.split_whitespace().map(str::to_owned).collect();
        let test = Test { client: &self.own, server: &self.own, network, flags, seconds, captures };
        test.run()
    }

    /// The bits a second of the client's own document, under this key of its end.
    fn rate(ran: &Ran, key: &str) -> f64 {
        ran.document["end"][key]["bits_per_second"].as_f64().unwrap_or(f64::NAN)
    }
}

/// A virtual cable, or why there is none.
fn cable() -> Result<Arc<Network>, Finding> {
    Cable::make().map(|cable| Arc::new(Network::Veth(cable))).map_err(Finding::Skipped)
}

impl Finding {
    /// Figures that hold or not.
    fn of(holds: bool, figures: String) -> Self {
        if holds { Self::Holds(figures) } else { Self::Broken(figures) }
    }
}
