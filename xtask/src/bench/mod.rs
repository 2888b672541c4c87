//! linerate against iperf3: each tool talks to itself and, where that matters, to the other, and all
//! take turns, so that whatever else the machine does meets each of them. What is measured is a row of
//! [`rows::ROWS`]; `docs/performance.md` explains the columns.

mod capture;
mod check;
mod document;
mod measure;
mod micro;
mod network;
mod numbers;
mod plan;
mod rows;
mod run;
mod side;
mod table;
mod tool;

use std::sync::Arc;

use serde_json::{Value, json};

use measure::Measured;
use network::Network;
use plan::{Plan, Work};
use rows::ROWS;
use tool::Tool;

use crate::workspace::{cargo, target};

/// Does what the options ask for.
pub(crate) fn run(options: &[String]) -> Result<(), String> {
    let plan = Plan::parse(options)?;
    match plan.work {
        Work::Compare => compare(&plan),
        Work::Check => check::run(&plan),
        Work::Micro => micro::time(),
        Work::Instructions => micro::count(plan.json),
    }
}

/// Measures the rows that were asked for and prints the comparison.
fn compare(plan: &Plan) -> Result<(), String> {
    let own = own_tool(plan)?;
    let peer = Tool::find(&plan.peer)?;
    let network = Arc::new(Network::make(plan.link)?);
    let mut all = Vec::new();
    for row in ROWS.iter().filter(|row| plan.wants(row.name)) {
        all.extend(measure::row(row, plan, &own, &peer, &network));
    }
    if all.is_empty() {
        return Err(format!("no row has {:?} in its name", plan.rows.join(" or ")));
    }
    if plan.json {
        println!("{:#}", document(plan, &own, &peer, &all));
    } else {
        println!("{} against {}, {} runs over {}", own.version, peer.version, plan.runs, plan.link);
        table::print(&all);
    }
    let failed = all.iter().filter(|row| matches!(row.outcome, measure::Outcome::Failed(_)));
    match failed.count() {
        0 => Ok(()),
        count => Err(format!("{count} of {} rows could not be measured", all.len())),
    }
}

fn document(plan: &Plan, own: &Tool, peer: &Tool, rows: &[Measured]) -> Value {
    json!({
        "linerate": own.version,
        "iperf3": peer.version,
        "runs": plan.runs,
        "link": plan.link.to_string(),
        "rows": rows.iter().map(Measured::to_json).collect::<Vec<_>>(),
    })
}

/// The linerate that was named, or this checkout's, built as it is released.
fn own_tool(plan: &Plan) -> Result<Tool, String> {
    if let Some(path) = &plan.own {
        return Tool::find(path);
    }
    let mut build =
        cargo(&["build", "--release", "--locked", "-p", "linerate", "--bin", "linerate"]);
    let status = build.status().map_err(|e| format!("cargo: {e}"))?;
    if !status.success() {
        return Err("the release build of linerate failed".into());
    }
    let name = format!("linerate{}", std::env::consts::EXE_SUFFIX);
    Tool::find(&target().join("release").join(name))
}
