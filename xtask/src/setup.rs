//! What the tests need from the system. On Debian, as root, what is missing is installed; anywhere
//! else it is named and the chore stops, because a test that silently lacks its peer proves nothing.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::boards;
use crate::firmware;
use crate::no_std::{self, Toolchain};
use crate::windows::{self, LINKER};
use crate::wine::Wine;
use crate::workspace::{output_of, succeeds};

/// Makes the system ready for the tests, or says what it lacks.
pub(crate) fn run() -> Result<(), String> {
    let missing = missing_packages();
    if missing.is_empty() {
        println!("  nothing is missing");
    } else {
        println!("  missing: {}", missing.join(" "));
        install(&missing)?;
    }
    enable_ipv6_loopback();
    Ok(())
}

/// Whether what a package brings is there, whoever brought it.
type IsPresent = fn() -> bool;

/// Packages by their Debian names.
const NEEDED: [(&str, IsPresent); 8] = [
    ("iperf3", || succeeds(Command::new("iperf3").arg("--version"))),
    ("iproute2", || !cfg!(target_os = "linux") || succeeds(Command::new("ip").arg("-V"))),
    // For the driver of the fuzz targets.
    ("g++", || succeeds(Command::new("c++").arg("--version"))),
    ("rustc-web rust-web-src", || targets().all(|name| Toolchain::find_for(name).is_some())),
    // The linker for chips, and the firmware's board.
    ("lld", || succeeds(Command::new(no_std::LINKER).arg("--version"))),
    ("qemu-system-arm", || succeeds(Command::new(firmware::QEMU).arg("--version"))),
    ("gcc-mingw-w64-x86-64", || succeeds(Command::new(LINKER).arg("--version"))),
    ("wine64 wine", || Wine::find().is_some()),
];

/// What is built for beside this machine.
fn targets() -> impl Iterator<Item = &'static str> {
    boards::targets().chain([no_std::TARGET, firmware::TARGET, windows::TARGET, windows::CHECKED])
}

fn missing_packages() -> Vec<&'static str> {
    NEEDED
        .iter()
        .filter(|(_, present)| !present())
        .flat_map(|(packages, _)| packages.split(' '))
        .collect()
}

fn install(packages: &[&str]) -> Result<(), String> {
    if !Path::new("/etc/debian_version").exists() || output_of("id", &["-u"]).trim() != "0" {
        return Err(format!(
            "install these first (names as in Debian): {}; in place of rustc-web and rust-web-src, \
             `rustup target add {}` serves",
            packages.join(" "),
            targets().collect::<Vec<_>>().join(" ")
        ));
    }
    apt(&["update", "--quiet"])?;
    let mut args = vec!["install", "--quiet", "--yes", "--no-install-recommends"];
    args.extend(packages);
    apt(&args)
}

fn apt(args: &[&str]) -> Result<(), String> {
    println!("  apt-get {}", args.join(" "));
    let output = Command::new("apt-get")
        .args(args)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .output()
        .map_err(|e| format!("apt-get: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("apt-get {}:\n{}", args.join(" "), String::from_utf8_lossy(&output.stderr)))
}

/// Containers often start with IPv6 off even on the loopback; root can turn it on for itself.
/// Where that is not allowed the IPv6 tests say what is wrong.
fn enable_ipv6_loopback() {
    let switch = "/proc/sys/net/ipv6/conf/lo/disable_ipv6";
    if fs::read_to_string(switch).is_ok_and(|value| value.trim() == "1") {
        let turned_on = fs::write(switch, "0").is_ok();
        println!("  IPv6 on the loopback was off; turned on: {turned_on}");
    }
}
