//! Every chore of this workspace as one command: `cargo xtask CHORE`. Each chore is a file of its
//! own; this one only says which there are.

mod bench;
mod boards;
mod check_targets;
mod firmware;
mod fuzz;
mod lines;
mod link;
mod no_std;
mod setup;
mod size;
mod soak;
mod steps;
mod test;
mod windows;
mod wine;
mod workspace;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match args.split_first() {
        Some((chore, options)) if chore == "test" => test::run(options),
        Some((chore, options)) if chore == "bench" => bench::run(options),
        Some((chore, options)) if chore == "fuzz" => fuzz::run(options),
        Some((chore, options)) if chore == "size" => size::run(options),
        Some((chore, options)) if chore == "soak" => soak::run(options),
        Some((chore, options)) if chore == "link" => link::run(options),
        Some((chore, options)) if chore == "firmware" => firmware::run(options),
        Some((chore, options)) if chore == "check-targets" => check_targets::run(options),
        Some((chore, options)) if chore == "boards" => boards::run(options),
        Some((chore, options)) if chore == "windows" => windows::run(options),
        _ => Err(USAGE.to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

const USAGE: &str = "which chore?

cargo xtask test [--long]
    sets up what it needs, then checks everything that a change can break
cargo xtask bench [--runs N] [--seconds N] [--rows PART,...] [--congestion NAME,...]
                  [--link loopback|veth] [--peer IPERF3] [--own LINERATE] [--json]
    linerate against iperf3, in alternation: rate, loss, CPU, memory, evenness
cargo xtask bench --wine [--runs N] [--seconds N] [--rows PART,...] [--own EXE] [--json]
    linerate.exe under Wine against linerate for Linux, in alternation
cargo xtask bench --check [--rows ID,...] [--own LINERATE] [--json]
    cases of pacing, fairness and idleness that linerate alone passes or fails
cargo xtask bench --micro | --instructions
    what the engine's hot path costs, in nanoseconds or, by callgrind, in instructions
cargo xtask fuzz [TARGET...] [--seconds N]
    feeds the targets of tests/corpus with inputs that reach ever more of the code
cargo xtask fuzz TARGET --replay FILE
    one input again, with what it breaks
cargo xtask fuzz [TARGET...] --minimize
    takes what earlier runs found into the corpus, as little as reaches the same
cargo xtask fuzz --seed-corpus
    writes the seeds that the recordings make
cargo xtask size
    bytes of the engine's types, stack of its deepest calls, firmware, linerate.exe, lines of each adapter
cargo xtask soak [--tests N | --hours H]
    one server under short tests of all kinds; fails if its memory, descriptors or threads grow
cargo xtask link [OPTION...] -- COMMAND...
    a command across a link that delays, loses, doubles, reorders; alone, it tells its options
cargo xtask boards
    builds the examples for boards that can be bought, without having one
cargo xtask windows [--release]
    builds linerate.exe with mingw and runs it against iperf3 and linerate for Linux under Wine
cargo xtask windows --package
    builds it as it is released and packs it, with the manifests of winget and scoop
cargo xtask windows --arm64
    builds it for ARM64, linked by Zig, and looks at what it imports
cargo xtask firmware build | test | run IMAGE [ARGUMENT...] | bench | cost [--write] | sizes
    builds the firmware for QEMU's Cortex-M3 board and runs it against iperf3; one image, with its log;
    servers beside bare loops: throughput, instructions for each byte and datagram, flash and memory
cargo xtask check-targets
    compiles the command for the systems that nothing here can run";
