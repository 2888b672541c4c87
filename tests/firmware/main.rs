//! The firmware by hand: `firmware run IMAGE [ARGUMENT...]` boots an image and prints its log.
//! `cargo xtask firmware` builds the images and runs this.

#![cfg(target_os = "linux")]

use std::process::ExitCode;
use std::time::Duration;

use linerate_tests::board::{Board, Setup};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["run", image, ref arguments @ ..] => run(image, arguments),
        _ => {
            eprintln!("usage: firmware run IMAGE [ARGUMENT...]");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Until the image ends, or its reader.
fn run(image: &str, arguments: &[&str]) {
    let board = Board::start(image, Setup { arguments, ..Setup::default() });
    println!("ready: {image} is at {} port {}", board.host, board.port);
    while let Some(line) = board.line(Duration::MAX) {
        println!("{line}");
    }
}
