//! Counts the lines of code of the adapters: what is neither blank, nor a comment, nor a test.

use std::fs;
use std::path::Path;

use crate::workspace::root;

/// The table of `ARCHITECTURE.md`.
pub(crate) fn table() -> Result<String, String> {
    let mut table = "| adapter | in | lines of code |\n|---|---|---|\n".to_owned();
    for (name, places) in ADAPTERS {
        let counts = places.iter().map(|place| lines_below(&root().join(place)));
        let lines = counts.sum::<Result<usize, String>>()?;
        let places = places.iter().map(|place| format!("`{place}`")).collect::<Vec<_>>();
        table += &format!("| {name} | {} | {lines} |\n", places.join(", "));
    }
    Ok(table)
}

const ADAPTERS: &[(&str, &[&str])] = &[
    ("the engine, for comparison", &["core/src"]),
    ("hosts", &["std-host/src/stream", "std-host/src/sys", "std-host/src/control"]),
    ("Windows' native data plane", &["windows/src"]),
    ("chips, all of it", &["embedded/src"]),
    ("of that smoltcp", &["embedded/src/smoltcp"]),
    ("of that embassy-net", &["embedded/src/embassy"]),
];

fn lines_below(folder: &Path) -> Result<usize, String> {
    let unreadable = |e| format!("cannot read {}: {e}", folder.display());
    let mut lines = 0;
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        // `tests.rs`, `udp_door_tests.rs`, a folder `tests`; what only tests use.
        if stem.ends_with("tests") || TEST_SUPPORT.contains(&stem.as_str()) {
            continue;
        }
        if path.is_dir() {
            lines += lines_below(&path)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            lines += lines_of(&fs::read_to_string(&path).map_err(unreadable)?);
        }
    }
    Ok(lines)
}

/// Modules of `core::protocol` that exist in test builds only.
const TEST_SUPPORT: [&str; 2] = ["recorded", "testing"];

/// The test module of a file comes last, as the style asks.
fn lines_of(source: &str) -> usize {
    source
        .lines()
        .take_while(|line| *line != "#[cfg(test)]")
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("//"))
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_lines_comments_and_tests_are_no_code() {
        let source = "//! What.\n\nfn a() {\n    // Why.\n    b(); // Or not.\n}\n\n\
                      #[cfg(test)]\nmod tests {\n    fn c() {}\n}\n";
        assert_eq!(lines_of(source), 3);
    }
}
