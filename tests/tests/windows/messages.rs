//! What the Windows build says of what it is given is what the build for Linux says, but for the words of
//! the system.

use std::time::Duration;

use linerate_tests::process::{Ended, Process};
use linerate_tests::rows::run_all;
use linerate_tests::server::free_port;
use linerate_tests::tool::Tool;

/// Wrong whatever the system is.
const WRONG: [&str; 22] = [
    "",
    "--no-such-option",
    "-c",
    "-s -c 127.0.0.1",
    "-s -R",
    "-c 127.0.0.1 -t never",
    "-c 127.0.0.1 -t -1",
    "-c 127.0.0.1 -b 1x",
    "-c 127.0.0.1 -P 999",
    "-c 127.0.0.1 -l 99999999",
    "-c 127.0.0.1 -u -l 70000",
    "-c 127.0.0.1 -w 9G",
    "-c 127.0.0.1 -n 1M -k 1",
    "-c 127.0.0.1 -R --bidir",
    "-c 127.0.0.1 -i 0.01",
    "-c 127.0.0.1 -O 999",
    "-c 127.0.0.1 -p 70000",
    "-c 127.0.0.1 -J -t x",
    "-c 127.0.0.1 -J --json-stream -t x",
    "-c 127.0.0.1 --cport 0 --bind nowhere%",
    "-c 127.0.0.1 --username x",
    "-s --server-bitrate-limit x",
];

/// What the system says stands at the end.
const OF_THE_SYSTEM: [&str; 6] = [
    "-c 127.0.0.1 -p PORT -t 1",
    "-c ::1 -p PORT -t 1 -u",
    "-c 127.0.0.1 -F /no/such/file",
    "-c 127.0.0.1 --logfile /no/such/file",
    "-s -p PORT -B 192.0.2.1",
    "-c 127.0.0.1 -p PORT -B 192.0.2.1",
];

/// What Linux can do.
const REFUSED: [&str; 3] =
    ["-s -D", "-c 127.0.0.1 --bind-dev lo", "-c 127.0.0.1 --bind 127.0.0.1%lo"];

#[test]
#[ignore = "needs Wine; `cargo xtask windows` runs it"]
fn what_is_wrong_is_said_as_on_linux() {
    run_all(&WRONG, |line| same(line, str::to_owned));
}

#[test]
#[ignore = "needs Wine; `cargo xtask windows` runs it"]
fn what_fails_is_said_as_on_linux_with_the_words_of_the_system() {
    let port = free_port().to_string();
    let lines = OF_THE_SYSTEM.map(|line| line.replace("PORT", &port));
    run_all(&lines, |line| {
        same(line, |said| said.rsplit_once(": ").map_or(said, |(said, _)| said).to_owned())
    });
}

#[test]
#[ignore = "needs Wine; `cargo xtask windows` runs it"]
fn what_windows_cannot_do_is_refused_in_one_line() {
    run_all(&REFUSED, |line| {
        let ended = run(Tool::LinerateWindows, line)?;
        let is_one_line = ended.stderr.lines().count() == 1 && ended.stdout.is_empty();
        let is_refused = ended.stderr.starts_with("linerate: parameter error - ");
        if is_one_line && is_refused && ended.code == Some(1) {
            return Ok(());
        }
        Err(ended.to_string())
    });
}

#[test]
#[ignore = "needs Wine; `cargo xtask windows` runs it"]
fn help_and_version_are_those_of_linux() {
    same("--help", str::to_owned).expect("one help");
    let [linux, windows] = [Tool::Linerate, Tool::LinerateWindows]
        .map(|tool| run(tool, "--version").expect("it ends").stdout);
    let [linux, windows] = [&linux, &windows].map(|text| text.lines().collect::<Vec<_>>());
    assert_eq!((linux.len(), linux[0]), (windows.len(), windows[0]));
    assert!(windows[1].starts_with("Windows "), "{windows:?}");
    let (title, _) = linux[2].split_once(':').expect("a list");
    assert!(windows[2].starts_with(title), "{windows:?}");
}

/// Runs a line with both builds, which say the same and end with the same code.
fn same(line: &str, shown: impl Fn(&str) -> String) -> Result<(), String> {
    let [linux, windows] = [run(Tool::Linerate, line)?, run(Tool::LinerateWindows, line)?];
    let said = |ended: &Ended| {
        (ended.code, shown(ended.stdout.trim_end()), shown(ended.stderr.trim_end()))
    };
    if said(&linux) == said(&windows) && !windows.stderr.contains("panicked") {
        return Ok(());
    }
    Err(format!("not the same: {linux}\n{windows}"))
}

fn run(tool: Tool, line: &str) -> Result<Ended, String> {
    let options = line.split_whitespace();
    Process::start(tool.command().args(options)).wait(TIME_LIMIT)
}

const TIME_LIMIT: Duration = Duration::from_secs(20);
