//! The firmware for QEMU's Cortex-M3 board: builds its images, runs one, tests them against stock
//! iperf3, and measures them. It is a workspace of its own, built beside the others in the target
//! folder.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::no_std::Toolchain;
use crate::setup;
use crate::steps::Steps;
use crate::workspace::{cargo, root, target};

/// Runs one of the chores of the firmware.
pub(crate) fn run(options: &[String]) -> Result<(), String> {
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    match options[..] {
        ["build"] => {
            let mut list = Steps::new(1 + BUILDS.len());
            list.step("set-up", setup::run)?;
            builds(&mut list)?;
            list.print_table();
            println!("\n{}", images().display());
            Ok(())
        }
        ["test"] => {
            let mut list = Steps::new(1 + STEPS);
            list.step("set-up", setup::run)?;
            steps(&mut list)?;
            list.print_table();
            Ok(())
        }
        ["run" | "bench" | "cost" | "sizes", ..] => {
            builds(&mut Steps::new(BUILDS.len()))?;
            by_program(&options)
        }
        _ => {
            Err("firmware takes build, test, run IMAGE [ARGUMENT...], bench, cost or sizes"
                .to_owned())
        }
    }
}

/// How many steps [`steps`] takes.
pub(crate) const STEPS: usize = BUILDS.len() + 2;

/// The builds, and the tests of what was built.
pub(crate) fn steps(steps: &mut Steps) -> Result<(), String> {
    builds(steps)?;
    steps.step("firmware against iperf3, in QEMU", test)?;
    steps.step("what the firmware costs", || by_program(&["cost"]))
}

/// One build with its settings; the images of all of them stand in one folder.
struct Build {
    /// Room for so many streams in a test.
    streams: &'static str,
    binaries: &'static [&'static str],
    /// What their images are called after the binary's name.
    suffix: &'static str,
}

/// Servers with room for one stream are what is measured; with room for two there is everything else.
const BUILDS: [Build; 2] = [
    Build {
        streams: "1",
        binaries: &["smoltcp_server", "embassy_server", "bare_smoltcp", "bare_embassy"],
        suffix: "",
    },
    Build {
        streams: "2",
        binaries: &["smoltcp_server", "embassy_server", "smoltcp_client", "embassy_client"],
        suffix: "_2",
    },
];

fn builds(steps: &mut Steps) -> Result<(), String> {
    let toolchain =
        Toolchain::find_for(TARGET).ok_or("no toolchain for the firmware after set-up")?;
    for Build { streams, binaries, suffix } in BUILDS {
        let mut command = cargo(&["build", "--locked", "--release"]);
        command.args(binaries.iter().flat_map(|binary| ["--bin", binary]));
        command.current_dir(root().join("embedded/firmware"));
        command.arg("--target-dir").arg(folder()).env("LINERATE_STREAMS", streams);
        prepare(toolchain, &mut command);
        steps.command(&format!("firmware for {streams} stream(s)"), &mut command)?;
        keep(binaries, suffix)?;
    }
    Ok(())
}

/// The library is always built from source, since that is how panics become small; the manifest's
/// folder says so and needs a compiler that is let do it.
fn prepare(toolchain: Toolchain, command: &mut Command) {
    match toolchain {
        Toolchain::Installed => drop(command.env("RUSTC_BOOTSTRAP", "1")),
        Toolchain::BuildStd => toolchain.prepare(command, "core"),
    }
}

/// Puts what was built where the next build does not reach.
fn keep(binaries: &[&str], suffix: &str) -> Result<(), String> {
    let built = folder().join(TARGET).join("release");
    let kept = fs::create_dir_all(images()).and_then(|()| {
        let mut binaries = binaries.iter();
        binaries.try_for_each(|binary| {
            let image = images().join(format!("{binary}{suffix}"));
            fs::copy(built.join(binary), image).map(drop)
        })
    });
    kept.map_err(|why| format!("{}: {why}", images().display()))
}

fn test() -> Result<(), String> {
    let mut tests = cargo(&["test", "--locked", "--package", "linerate-tests"]);
    tests.args(["--features", "firmware"]);
    succeed(tests.args(["--test", "firmware", "--", "--include-ignored"]))
}

/// Checks how its sources look; the root's own check does not reach them.
pub(crate) fn format() -> Command {
    let mut command = cargo(&["fmt", "--check"]);
    command.current_dir(root().join("embedded/firmware"));
    command
}

/// What the program `firmware` of the tests' package does.
fn by_program(options: &[&str]) -> Result<(), String> {
    let mut program = cargo(&["run", "--quiet", "--locked", "--package", "linerate-tests"]);
    program.args(["--features", "firmware"]);
    succeed(program.args(["--bin", "firmware", "--"]).args(options))
}

fn succeed(command: &mut Command) -> Result<(), String> {
    let status = command.env("LINERATE_FIRMWARE", images()).status();
    let status = status.map_err(|why| format!("cannot start cargo: {why}"))?;
    if status.success() { Ok(()) } else { Err(format!("the firmware: {status}")) }
}

/// A Cortex-M3.
pub(crate) const TARGET: &str = "thumbv7m-none-eabi";
/// The emulator of its board.
pub(crate) const QEMU: &str = "qemu-system-arm";

fn images() -> PathBuf {
    folder().join("images")
}

fn folder() -> PathBuf {
    target().join("firmware")
}
