//! What the tests of both report writers share: where the recorded outputs of iperf3 are, and which
//! settings a recording was made with, told by its name.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::fs;
use std::path::PathBuf;

use linerate_core::test::{Direction, End, Limits, Protocol, TestSettings};

/// One end's recorded output of one test.
pub(crate) struct Recording {
    pub(crate) name: String,
    pub(crate) end: End,
    pub(crate) content: String,
}

/// All recordings of the current version whose names end in `.client.EXTENSION` or
/// `.server.EXTENSION`, in order of their names.
pub(crate) fn recordings(extension: &str) -> Vec<Recording> {
    let mut recordings = Vec::new();
    for entry in fs::read_dir(directory()).expect("recordings are in the repository") {
        let path = entry.expect("a directory entry").path();
        let file = path.file_name().and_then(|name| name.to_str()).expect("a plain name");
        for (end, suffix) in [(End::Client, "client"), (End::Server, "server")] {
            if let Some(name) = file.strip_suffix(&format!(".{suffix}.{extension}")) {
                let content = fs::read_to_string(&path).expect("text");
                recordings.push(Recording { name: name.into(), end, content });
            }
        }
    }
    recordings.sort_by(|one, other| one.name.cmp(&other.name));
    assert!(recordings.len() > 20, "too few recordings found");
    recordings
}

/// The settings that a name such as `tcp-bidir-p2` stands for, as far as a report shows them.
pub(crate) fn settings_by_name(name: &str) -> TestSettings {
    let words: Vec<&str> = name.split('-').collect();
    let has = |word: &str| words.contains(&word);
    let mut settings = TestSettings::new(if has("udp") { Protocol::Udp } else { Protocol::Tcp });
    settings.limits.seconds = Some(2);
    if has("reverse") {
        settings.direction = Direction::Reverse;
    }
    if has("bidir") {
        settings.direction = Direction::Bidirectional;
    }
    if has("p2") {
        settings.parallel = 2;
    }
    if has("omit") {
        settings.omit_secs = 1;
    }
    if has("bytes") {
        settings.limits = Limits { bytes: Some(50 << 20), ..Limits::default() };
    }
    if has("blocks") {
        settings.limits = Limits { blocks: Some(100), ..Limits::default() };
    }
    settings.server_output = name.contains("get-server-output");
    settings
}

fn directory() -> PathBuf {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/recorded").into()
}
