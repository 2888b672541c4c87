//! `docs/cases.md` says which test covers which bug report; every test that it names must be there.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The reports that can be tried on one machine, by group.
const REPORTS: &[&str] = &[
    "A01", "A03", "A05", "A06", "A08", "A10", "A11", "A13", "A15", "A16", "A18", "A20", "A21",
    "A23", "A25", "A26", "A28", "J01", "J03", "J05", "J06", "J08", "J10", "J11", "J13", "J15",
    "J16", "J18", "J20", "J21", "J23", "C01", "C03", "C05", "C06", "C08", "C10", "C11", "C13",
    "C15", "C16", "C18", "B01", "B03", "B05", "B06", "B08", "B10", "B11", "F01", "F03", "F05",
    "F06", "F08", "F10", "F11", "F13", "F15", "F16", "F18", "N01", "N03", "N05", "N18", "N21",
    "S01", "S03", "S05", "S06", "S08", "S10", "S11", "S13", "S15", "S16", "S18", "S20", "S21",
    "S23", "S25", "S26", "E01", "E03", "E05", "E06", "E08", "E10", "E11", "E13", "E15", "E16",
    "E18", "E20", "N06", "N08", "N10", "N11", "N13", "N15", "N16", "N20", "N23", "N25", "N28",
    "P01", "P03", "P05", "P06", "P08", "P10", "P11", "P13",
];

#[test]
fn every_report_has_its_row_and_every_row_its_tests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    let page = fs::read_to_string(root.join("docs/cases.md")).expect("the page is there");
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| "))
        .map(|line| line.trim_end_matches('|').split('|').map(str::trim).collect())
        .filter(|cells: &Vec<_>| {
            cells[0].len() == 3 && cells[0].ends_with(|c: char| c.is_ascii_digit())
        })
        .collect();
    for report in REPORTS {
        assert!(rows.iter().any(|cells| cells[0] == *report), "{report} has no row");
    }
    let tests = tests_below(root);
    for cells in &rows {
        let names: Vec<&str> = cells[2].split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty() || cells[2].starts_with("none:"), "{}: no test", cells[0]);
        for name in names {
            assert!(tests.contains(name), "{}: there is no test {name}", cells[0]);
        }
    }
}

/// The names of all functions that are marked as tests in this workspace.
fn tests_below(root: &Path) -> BTreeSet<String> {
    let mut tests = BTreeSet::new();
    let mut folders: Vec<_> =
        ["core", "std-host", "embedded", "windows", "tests", "xtask"].map(|f| root.join(f)).into();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the workspace") {
            let path = entry.expect("it can be listed").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                collect(&fs::read_to_string(&path).expect("a source file"), &mut tests);
            }
        }
    }
    tests
}

fn collect(source: &str, tests: &mut BTreeSet<String>) {
    let mut is_marked = false;
    for line in source.lines().map(str::trim) {
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            is_marked = true;
        } else if let Some(at) = line.find("fn ").filter(|_| is_marked) {
            let name: String =
                line[at + 3..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            tests.insert(name);
            is_marked = false;
        } else if let Some(name) = line.strip_suffix(';').filter(|_| is_marked) {
            // One of a list that a macro makes tests of.
            tests.insert(name.to_owned());
            is_marked = false;
        }
    }
}
