//! Writes the seeds that the recordings make; files that the fuzzer found stay.

use std::fs;
use std::io;

use linerate_tests::fuzzing::seeds::{corpus, seeds};

fn main() -> io::Result<()> {
    let seeds = seeds();
    for seed in &seeds {
        let folder = corpus().join(seed.target);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(&seed.name), &seed.bytes)?;
    }
    println!("{} seeds in {}", seeds.len(), corpus().display());
    Ok(())
}
