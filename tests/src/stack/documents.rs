//! Documents that nobody should send, as frames: what the fuzzer found, and what makes a careless
//! reader recurse.

use std::fs;

use crate::fuzzing::seeds::corpus;

/// All documents for the place where a server awaits parameters (`"parameters"`) or an end results
/// (`"results"`).
pub(super) fn hostile(target: &str) -> Vec<Vec<u8>> {
    let files = fs::read_dir(corpus().join(target)).expect("each target has a folder");
    let found = files.map(|file| fs::read(file.expect("a file").path()).expect("it can be read"));
    let made = ["[", "{\"a\":", "{\"streams\":[", "{\"linerate\":{\"linerate\":", "\"\\u20ac", "1"];
    let made = made.map(|part| part.repeat(LONG / part.len()).into_bytes());
    let elements = ["streams", "details"]
        .map(|key| format!("{{\"{key}\":[{}", "{\"id\":1},".repeat(LONG / 16)).into_bytes());
    found.chain(made).chain(elements).filter(|body| !body.is_empty()).map(framed).collect()
}

/// Nearly as long as parameters may be.
const LONG: usize = 8000;

fn framed(body: Vec<u8>) -> Vec<u8> {
    let length = u32::try_from(body.len()).expect("files are small").to_be_bytes();
    [&length, &body[..]].concat()
}
