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
use rows::{ROWS, Row, WINE_ROWS};
use tool::Tool;

use crate::windows;
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
    let own = if plan.wine { windows_tool(plan)? } else { own_tool(plan)? };
    let peer = match &plan.peer {
        Some(path) => Tool::find(path)?,
        None if plan.wine => built_tool()?,
        None => Tool::find("iperf3".as_ref())?,
    };
    let network = Arc::new(Network::make(plan.link)?);
    let rows: &[Row] = if plan.wine { &WINE_ROWS } else { &ROWS };
    let mut all = Vec::new();
    for row in rows.iter().filter(|row| plan.wants(row.name)) {
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
    let [name, of_peer] =
        if plan.wine { ["linerate.exe", "linerate"] } else { ["linerate", "iperf3"] };
    json!({
        name: own.version,
        of_peer: peer.version,
        "runs": plan.runs,
        "link": plan.link.to_string(),
        "rows": rows.iter().map(Measured::to_json).collect::<Vec<_>>(),
    })
}

/// The Windows build that was named, or this checkout's.
fn windows_tool(plan: &Plan) -> Result<Tool, String> {
    match &plan.own {
        Some(path) => Tool::find(path),
        None => Tool::find(&windows::release()?),
    }
}

/// The linerate that was named, or this checkout's.
fn own_tool(plan: &Plan) -> Result<Tool, String> {
    plan.own.as_deref().map_or_else(built_tool, Tool::find)
}

/// This checkout's linerate, built as it is released.
fn built_tool() -> Result<Tool, String> {
    let mut build =
        cargo(&["build", "--release", "--locked", "-p", "linerate", "--bin", "linerate"]);
    let status = build.status().map_err(|e| format!("cargo: {e}"))?;
    if !status.success() {
        return Err("the release build of linerate failed".into());
    }
    let name = format!("linerate{}", std::env::consts::EXE_SUFFIX);
    Tool::find(&target().join("release").join(name))
}
