//! Coverage-guided fuzzing with libFuzzer, on any toolchain: the coverage instrumentation is a pass
//! of LLVM that stable compilers have too, and the driver comes with the `libfuzzer-sys` crate. What
//! the targets do is in `linerate_tests::fuzzing`; their names are the folders of `tests/corpus`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::workspace::{cargo, output_of, root, target};

/// Fuzzes the targets that are asked for, or does one of the chores around the corpus.
pub(crate) fn run(options: &[String]) -> Result<(), String> {
    let plan = Plan::parse(options)?;
    match plan.chore {
        Chore::SeedCorpus => done("seed-corpus", &mut seed_corpus()),
        Chore::Fuzz => fuzz(&plan.targets, plan.seconds),
        Chore::Minimize => minimize(&plan.targets),
        Chore::Replay(file) => replay(&plan.targets[0], &file),
    }
}

/// All targets, each for so many seconds, two at a time: that is how many cores a small machine has.
pub(crate) fn fuzz(targets: &[String], seconds: u32) -> Result<(), String> {
    let program = build()?;
    let mut failures = Vec::new();
    for pair in targets.chunks(2) {
        let running: Vec<_> = pair
            .iter()
            .map(|name| Ok((name, start(&program, name, seconds)?)))
            .collect::<Result<_, String>>()?;
        for (name, mut child) in running {
            let status = child.wait().map_err(|e| format!("{name}: {e}"))?;
            let log = fs::read_to_string(log_file(name)).unwrap_or_default();
            if status.success() {
                println!("  {name:<10} {}", figures(&log));
            } else {
                failures.push(format!("{name} ({status}):\n{}", finding(&log, name)));
            }
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n\n")) }
}

/// Every target there is.
pub(crate) fn targets() -> Result<Vec<String>, String> {
    let folder = corpus("");
    let entries = fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| !name.contains('.'))
        .collect();
    names.sort();
    Ok(names)
}

struct Plan {
    targets: Vec<String>,
    seconds: u32,
    chore: Chore,
}

#[derive(Debug, PartialEq, Eq)]
enum Chore {
    Fuzz,
    SeedCorpus,
    Minimize,
    Replay(PathBuf),
}

impl Plan {
    fn parse(options: &[String]) -> Result<Self, String> {
        let known = targets()?;
        let mut plan = Self { targets: Vec::new(), seconds: 60, chore: Chore::Fuzz };
        let mut options = options.iter();
        while let Some(option) = options.next() {
            let mut value = || options.next().ok_or(format!("{option} needs a value"));
            match option.as_str() {
                "--seconds" => {
                    let text = value()?;
                    let seconds = text.parse().ok().filter(|&seconds| seconds > 0);
                    plan.seconds = seconds.ok_or(format!("--seconds from 1 on, not {text:?}"))?;
                }
                "--seed-corpus" => plan.chore = Chore::SeedCorpus,
                "--minimize" => plan.chore = Chore::Minimize,
                "--replay" => plan.chore = Chore::Replay(value()?.into()),
                name if known.iter().any(|known| known == name) => {
                    plan.targets.push(name.to_owned());
                }
                other => return Err(format!("no target {other:?}; known: {}", known.join(" "))),
            }
        }
        if matches!(plan.chore, Chore::Replay(_)) && plan.targets.len() != 1 {
            return Err("--replay FILE needs the one target that the file is for".into());
        }
        if plan.targets.is_empty() {
            plan.targets = known;
        }
        Ok(plan)
    }
}

fn build() -> Result<PathBuf, String> {
    let version = output_of("rustc", &["-vV"]);
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.ok_or("rustc does not say what machine it is for")?;
    let folder = target().join("fuzz");
    let mut command = cargo(&["build", "--locked", "--profile", "fuzz", "--target", host]);
    // With a target named, the flags do not reach build scripts and macros.
    command
        .args(["--package", "linerate-tests", "--bin", "fuzz", "--features", "libfuzzer"])
        .arg("--target-dir")
        .arg(&folder)
        .env("RUSTFLAGS", COVERAGE.join(" "));
    done("the build of the fuzzer", &mut command)?;
    Ok(folder.join(host).join("fuzz").join("fuzz"))
}

/// What clang's `-fsanitize=fuzzer` asks of LLVM.
const COVERAGE: [&str; 6] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cllvm-args=-simplifycfg-branch-fold-threshold=0",
];

