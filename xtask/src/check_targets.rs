//! Checks that everything for hosts compiles for the systems that are not this one, without a warning.
//! A check needs no linker and none of the system's own libraries.

use std::process::Command;

use crate::no_std::Toolchain;
use crate::steps::Steps;
use crate::windows;
use crate::workspace::cargo;

/// Checks every target.
pub(crate) fn run(options: &[String]) -> Result<(), String> {
    if !options.is_empty() {
        return Err(format!("check-targets takes no options, not {}", options.join(" ")));
    }
    let mut steps = Steps::new(TARGETS.len());
    TARGETS.iter().try_for_each(|name| step(&mut steps, name))?;
    steps.print_table();
    Ok(())
}

/// Checks one target as a step of a chore.
pub(crate) fn step(steps: &mut Steps, name: &str) -> Result<(), String> {
    let toolchain = Toolchain::find_for(name)
        .ok_or_else(|| format!("no toolchain for {name}; `rustup target add` it"))?;
    steps.step(&format!("check for {name}, {}", toolchain.name()), || {
        PARTS.iter().try_for_each(|(package, part)| {
            let status = check(toolchain, name, package, part).status();
            let status = status.map_err(|e| format!("cannot start cargo: {e}"))?;
            if status.success() { Ok(()) } else { Err(format!("{package} {part}: {status}")) }
        })
    })
}

/// What `cargo check` does, with warnings of this part alone denied.
fn check(toolchain: Toolchain, name: &str, package: &str, part: &str) -> Command {
    let mut command = cargo(&["rustc", "--locked", "--profile", "check"]);
    command.args(["--package", package, part, "--target", name]);
    // Beside the Windows build, which has made what runs on this machine already.
    command.arg("--target-dir").arg(windows::folder());
    toolchain.prepare(&mut command, "std");
    command.args(["--", "--deny", "warnings"]);
    command
}

/// One of each system; of Windows also what users build there, which needs Microsoft's linker.
const TARGETS: [&str; 5] = [
    "x86_64-apple-darwin",
    "x86_64-unknown-freebsd",
    windows::TARGET,
    "x86_64-pc-windows-msvc",
    windows::CHECKED,
];

const PARTS: [(&str, &str); 3] =
    [("linerate-windows", "--lib"), ("linerate", "--lib"), ("linerate", "--bin=linerate")];
