//! Slow paths, made by the link of the tests: it is built and run, no part of this program.

use std::process::{Command, Output, Stdio};

use serde_json::Value;

use super::{Finding, Kit};
use crate::workspace::{cargo, output_of, target};

/// A second each way, and the client waits for its results for at least two.
pub(super) fn waiting_is_idle(kit: &Kit) -> Result<Finding, String> {
    // The shell tells what the client took; a round trip is two seconds.
    let client = "linerate -c 10.77.0.2 -t 1 -b 100k -J >/dev/null; times >&2";
    let output = match across(kit, &["--latency", "1s"], &["sh", "-c", client])? {
        Ok(output) => output,
        Err(skipped) => return Ok(skipped),
    };
    let said = String::from_utf8_lossy(&output.stderr);
    let took = seconds_of_children(&said).ok_or_else(|| format!("no times: {said}"))?;
    Ok(Finding::of(took <= 0.1, format!("{took:.2} s of CPU in all")))
}

/// `-i 0.5 -t 10`, forward and reverse.
pub(super) fn intervals_of_a_narrow_link(kit: &Kit) -> Result<Finding, String> {
    let (mut holds, mut figures) = (true, Vec::new());
    for (name, flags) in [("forward", ""), ("reverse", "-R")] {
        let link = ["--rate", "1M", "--queue", "60K", "--latency", "5ms"];
        let mut client = vec!["linerate", "-c", "10.77.0.2", "-i", "0.5", "-t", "10", "-J"];
        client.extend(flags.split_whitespace());
        let output = match across(kit, &link, &client)? {
            Ok(output) => output,
            Err(skipped) => return Ok(skipped),
        };
        let document: Value = serde_json::from_slice(&output.stdout)
            .map_err(|_| String::from_utf8_lossy(&output.stderr).into_owned())?;
        let found = Intervals::read(&document, 0.5);
        let total = if flags.is_empty() { "sum_sent" } else { "sum_received" };
        let is_whole = document["end"][total]["bytes"].as_u64() == Some(found.bytes);
        // A sender's system may truly accept nothing for a while; what arrives, arrives.
        let are_true = flags.is_empty() || found.zeros == 0;
        holds &= found.count >= 19 && found.off_ms <= 10.0 && is_whole && are_true;
        figures.push(format!(
            "{name}: {} intervals, edges {:.1} ms off, {} without data, sum {}",
            found.count,
            found.off_ms,
            found.zeros,
            if is_whole { "right" } else { "WRONG" }
        ));
    }
    Ok(Finding::of(holds, figures.join("; ")))
}

/// What the intervals of a document come to.
#[derive(Debug, PartialEq)]
struct Intervals {
    count: usize,
    /// How far the worst edge is from its time; the last is where the test ended.
    off_ms: f64,
    zeros: usize,
    bytes: u64,
}

impl Intervals {
    fn read(document: &Value, length: f64) -> Self {
        let all = document["intervals"].as_array().map_or(&[][..], Vec::as_slice);
        let sums = || all.iter().map(|interval| &interval["sum"]);
        let off = |(index, sum): (usize, &Value)| {
            let due = (index + 1) as f64 * length;
            sum["end"].as_f64().map_or(f64::INFINITY, |end| (end - due).abs() * 1e3)
        };
        let inner = sums().enumerate().take(all.len().saturating_sub(1));
        Self {
            count: all.len(),
            off_ms: inner.map(off).fold(0.0, f64::max),
            zeros: sums().filter(|sum| sum["bytes"].as_u64() == Some(0)).count(),
            bytes: sums().filter_map(|sum| sum["bytes"].as_u64()).sum(),
        }
    }
}

/// A command at the near end of a link, with a server at the far end; or why there is no link.
fn across(
    kit: &Kit,
    options: &[&str],
    command: &[&str],
) -> Result<Result<Output, Finding>, String> {
    let is_root = output_of("id", &["-u"]).trim() == "0";
    if !is_root || !std::path::Path::new("/dev/net/tun").exists() {
        let why = "the link needs root and /dev/net/tun";
        return Ok(Err(Finding::Skipped(why.into())));
    }
    let build = ["build", "--quiet", "--locked", "-p", "linerate-tests", "--bin", "link"];
    let built = cargo(&build).status().map_err(|e| format!("cargo: {e}"))?;
    if !built.success() {
        return Err("the link could not be built".into());
    }
    let own = std::fs::canonicalize(&kit.own.path).map_err(|e| e.to_string())?;
    let mut link = Command::new(target().join("debug").join("link"));
    link.args(options).arg("--").args(command).env("LINERATE_BIN", own);
    let output = link.stdin(Stdio::null()).output().map_err(|e| format!("the link: {e}"))?;
    if output.status.success() {
        return Ok(Ok(output));
    }
    Err(format!("the link: {}", String::from_utf8_lossy(&output.stderr)))
}

/// The second line of the shell's `times` is that of its children, user and system.
fn seconds_of_children(said: &str) -> Option<f64> {
    let mut lines = said.lines().filter_map(times);
    lines.next();
    lines.next()
}

/// Reads `0m0.01s 0m0.02s`.
fn times(line: &str) -> Option<f64> {
    let (user, system) = line.split_once(' ')?;
    let seconds = |text: &str| {
        let (minutes, seconds) = text.strip_suffix('s')?.split_once('m')?;
        Some(minutes.parse::<f64>().ok()? * 60.0 + seconds.parse::<f64>().ok()?)
    };
    Some(seconds(user)? + seconds(system)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn times_of_children_are_the_second_line() {
        let said = "near   10.77.0.1\n0m0.00s 0m0.00s\n1m0.25s 0m0.50s\nthere: 3 frames\n";
        assert_eq!(seconds_of_children(said), Some(60.75));
        assert_eq!(seconds_of_children("0m0.00s 0m0.00s\n"), None);
    }

    #[test]
    fn intervals_are_held_against_their_times_but_for_the_last() {
        let sum = |end: f64, bytes: u64| json!({ "sum": { "end": end, "bytes": bytes } });
        let document = json!({ "intervals": [sum(0.5, 7), sum(1.25, 0), sum(1.3, 5)] });
        let expected = Intervals { count: 3, off_ms: 250.0, zeros: 1, bytes: 12 };
        assert_eq!(Intervals::read(&document, 0.5), expected);
    }
}
