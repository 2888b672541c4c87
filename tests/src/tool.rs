//! The programs under test, and where they are found. linerate is what `LINERATE_BIN` names, else
//! what cargo builds here; iperf3 is the system's own; the Windows build is what
//! `LINERATE_WINDOWS_EXE` names. A Windows program is run by `LINERATE_WINE`; `cargo xtask windows` sets
//! both, and lets some suites have the Windows build for linerate.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

/// A program that can play either role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// The command of this workspace.
    Linerate,
    /// The same command built for Windows, under Wine.
    LinerateWindows,
    /// The stock iperf3 of the system.
    Iperf3,
}

impl Tool {
    /// A command that starts the program, without options.
    ///
    /// # Panics
    ///
    /// When linerate cannot be built, or nothing says where the Windows build is.
    pub fn command(self) -> Command {
        match self {
            Self::Linerate => command(linerate()),
            Self::LinerateWindows => command(&windows_build()),
            Self::Iperf3 => Command::new("iperf3"),
        }
    }

    /// Whether the program can be run here. Where it cannot, the caller skips and this says so aloud;
    /// in continuous integration it is a failure instead, for a test that skips proves nothing.
    ///
    /// # Panics
    ///
    /// When the program is missing and `CI` is set.
    pub fn is_here(self) -> bool {
        let here = self.command().arg("--version").output().is_ok();
        if !here {
            skipped(&format!("{self} is not installed"));
        }
        here
    }
}

/// Says that a test is skipped, and why.
///
/// # Panics
///
/// In continuous integration, where nothing may skip.
pub fn skipped(why: &str) {
    assert!(std::env::var_os("CI").is_none(), "nothing may skip in CI, but {why}");
    eprintln!("skipped: {why}");
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Linerate => "linerate",
            Self::LinerateWindows => "linerate.exe",
            Self::Iperf3 => "iperf3",
        })
    }
}

/// Where the Windows build is.
///
/// # Panics
///
/// When nothing says it.
pub fn windows_build() -> PathBuf {
    variable("LINERATE_WINDOWS_EXE").into()
}

/// Starts a program, one for Windows by Wine where the system is another.
fn command(program: &Path) -> Command {
    if cfg!(windows) || program.extension().is_none_or(|extension| extension != "exe") {
        return Command::new(program);
    }
    let mut command = Command::new(variable("LINERATE_WINE"));
    command.arg(program);
    command
}

fn variable(name: &str) -> OsString {
    std::env::var_os(name)
        .unwrap_or_else(|| panic!("{name} is not set; `cargo xtask windows` runs these tests"))
}

fn linerate() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| match std::env::var_os("LINERATE_BIN") {
        Some(path) => path.into(),
        None => build(&["--package", "linerate", "--bin", "linerate"]),
    })
}

/// Builds one program of this workspace and tells where it is. Cargo hands the path of a binary only
/// to tests of the same package, and that of an example to nobody, so it is asked for it.
///
/// # Panics
///
/// When it cannot be built.
pub fn build(target: &[&str]) -> PathBuf {
    let output = Command::new(env!("CARGO"))
        .arg("build")
        .args(target)
        .args(["--message-format", "json-render-diagnostics"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs, as it ran this test");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
        .expect("cargo names the executable it built")
}
