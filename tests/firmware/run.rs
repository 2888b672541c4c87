//! One image, and its log on standard output.

use std::time::Duration;

use linerate_tests::board::{Board, Setup};

/// Until the image ends, or its reader.
pub(crate) fn run(image: &str, arguments: &[&str]) {
    let board = Board::start(image, Setup { arguments, ..Setup::default() });
    println!("ready: {image} is at {} port {}", board.host, board.port);
    while let Some(line) = board.line(Duration::MAX) {
        println!("{line}");
    }
}
