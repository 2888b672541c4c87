//! The one test command. What it runs is everything that a change can break, cheapest first, so that
//! a slip shows within seconds; nothing of it is optional and nothing is kept outside the checkout.

use std::process::Command;

use crate::boards;
use crate::firmware;
use crate::fuzz;
use crate::no_std::{self, Toolchain};
use crate::setup;
use crate::steps::Steps;
use crate::windows::{self, Profile};
use crate::workspace::{cargo, target};

/// Runs every check; `--long` gives the random and real-time tests more room.
pub(crate) fn run(options: &[String]) -> Result<(), String> {
    let long = match options {
        [] => false,
        [option] if option == "--long" => true,
        other => return Err(format!("test takes only --long, not {}", other.join(" "))),
    };
    let mut steps =
        Steps::new(8 + boards::STEPS + firmware::STEPS + windows::STEPS + usize::from(long));
    steps.step("set-up", setup::run)?;
    steps.command("format", &mut cargo(&["fmt", "--check"]))?;
    steps.command("format of the firmware", &mut firmware::format())?;
    steps.command("clippy", &mut clippy())?;
    steps.command("documentation", &mut documentation())?;
    steps.command("linerate command", &mut cargo(&BUILD_COMMAND))?;
    steps.command("unit, property, virtual-time and interop tests", &mut tests(long))?;
    let toolchain = Toolchain::find().ok_or("no toolchain for the no_std check after set-up")?;
    let (name, mut check) = no_std::check(toolchain);
    steps.command(&name, &mut check)?;
    boards::steps(&mut steps)?;
    firmware::steps(&mut steps)?;
    windows::steps(&mut steps, Profile::Debug)?;
    if long {
        steps.step("fuzz targets", || fuzz::fuzz(&fuzz::targets()?, FUZZ_SECONDS))?;
    }
    steps.print_table();
    Ok(())
}

/// For each target.
const FUZZ_SECONDS: u32 = 120;

fn clippy() -> Command {
    let mut command = cargo(&["clippy", "--locked", "--workspace", "--all-targets"]);
    command
        .args(ALL_ADAPTERS)
        .args(["--features", "linerate-tests/firmware"])
        .args(["--", "-D", "warnings"]);
    command
}

fn documentation() -> Command {
    let mut command = cargo(&["doc", "--locked", "--workspace", "--no-deps"]);
    command.args(ALL_ADAPTERS).env("RUSTDOCFLAGS", "-D warnings");
    command
}

/// What the chips' stacks add that no default has.
const ALL_ADAPTERS: [&str; 2] = ["--features", "linerate-embedded/embassy-net"];

const BUILD_COMMAND: [&str; 6] =
    ["build", "--locked", "--package", "linerate", "--bin", "linerate"];

/// The suites find the command by `LINERATE_BIN`, and look at `LINERATE_LONG` for how long they may
/// take.
fn tests(long: bool) -> Command {
    let mut command = cargo(&["test", "--locked", "--workspace"]);
    command.args(ALL_ADAPTERS);
    let name = format!("linerate{}", std::env::consts::EXE_SUFFIX);
    command.env("LINERATE_BIN", target().join("debug").join(name));
    if long {
        command.env("LINERATE_LONG", "1").env("PROPTEST_CASES", "4096");
    }
    command
}
