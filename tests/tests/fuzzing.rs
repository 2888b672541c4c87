//! The fuzz targets without a fuzzer: every file of the corpus, and random bytes.

use std::fs;
use std::panic::catch_unwind;

use linerate_tests::fuzzing::seeds::{corpus, seeds};
use linerate_tests::fuzzing::{TARGETS, Target};
use proptest::prelude::*;

#[test]
fn the_corpus_holds_every_law() {
    for Target { name, body } in TARGETS {
        let folder = corpus().join(name);
        let files = fs::read_dir(&folder).expect("each target has a folder");
        let mut count = 0;
        for file in files.map(|file| file.expect("a file").path()) {
            let bytes = fs::read(&file).expect("a file can be read");
            assert!(catch_unwind(|| body(&bytes)).is_ok(), "{} breaks a law", file.display());
            count += 1;
        }
        assert!(count > 0, "no file in {}", folder.display());
    }
}

#[test]
fn the_seeds_are_what_the_recordings_make() {
    for seed in seeds() {
        let file = corpus().join(seed.target).join(&seed.name);
        let bytes = fs::read(&file).unwrap_or_default();
        let advice = "write it with: cargo xtask fuzz --seed-corpus";
        assert!(bytes == seed.bytes, "{} differs; {advice}", file.display());
    }
}

proptest! {
    #[test]
    fn random_bytes_hold_every_law(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        for target in TARGETS {
            (target.body)(&bytes);
        }
    }
}
