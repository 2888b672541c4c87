//! The program that libFuzzer drives: it hands every input to the body of one target, which
//! `LINERATE_FUZZ_TARGET` names. One program for all of them is built and linked once;
//! `cargo xtask fuzz` does both.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use linerate_tests::fuzzing::{self, Target};

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("LINERATE_FUZZ_TARGET").unwrap_or_default();
    fuzzing::target(&name).expect("LINERATE_FUZZ_TARGET names one of fuzzing::TARGETS")
});

fuzz_target!(|data: &[u8]| (TARGET.body)(data));
