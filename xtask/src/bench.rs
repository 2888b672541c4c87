//! linerate against iperf3 over the loopback: each tool talks to itself, and the two take turns, so
//! that whatever else the machine does meets both. A workload is a row of `WORKLOADS`; its value is
//! the receiver's rate in the client's own JSON document.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::workspace::{cargo, target};

/// What is measured: a name, and what the client is asked for.
const WORKLOADS: [(&str, &[&str]); 3] =
    [("tcp", &[]), ("tcp reverse", &["-R"]), ("tcp 4 streams", &["-P", "4"])];

/// Measures every workload with both tools and prints the comparison.
pub(crate) fn run(options: &[String]) -> Result<(), String> {
    let plan = Plan::parse(options)?;
    let own = match &plan.own {
        Some(path) => path.clone(),
        None => build_release()?,
    };
    let mut rows = Vec::new();
    for (name, args) in WORKLOADS {
        rows.push(measure(name, args, &plan, &own)?);
    }
    if plan.json {
        let rows: Vec<Value> = rows.iter().map(Row::to_json).collect();
        println!("{:#}", json!({ "seconds": plan.seconds, "runs": plan.runs, "rows": rows }));
    } else {
        print_table(&rows);
    }
    Ok(())
}

/// What was asked for.
struct Plan {
    peer: PathBuf,
    own: Option<PathBuf>,
    runs: usize,
    seconds: u32,
    json: bool,
}

impl Plan {
    fn parse(options: &[String]) -> Result<Self, String> {
        let mut plan = Self { peer: "iperf3".into(), own: None, runs: 5, seconds: 3, json: false };
        let mut options = options.iter();
        while let Some(option) = options.next() {
            let mut value = || options.next().ok_or(format!("{option} needs a value"));
            match option.as_str() {
                "--peer" => plan.peer = value()?.into(),
                "--own" => plan.own = Some(value()?.into()),
                "--runs" => plan.runs = positive(option, value()?)?,
                "--seconds" => plan.seconds = positive(option, value()?)?,
                "--json" => plan.json = true,
                other => return Err(format!("bench does not know {other}")),
            }
        }
        Ok(plan)
    }
}

fn positive<T: std::str::FromStr + PartialOrd + From<u8>>(
    option: &str,
    text: &str,
) -> Result<T, String> {
    let number = text.parse().ok().filter(|n| *n >= T::from(1));
    number.ok_or(format!("{option} takes a number from 1 on, not {text:?}"))
}

fn build_release() -> Result<PathBuf, String> {
    let mut build =
        cargo(&["build", "--release", "--locked", "-p", "linerate", "--bin", "linerate"]);
    let status = build.status().map_err(|e| format!("cargo: {e}"))?;
    if !status.success() {
        return Err("the release build of linerate failed".into());
    }
    Ok(target().join("release").join(format!("linerate{}", std::env::consts::EXE_SUFFIX)))
}

/// The measured rates of one workload, in bits per second.
struct Row {
    name: &'static str,
    peer: Vec<f64>,
    own: Vec<f64>,
}

/// Which tool goes first changes with each turn: a machine that heats up or slows down favours
/// neither.
fn measure(name: &'static str, args: &[&str], plan: &Plan, own: &PathBuf) -> Result<Row, String> {
    let mut row = Row { name, peer: Vec::new(), own: Vec::new() };
    for turn in 0..plan.runs {
        eprintln!("{name}: turn {} of {}", turn + 1, plan.runs);
        if turn % 2 == 0 {
            row.peer.push(one_run(&plan.peer, args, plan.seconds)?);
            row.own.push(one_run(own, args, plan.seconds)?);
        } else {
            row.own.push(one_run(own, args, plan.seconds)?);
            row.peer.push(one_run(&plan.peer, args, plan.seconds)?);
        }
    }
    row.peer.sort_by(f64::total_cmp);
    row.own.sort_by(f64::total_cmp);
    Ok(row)
}

