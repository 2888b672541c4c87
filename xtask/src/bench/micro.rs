//! The engine's hot path alone: nanoseconds by `core/benches/flow.rs`, instructions by the same program
//! under callgrind.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::workspace::{cargo, succeeds};

/// Prints how long each piece of work takes.
pub(super) fn time() -> Result<(), String> {
    let mut bench = cargo(&["bench", "--locked", "-p", "linerate-core", "--bench", "flow"]);
    let status = bench.status().map_err(|e| format!("cargo: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("the micro benchmarks: {status}")) }
}

/// Prints how many instructions each piece of work takes. The count of many rounds less the count of
/// few leaves out start and end.
pub(super) fn count(as_json: bool) -> Result<(), String> {
    if !succeeds(Command::new("valgrind").arg("--version")) {
        println!("instructions: skipped, there is no valgrind");
        return Ok(());
    }
    let program = build()?;
    let mut all = serde_json::Map::new();
    for name in ask(Command::new(&program).arg("--list-work"))?.lines() {
        let [few, many] = [FEW, MANY].map(|rounds| instructions(&program, name, rounds));
        let each = (many? - few?) as f64 / ((MANY - FEW) * 1000) as f64;
        if !as_json {
            println!("{name:<40} {each:>7.1} instructions");
        }
        all.insert(name.to_owned(), json!(each));
    }
    if as_json {
        println!("{:#}", Value::Object(all));
    }
    Ok(())
}

/// Builds the benchmark, and says where it is.
fn build() -> Result<PathBuf, String> {
    let mut build = cargo(&["bench", "--locked", "-p", "linerate-core", "--bench", "flow"]);
    build.args(["--no-run", "--message-format", "json"]).stderr(Stdio::inherit());
    let messages = ask(&mut build)?;
    let executable = |line: &str| {
        let message: Value = serde_json::from_str(line).ok()?;
        let is_ours = message["target"]["name"] == "flow";
        message["executable"].as_str().filter(|_| is_ours).map(PathBuf::from)
    };
    messages.lines().find_map(executable).ok_or("cargo built no benchmark".into())
}

fn instructions(program: &Path, name: &str, rounds: u64) -> Result<i64, String> {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(program);
    let output = valgrind.args(["--work", name, &rounds.to_string()]).output();
    let output = output.map_err(|e| format!("valgrind: {e}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    collected(&said).filter(|_| output.status.success()).ok_or(format!("valgrind: {said}"))
}

/// What callgrind counted.
fn collected(said: &str) -> Option<i64> {
    let (_, count) = said.lines().find_map(|line| line.split_once("Collected : "))?;
    count.split_whitespace().next()?.parse().ok()
}

fn ask(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|e| format!("{program}: {e}"))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() { Ok(said) } else { Err(format!("{program}: {}", output.status)) }
}

const FEW: u64 = 10;
/// Of a thousand rounds each.
const MANY: u64 = 110;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_read_from_what_callgrind_says() {
        let said = "==7== Events    : Ir\n==7== Collected : 1234567\n==7== \n";
        assert_eq!(collected(said), Some(1_234_567));
        assert_eq!(collected("valgrind: no such file"), None);
    }
}
