//! Builds linerate.exe with mingw, and runs it against stock iperf3 under Wine. The library comes from
//! rustup where its target is installed, else from Debian's source, as for the `no_std` build.

use std::path::PathBuf;
use std::process::Command;

use crate::no_std::Toolchain;
use crate::setup;
use crate::steps::Steps;
use crate::wine::Wine;
use crate::workspace::{cargo, target};

/// How the program is built.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    /// Quickly.
    Debug,
    /// To be fast.
    Release,
}

/// Sets up, builds and tests; `--release` builds what could be given to others.
pub(crate) fn run(options: &[String]) -> Result<(), String> {
    let profile = match options {
        [] => Profile::Debug,
        [option] if option == "--release" => Profile::Release,
        other => return Err(format!("windows takes only --release, not {}", other.join(" "))),
    };
    let mut list = Steps::new(3);
    list.step("set-up", setup::run)?;
    steps(&mut list, profile)?;
    list.print_table();
    println!("\n{}", exe(profile).display());
    Ok(())
}

/// The two steps of it: the build, and the tests under Wine.
pub(crate) fn steps(steps: &mut Steps, profile: Profile) -> Result<(), String> {
    let toolchain =
        Toolchain::find_for(TARGET).ok_or("no toolchain for the Windows build after set-up")?;
    let name = format!("Windows build, {}", toolchain.name());
    steps.command(&name, &mut build(toolchain, profile))?;
    steps.step("Windows build against iperf3, under Wine", || test(profile))
}

/// Panics abort: unwinding would need mingw's own unwinder beside the program.
fn build(toolchain: Toolchain, profile: Profile) -> Command {
    let mut command = cargo(&["build", "--locked", "--package", "linerate", "--bin", "linerate"]);
    command.args(["--target", TARGET, "--target-dir"]).arg(folder());
    toolchain.prepare(&mut command, "std,panic_abort");
    command.env("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER", LINKER);
    // Code that clippy on this machine never sees; cargo keeps it from packages of others.
    command.env("RUSTFLAGS", "--deny=warnings");
    match profile {
        Profile::Debug => command.env("CARGO_PROFILE_DEV_PANIC", "abort"),
        Profile::Release => command.arg("--release").env("CARGO_PROFILE_RELEASE_PANIC", "abort"),
    };
    command
}

fn test(profile: Profile) -> Result<(), String> {
    let wine = Wine::start(&target().join("wine"))?;
    let mut tests = cargo(&["test", "--locked", "--package", "linerate-tests"]);
    tests.args(["--test", "windows", "--test", "windows_service", "--", "--include-ignored"]);
    wine.prepare(&mut tests);
    tests.env("LINERATE_WINE", wine.loader()).env("LINERATE_WINDOWS_EXE", exe(profile));
    let status = tests.status().map_err(|e| format!("cannot start the tests: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("the tests under Wine: {status}")) }
}

fn exe(profile: Profile) -> PathBuf {
    let built = match profile {
        Profile::Debug => "debug",
        Profile::Release => "release",
    };
    folder().join(TARGET).join(built).join("linerate.exe")
}

fn folder() -> PathBuf {
    target().join("windows")
}

/// 64-bit Windows with mingw's C library.
pub(crate) const TARGET: &str = "x86_64-pc-windows-gnu";
/// Mingw's compiler, which links.
pub(crate) const LINKER: &str = "x86_64-w64-mingw32-gcc";