/// One test of a tool with itself.
fn one_run(tool: &PathBuf, args: &[&str], seconds: u32) -> Result<f64, String> {
    let server = Server::start(tool)?;
    let output = Command::new(tool)
        .args(["-c", "127.0.0.1", "-p", &server.port.to_string()])
        .args(["-J", "-t", &seconds.to_string()])
        .args(args)
        .output()
        .map_err(|e| format!("{}: {e}", tool.display()))?;
    let document: Value = serde_json::from_slice(&output.stdout)
        .map_err(|e| format!("{}: its document: {e}", tool.display()))?;
    document["end"]["sum_received"]["bits_per_second"]
        .as_f64()
        .filter(|_| output.status.success())
        .ok_or_else(|| format!("{}: {}: {}", tool.display(), output.status, document["error"]))
}

/// A server for one test, gone when dropped.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start(tool: &PathBuf) -> Result<Self, String> {
        let failed = |e: std::io::Error| format!("{} as a server: {e}", tool.display());
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .map_err(failed)?
            .port();
        let mut child = Command::new(tool)
            .args(["-s", "-1", "--forceflush", "-p", &port.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let stdout = child.stdout.take().expect("stdout is a pipe");
        let server = Self { child, port };
        let mut lines = BufReader::new(stdout).lines();
        if !lines.by_ref().map_while(Result::ok).any(|line| line.contains("listening")) {
            return Err(format!("{} as a server ended before it listened", tool.display()));
        }
        // The report of the server has to go somewhere, or it would wait for its reader.
        std::thread::spawn(move || lines.for_each(drop));
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A server that already ended cannot be killed, which is just as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Row {
    fn ratio(&self) -> f64 {
        median(&self.own) / median(&self.peer)
    }

    fn to_json(&self) -> Value {
        let side = |sorted: &[f64]| {
            json!({
                "median": median(sorted),
                "min": sorted.first(),
                "max": sorted.last(),
                "runs_sorted": sorted,
            })
        };
        json!({
            "workload": self.name,
            "iperf3_bits_per_second": side(&self.peer),
            "linerate_bits_per_second": side(&self.own),
            "ratio": self.ratio(),
        })
    }
}

fn print_table(rows: &[Row]) {
    println!("Gbit/s as received: median (min to max)\n");
    println!("{:<16} {:>24} {:>24} {:>7}", "workload", "iperf3", "linerate", "ratio");
    for row in rows {
        let (peer, own) = (in_gigabits(&row.peer), in_gigabits(&row.own));
        println!("{:<16} {peer:>24} {own:>24} {:>7.3}", row.name, row.ratio());
    }
}

fn in_gigabits(sorted: &[f64]) -> String {
    let giga = |bits: Option<&f64>| bits.copied().unwrap_or(f64::NAN) / 1e9;
    let (middle, least, most) = (median(sorted) / 1e9, giga(sorted.first()), giga(sorted.last()));
    format!("{middle:.2} ({least:.2} to {most:.2})")
}

fn median(sorted: &[f64]) -> f64 {
    let upper = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[upper] } else { (sorted[upper - 1] + sorted[upper]) / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_an_even_count_lies_between_the_two_in_the_middle() {
        assert_eq!(median(&[1.0, 3.0, 9.0]), 3.0);
        assert_eq!(median(&[1.0, 3.0, 5.0, 9.0]), 4.0);
    }

    #[test]
    fn options_are_checked_before_anything_runs() {
        let parse =
            |words: &[&str]| Plan::parse(&words.iter().map(|w| (*w).into()).collect::<Vec<_>>());
        assert_eq!(parse(&["--runs", "3"]).map(|plan| plan.runs), Ok(3));
        assert!(parse(&["--runs", "0"]).is_err());
        assert!(parse(&["--runs"]).is_err());
        assert!(parse(&["--fast"]).is_err());
    }
}
