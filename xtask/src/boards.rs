//! Builds the examples for boards that can be bought, linked as they are flashed, without having a
//! board. Each is built from its own folder, whose `.cargo` says what is built for.

use std::process::Command;

use crate::no_std::Toolchain;
use crate::steps::Steps;
use crate::workspace::{cargo, root, target};

/// Builds all of them.
pub(crate) fn run(options: &[String]) -> Result<(), String> {
    if !options.is_empty() {
        return Err(format!("boards takes no options, not {}", options.join(" ")));
    }
    let mut list = Steps::new(STEPS);
    steps(&mut list)?;
    list.print_table();
    Ok(())
}

/// A step for each board.
pub(crate) fn steps(steps: &mut Steps) -> Result<(), String> {
    for (board, chip) in BOARDS {
        let toolchain = Toolchain::find_for(chip)
            .ok_or_else(|| format!("no toolchain for {chip}; `cargo xtask test` sets it up"))?;
        let name = format!("board {board}, {}", toolchain.name());
        steps.command(&name, &mut build(toolchain, board, chip))?;
    }
    Ok(())
}

/// How many steps it takes.
pub(crate) const STEPS: usize = BOARDS.len();

/// What the boards are built for.
pub(crate) fn targets() -> impl Iterator<Item = &'static str> {
    BOARDS.into_iter().map(|(_, chip)| chip)
}

fn build(toolchain: Toolchain, board: &str, chip: &str) -> Command {
    let mut command = cargo(&["build", "--locked", "--release", "--target", chip]);
    command.current_dir(root().join("embedded/boards").join(board));
    command.arg("--target-dir").arg(target().join("boards"));
    toolchain.prepare(&mut command, "core");
    toolchain.prepare_linker(&mut command, chip);
    // Code that clippy never sees; cargo keeps it from packages of others.
    command.env("RUSTFLAGS", "--deny=warnings");
    // Nobody debugs what is built here, and it takes a sixth of the time.
    command.env("CARGO_PROFILE_RELEASE_DEBUG", "false");
    command
}

/// Each by its folder, and what its `.cargo` builds for.
const BOARDS: [(&str, &str); 2] =
    [("rp2040-w5500", "thumbv6m-none-eabi"), ("stm32h7-nucleo", "thumbv7em-none-eabihf")];
