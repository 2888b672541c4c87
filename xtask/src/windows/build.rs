//! The builds. The library comes from rustup where its target is installed, else from Debian's source, as
//! for the `no_std` build.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{succeed, toolchain_for};
use crate::no_std::Toolchain;
use crate::size::bytes_of;
use crate::steps::Steps;
use crate::workspace::{cargo, succeeds, target};

/// How the program is built.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    /// Quickly.
    Debug,
    /// To be fast.
    Release,
}

/// The build as a step of a chore.
pub(super) fn step(steps: &mut Steps, profile: Profile) -> Result<(), String> {
    let toolchain = toolchain_for(TARGET)?;
    let name = format!("Windows build, {}", toolchain.name());
    steps.command(&name, &mut build(toolchain, profile, TARGET, Path::new(LINKER)))
}

/// The unit tests of the package `linerate-windows`, run by `loader`: what they hold to is Windows's own.
pub(super) fn unit_tests(loader: &str) -> Result<Command, String> {
    let toolchain = toolchain_for(TARGET)?;
    let mut command = cargo(&["test", "--locked", "--package", "linerate-windows", "--lib"]);
    command.args(["--target", TARGET, "--target-dir"]).arg(folder());
    toolchain.prepare(&mut command, "std,panic_abort,test");
    if matches!(toolchain, Toolchain::BuildStd) {
        command.arg("-Zpanic-abort-tests");
    }
    prepare(&mut command, TARGET, Path::new(LINKER));
    command.env(variable(TARGET, "RUNNER"), loader).env("CARGO_PROFILE_DEV_PANIC", "abort");
    Ok(command)
}

/// The program as it is released, built if it has to be.
pub(crate) fn release() -> Result<PathBuf, String> {
    let toolchain = toolchain_for(TARGET)?;
    succeed(&mut build(toolchain, Profile::Release, TARGET, Path::new(LINKER)))?;
    Ok(exe(Profile::Release))
}

/// The released program without what only debuggers read, made of the last release build.
pub(super) fn stripped() -> Result<PathBuf, String> {
    let to = package_folder()?.join("linerate.exe");
    let mut command = Command::new(STRIP);
    succeed(command.arg("-o").arg(&to).arg(exe(Profile::Release)))?;
    match bytes_of(&to)? {
        bytes if bytes > MOST_BYTES => Err(format!("{bytes} bytes, {MOST_BYTES} are the most")),
        _ => Ok(to),
    }
}

/// Where what is given to others is made.
pub(super) fn package_folder() -> Result<PathBuf, String> {
    let path = folder().join("package");
    fs::create_dir_all(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(path)
}

/// The build for ARM64 as a step, linked by Zig.
pub(super) fn arm64_step(steps: &mut Steps) -> Result<(), String> {
    let toolchain = toolchain_for(ARM64)?;
    let linker = arm64_linker()?;
    let name = format!("ARM64 build, {}", toolchain.name());
    steps.command(&name, &mut build(toolchain, Profile::Debug, ARM64, &linker))
}

/// The program that it makes.
pub(super) fn arm64_exe() -> PathBuf {
    folder().join(ARM64).join("debug/linerate.exe")
}

/// Panics abort: unwinding would need mingw's own unwinder beside the program.
fn build(toolchain: Toolchain, profile: Profile, target: &str, linker: &Path) -> Command {
    let mut command = cargo(&["build", "--locked", "--package", "linerate", "--bin", "linerate"]);
    command.args(["--target", target, "--target-dir"]).arg(folder());
    toolchain.prepare(&mut command, "std,panic_abort");
    prepare(&mut command, target, linker);
    match profile {
        Profile::Debug => command.env("CARGO_PROFILE_DEV_PANIC", "abort"),
        Profile::Release => command.arg("--release").env("CARGO_PROFILE_RELEASE_PANIC", "abort"),
    };
    command
}

fn prepare(command: &mut Command, target: &str, linker: &Path) {
    command.env(variable(target, "LINKER"), linker);
    // Code that clippy on this machine never sees; cargo keeps it from packages of others.
    command.env("RUSTFLAGS", "--deny=warnings");
}

/// Cargo's variable about a target.
fn variable(target: &str, what: &str) -> String {
    format!("CARGO_TARGET_{}_{what}", target.to_uppercase().replace('-', "_"))
}

/// A script that links by Zig, which brings mingw's libraries for every processor under names of its own.
fn arm64_linker() -> Result<PathBuf, String> {
    let zig = ZIGS.into_iter().find(|zig| {
        let mut words = zig.split(' ');
        let mut command = Command::new(words.next().unwrap_or_default());
        succeeds(command.args(words).arg("version"))
    });
    let zig = zig.ok_or("linking for ARM64 needs Zig; `pip install ziglang` serves")?;
    let path = folder().join("arm64-linker");
    let script = format!(
        "#!/bin/sh\nfor word do\n  shift\n  case \"$word\" in\n    {UNKNOWN_TO_ZIG}) ;;\n    \
         *) set -- \"$@\" \"$word\" ;;\n  esac\ndone\nexec {zig} cc -target aarch64-windows-gnu \"$@\"\n"
    );
    let written = fs::create_dir_all(folder()).and_then(|()| fs::write(&path, script));
    written
        .and_then(|()| make_executable(&path))
        .map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(path)
}

#[cfg(unix)]
fn make_executable(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;

    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn make_executable(_path: &Path) -> std::io::Result<()> {
    Ok(())
}

/// Where the program is once it is built.
pub(super) fn exe(profile: Profile) -> PathBuf {
    let built = match profile {
        Profile::Debug => "debug",
        Profile::Release => "release",
    };
    folder().join(TARGET).join(built).join("linerate.exe")
}

/// Where all builds for other systems go.
pub(crate) fn folder() -> PathBuf {
    target().join("windows")
}

/// 64-bit Windows with mingw's C library.
pub(crate) const TARGET: &str = "x86_64-pc-windows-gnu";
/// The same on ARM, with LLVM's tools.
const ARM64: &str = "aarch64-pc-windows-gnullvm";
/// Mingw's compiler, which links, and what comes with it.
pub(crate) const LINKER: &str = "x86_64-w64-mingw32-gcc";
const STRIP: &str = "x86_64-w64-mingw32-strip";
/// Of the program that is given to others: what it grows by is to be seen.
const MOST_BYTES: u64 = 5_000_000;
/// What Zig decides by itself.
const UNKNOWN_TO_ZIG: &str = "-nolibc|--unwindlib=none|-lmsvcrt|-lmingw32|-lmingwex|-lgcc_eh";
/// As a program of its own, and as Python's package.
const ZIGS: [&str; 2] = ["zig", "python3 -m ziglang"];
