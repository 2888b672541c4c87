//! The command for Windows: builds linerate.exe with mingw, runs it against stock iperf3 and linerate for
//! Linux under Wine, checks it for ARM64, and packs it.

mod build;
mod manifests;
mod package;

use std::path::Path;
use std::process::Command;

use crate::check_targets;
use crate::no_std::Toolchain;
use crate::setup;
use crate::size::bytes_of;
use crate::steps::Steps;
use crate::wine::Wine;
use crate::workspace::cargo;

pub(crate) use build::{LINKER, Profile, TARGET, folder, release};
use build::{exe, stripped};

/// Sets up, builds and tests; `--release` builds what could be given to others, `--package` packs that,
/// `--arm64` links for the other processor.
pub(crate) fn run(options: &[String]) -> Result<(), String> {
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    match options[..] {
        [] => tested(Profile::Debug),
        ["--release"] => tested(Profile::Release),
        ["--package"] => packed(),
        ["--arm64"] => arm64(),
        _ => {
            let options = options.join(" ");
            Err(format!("windows takes --release, --package or --arm64, not {options}"))
        }
    }
}

fn tested(profile: Profile) -> Result<(), String> {
    let mut list = Steps::new(1 + STEPS);
    list.step("set-up", setup::run)?;
    steps(&mut list, profile)?;
    list.print_table();
    println!();
    if profile == Profile::Release { sizes() } else { tell(&exe(profile)) }
}

fn packed() -> Result<(), String> {
    let mut list = Steps::new(3);
    list.step("set-up", setup::run)?;
    build::step(&mut list, Profile::Release)?;
    list.step("package", package::make)?;
    list.print_table();
    Ok(())
}

/// Builds the program as it is released, and tells its size with and without symbols.
pub(crate) fn sizes() -> Result<(), String> {
    tell(&release()?)?;
    tell(&stripped()?)
}

/// How many steps [`steps`] takes.
pub(crate) const STEPS: usize = 5;

/// The build, the tests under Wine, and the check of what is not built.
pub(crate) fn steps(steps: &mut Steps, profile: Profile) -> Result<(), String> {
    build::step(steps, profile)?;
    steps.step("unit tests for Windows, under Wine", unit_test)?;
    steps.step("Windows build against the others, under Wine", || {
        test(&OWN, profile, "LINERATE_WINDOWS_EXE")
    })?;
    steps.step("suites of linerate with the Windows build, under Wine", || {
        test(&SHARED, profile, "LINERATE_BIN")
    })?;
    check_targets::step(steps, CHECKED)
}

/// Builds for ARM64 and looks at the result; nothing here can run it.
fn arm64() -> Result<(), String> {
    let mut list = Steps::new(3);
    list.step("set-up", setup::run)?;
    build::arm64_step(&mut list)?;
    let program = build::arm64_exe();
    let mut tests =
        cargo(&["test", "--locked", "--package", "linerate-tests", "--test", "windows"]);
    tests.args(["--", "--include-ignored", "imports"]).env("LINERATE_WINDOWS_EXE", &program);
    list.command("imports for ARM64", &mut tests)?;
    list.print_table();
    println!();
    tell(&program)
}

fn unit_test() -> Result<(), String> {
    let wine = Wine::start_own()?;
    let mut tests = build::unit_tests(wine.loader())?;
    wine.prepare(&mut tests);
    succeed(&mut tests)
}

/// Runs suites under Wine, with the program as what a variable names.
fn test(suites: &[&str], profile: Profile, variable: &str) -> Result<(), String> {
    let wine = Wine::start_own()?;
    let mut tests = cargo(&["test", "--locked", "--package", "linerate-tests"]);
    tests.args(suites.iter().flat_map(|suite| ["--test", suite]));
    tests.args(["--", "--include-ignored"]);
    wine.prepare(&mut tests);
    tests.env("LINERATE_WINE", wine.loader()).env(variable, exe(profile));
    succeed(&mut tests)
}

fn succeed(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.status().map_err(|e| format!("cannot start {name}: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("{name}: {status}")) }
}

fn tell(path: &Path) -> Result<(), String> {
    println!("{:>10}  {}", bytes_of(path)?, path.display());
    Ok(())
}

/// What else is said of linerate holds for the Windows build, too. Wine knows one signal, Ctrl-C.
const SHARED: [&str; 4] = ["arguments", "exit_codes", "hostile", "interrupts"];

/// The suites of the Windows build.
const OWN: [&str; 2] = ["windows", "windows_service"];

/// Another processor, and the target of who builds on Windows itself.
pub(crate) const CHECKED: &str = "aarch64-pc-windows-msvc";

/// The toolchain for a target, after set-up.
fn toolchain_for(target: &str) -> Result<Toolchain, String> {
    Toolchain::find_for(target).ok_or_else(|| format!("no toolchain for {target} after set-up"))
}
