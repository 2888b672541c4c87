//! Checks that the command compiles for the systems that nothing here can run. A check needs no linker
//! and none of the system's own libraries.

use crate::no_std::Toolchain;
use crate::steps::Steps;
use crate::workspace::{cargo, target};

/// Checks every target.
pub(crate) fn run(options: &[String]) -> Result<(), String> {
    if !options.is_empty() {
        return Err(format!("check-targets takes no options, not {}", options.join(" ")));
    }
    let mut list = Steps::new(COUNT);
    steps(&mut list)?;
    list.print_table();
    Ok(())
}

/// A step for the library and one for the command on each target; a warning is an error.
pub(crate) fn steps(steps: &mut Steps) -> Result<(), String> {
    for name in TARGETS {
        let toolchain = Toolchain::find_for(name)
            .ok_or_else(|| format!("no toolchain for {name}; `cargo xtask test` sets one up"))?;
        for part in PARTS {
            let mut command = cargo(&["rustc", "--locked", "--package", "linerate", part]);
            command.args(["--profile", "check", "--target", name, "--target-dir"]);
            command.arg(target().join("targets"));
            toolchain.prepare(&mut command, "std");
            command.args(["--", "--deny", "warnings"]);
            steps.command(&format!("{name} {part}, {}", toolchain.name()), &mut command)?;
        }
    }
    Ok(())
}

/// How many steps it takes.
pub(crate) const COUNT: usize = TARGETS.len() * PARTS.len();

/// One of each system.
pub(crate) const TARGETS: [&str; 2] = ["x86_64-apple-darwin", "x86_64-unknown-freebsd"];
const PARTS: [&str; 2] = ["--lib", "--bin=linerate"];
