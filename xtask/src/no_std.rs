//! Compiles the engine and its adapters for microcontrollers that have no operating system, with all
//! their features: the proof that they need no `std`, no allocator and no more of a processor than the
//! smallest has. It is a check, since what links is proven by the programs for boards. With an installed
//! target library where rustup has one, else by building the language's own `core` from Debian's complete
//! toolchain.

use std::path::Path;
use std::process::Command;

use crate::workspace::{cargo, output_of, target};

/// The smallest RISC-V, which cannot compare and swap. Programs for Cortex-M0, M3 and M7 are linked
/// ([`boards`](crate::boards), the firmware), which is more than a check.
pub(crate) const TARGET: &str = "riscv32imc-unknown-none-elf";

/// How code for another target can be made here.
#[derive(Clone, Copy)]
pub(crate) enum Toolchain {
    /// The running toolchain has the target's library.
    Installed,
    /// Debian's compiler and the library source that belongs to it, which must be of one version.
    BuildStd,
}

impl Toolchain {
    /// The better way to [`TARGET`] that is open here.
    pub(crate) fn find() -> Option<Self> {
        Self::find_for(TARGET)
    }

    /// The better way to `target` that is open here.
    pub(crate) fn find_for(target: &str) -> Option<Self> {
        let installed = output_of("rustup", &["target", "list", "--installed"]);
        if installed.lines().any(|line| line == target) {
            return Some(Self::Installed);
        }
        let complete = Path::new(RUSTC).exists() && Path::new(LIBRARY_SOURCE).exists();
        complete.then_some(Self::BuildStd)
    }

    /// Lets a cargo command build with it, `parts` of the library included where they have to be.
    pub(crate) fn prepare(self, command: &mut Command, parts: &str) {
        if matches!(self, Self::BuildStd) {
            command.arg(format!("-Zbuild-std={parts}"));
            command.env("RUSTC", RUSTC).env("RUSTC_BOOTSTRAP", "1");
        }
    }

    /// Lets a cargo command link programs for the chip `target` too. Debian's compiler comes without the
    /// linker that rustup's brings.
    pub(crate) fn prepare_linker(self, command: &mut Command, target: &str) {
        if matches!(self, Self::BuildStd) {
            let name = target.to_uppercase().replace('-', "_");
            command.env(format!("CARGO_TARGET_{name}_LINKER"), LINKER);
        }
    }

    /// What it builds with, for the list of steps.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Installed => "with the installed target library",
            Self::BuildStd => "with the library built from source",
        }
    }
}

/// The check, and what it is called in the list of steps.
pub(crate) fn check(toolchain: Toolchain) -> (String, Command) {
    let mut command = cargo(&["check", "--locked", "--all-features"]);
    command.args(["--package", "linerate-core", "--package", "linerate-embedded"]);
    command.args(["--target", TARGET, "--target-dir"]).arg(target().join("no-std"));
    toolchain.prepare(&mut command, "core");
    (format!("no_std check, {}", toolchain.name()), command)
}

/// LLVM's linker as Debian has it.
pub(crate) const LINKER: &str = "ld.lld";
const RUSTC: &str = "/usr/bin/rustc";
const LIBRARY_SOURCE: &str = "/usr/lib/rustlib/src/rust/library/core/Cargo.toml";