/// Begins to fuzz a target. What is found to be new goes to a folder of its own, which later runs
/// read too; the committed corpus is only read.
fn start(program: &Path, name: &str, seconds: u32) -> Result<Child, String> {
    let found = found(name);
    fs::create_dir_all(&found).map_err(|e| format!("{}: {e}", found.display()))?;
    let log = log_file(name);
    let log = fs::File::create(&log).map_err(|e| format!("{}: {e}", log.display()))?;
    driver(program, name)
        .arg(format!("-max_total_time={seconds}"))
        .args(["-timeout=10", "-print_final_stats=1", "-use_value_profile=1"])
        .arg(format!("-artifact_prefix={}/", log_folder(name).display()))
        .arg(found)
        .arg(corpus(name))
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .map_err(|e| format!("{}: {e}", program.display()))
}

fn driver(program: &Path, name: &str) -> Command {
    let mut command = Command::new(program);
    command.env("LINERATE_FUZZ_TARGET", name).env("RUST_BACKTRACE", "1").current_dir(root());
    command
}

/// Adds to the committed corpus the smallest of the found inputs that reach something more.
fn minimize(names: &[String]) -> Result<(), String> {
    let program = build()?;
    for name in names {
        let mut merge = driver(&program, name);
        // Without counters only code that nothing else reaches counts, not how often it runs.
        merge.args(["-set_cover_merge=1", "-use_counters=0", "-timeout=10"]);
        merge.arg(corpus(name)).arg(found(name));
        done("the merge", merge.stdout(Stdio::null()).stderr(Stdio::null()))?;
    }
    Ok(())
}

fn replay(name: &str, file: &Path) -> Result<(), String> {
    let program = build()?;
    let file = std::path::absolute(file).map_err(|e| format!("{}: {e}", file.display()))?;
    done("the replay", driver(&program, name).arg(file))
}

fn seed_corpus() -> Command {
    cargo(&["run", "--quiet", "--locked", "--package", "linerate-tests", "--bin", "seed-corpus"])
}

fn done(what: &str, command: &mut Command) -> Result<(), String> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{what} failed: {status}")),
        Err(error) => Err(format!("{what}: {error}")),
    }
}

fn corpus(name: &str) -> PathBuf {
    root().join("tests").join("corpus").join(name)
}

fn found(name: &str) -> PathBuf {
    log_folder(name).join("found")
}

fn log_folder(name: &str) -> PathBuf {
    target().join("fuzz").join("runs").join(name)
}

fn log_file(name: &str) -> PathBuf {
    log_folder(name).join("log")
}

/// Runs, runs a second, and what was reached, from libFuzzer's last lines.
fn figures(log: &str) -> String {
    let stat = |key: &str| log.lines().rev().find_map(|line| line.strip_prefix(key)).map(str::trim);
    let runs = stat("stat::number_of_executed_units:").unwrap_or("?");
    let rate = stat("stat::average_exec_per_sec:").unwrap_or("?");
    let last = log.lines().rev().find(|line| line.contains(" cov: ")).unwrap_or_default();
    let after = |key: &str| {
        last.split_whitespace().skip_while(|&word| word != key).nth(1).unwrap_or("?").to_owned()
    };
    let (edges, features) = (after("cov:"), after("ft:"));
    format!("{runs} runs, {rate} a second, {edges} edges and {features} features reached")
}

/// The message of the panic, and how to see it again.
fn finding(log: &str, name: &str) -> String {
    let file = log.lines().find_map(|line| line.split("Test unit written to ").nth(1));
    let told =
        log.lines().skip_while(|line| !line.contains("panicked at") && !line.contains("ERROR"));
    let told: Vec<_> = told.take(3).collect();
    let file = file.unwrap_or("the file named in the log");
    format!(
        "{}\nsee it again with: cargo xtask fuzz {name} --replay {file}\nlog: {}",
        told.join("\n"),
        log_file(name).display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_come_from_the_end_of_the_log() {
        let log = "#2\tINITED cov: 10 ft: 10 corp: 1/1b\n#9\tDONE   cov: 11 ft: 12 corp: 2/4b\n\
                   stat::number_of_executed_units: 99\nstat::average_exec_per_sec:     33\n";
        assert_eq!(figures(log), "99 runs, 33 a second, 11 edges and 12 features reached");
    }

    #[test]
    fn only_known_targets_are_taken() {
        let parse =
            |words: &[&str]| Plan::parse(&words.iter().map(|w| (*w).into()).collect::<Vec<_>>());
        assert!(parse(&[]).is_ok_and(|plan| plan.targets.len() == 6));
        assert!(parse(&["frames", "--seconds", "5"]).is_ok_and(|plan| plan.targets == ["frames"]));
        assert!(parse(&["nothing"]).is_err());
        assert!(parse(&["--seconds", "0"]).is_err());
        assert!(parse(&["--replay", "file"]).is_err());
    }
}
