//! How large things are: the engine's types, the stack of its deepest calls in both builds, the firmware,
//! the program for Windows, and the lines of each adapter. The first two are told by the program `sizes` of
//! the tests' package.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::firmware;
use crate::lines;
use crate::windows;
use crate::workspace::{cargo, target};

/// Prints all of it.
pub(crate) fn run(options: &[String]) -> Result<(), String> {
    if !options.is_empty() {
        return Err(format!("size takes no options, not {}", options.join(" ")));
    }
    for (profile, folder) in [("dev", "debug"), ("release", "release")] {
        let build =
            ["build", "--quiet", "--locked", "--package", "linerate-tests", "--bin", "sizes"];
        succeed(cargo(&build).args(["--profile", profile]))?;
        let name = format!("sizes{}", std::env::consts::EXE_SUFFIX);
        let program = target().join(folder).join(name);
        if profile == "dev" {
            succeed(Command::new(&program).arg("types"))?;
        }
        println!("\nDeepest calls in core, {folder} build:");
        succeed(Command::new(&program).arg("stack"))?;
    }
    println!("\nFirmware:");
    firmware::run(&["sizes".to_owned()])?;
    println!("\nProgram for Windows, release build:");
    windows::sizes()?;
    println!("\nFor ARCHITECTURE.md:\n\n{}", lines::table()?);
    Ok(())
}

fn succeed(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.status().map_err(|e| format!("cannot start {name}: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("{name}: {status}")) }
}

/// The size of a file.
pub(crate) fn bytes_of(path: &Path) -> Result<u64, String> {
    let found = fs::metadata(path).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(found.len())
}
