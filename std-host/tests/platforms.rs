//! `docs/platforms.md` names options as they can be typed, and no row is missing for one that needs the
//! system's help.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/platforms.md");

/// Options that are nothing to a system but what every program has: text, files, names, time.
const SAME_EVERYWHERE: &str = "server client interval format json json-stream json-stream-full-output \
    logfile timestamps verbose debug explain rcv-timeout use-pkcs1-padding forceflush version \
    help one-off test-log idle-timeout server-bitrate-limit server-max-duration rsa-private-key-path \
    authorized-users-path time-skew-threshold udp-anywhere udp time bytes blockcount length parallel reverse bidir \
    bitrate omit title extra-data get-server-output udp-counters-64bit repeating-payload username \
    rsa-public-key-path answer-timeout exclusive max-bitrate max-streams max-test-bytes max-tests \
    max-tests-per-address policy queue";

#[test]
fn the_page_of_platforms_has_a_row_for_each_option_that_needs_the_system() {
    let help = Command::new(env!("CARGO_BIN_EXE_linerate")).arg("--help").output();
    let help = String::from_utf8(help.expect("the command runs").stdout).expect("text");
    // In the help an option stands at the start of its line, behind its short name if it has one.
    let lines = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
    let options: BTreeSet<String> = lines.flat_map(|line| names(line).next()).collect();
    assert!(options.len() > 50, "{options:?}");
    let page = fs::read_to_string(PAGE).expect("the page is there");
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let listed: BTreeSet<String> = rows.flat_map(names).collect();
    let unknown: Vec<_> = listed.difference(&options).collect();
    assert!(unknown.is_empty(), "no such options: {unknown:?}");
    let same: BTreeSet<String> = SAME_EVERYWHERE.split(' ').map(str::to_owned).collect();
    let missing: Vec<_> =
        options.difference(&listed).filter(|name| !same.contains(*name)).collect();
    assert!(missing.is_empty(), "no row for {missing:?}");
}

/// The long names in a text, without their dashes.
fn names(text: &str) -> impl Iterator<Item = String> {
    text.split("--").skip(1).filter_map(|rest| {
        let is_of_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let end = rest.find(|c| !is_of_name(c)).unwrap_or(rest.len());
        (end > 0).then(|| rest[..end].trim_end_matches('-').to_owned())
    })
}
