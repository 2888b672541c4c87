//! Throughput of the servers beside that of bare loops on the same stack, driver and buffers, in
//! alternation, so that what else the machine does meets both.

use linerate_tests::board::{Board, Setup};

use crate::load::{Image, Kind};

/// Prints the table.
pub(crate) fn bench(runs: usize) {
    println!("Mbit/s, median of {runs} runs (lowest to highest)");
    println!("{:10} {:18} {:>22} {:>22} {:>6}", "stack", "", "server", "bare loop", "ratio");
    for (stack, images) in STACKS {
        let boards = images.map(|image| Board::start(image.name(), Setup::default()));
        for kind in Kind::ALL {
            let mut rates = [Vec::new(), Vec::new()];
            for _ in 0..runs {
                for ((image, board), rates) in images.iter().zip(&boards).zip(&mut rates) {
                    let measured = image.run(board, kind, count(kind), MEGABITS);
                    let bits = (measured.bytes * 8) as f64;
                    rates.push(bits / measured.duration.as_secs_f64() / 1e6);
                }
            }
            let [server, bare] = rates.map(Rates::of);
            let ratio = server.median / bare.median;
            println!("{stack:10} {:18} {server:>22} {bare:>22} {ratio:>6.2}", kind.name());
        }
    }
}

/// Rates of several runs.
struct Rates {
    lowest: f64,
    median: f64,
    highest: f64,
}

impl Rates {
    fn of(mut rates: Vec<f64>) -> Self {
        rates.sort_by(f64::total_cmp);
        let (lowest, highest) = (rates[0], rates[rates.len() - 1]);
        Self { lowest, median: rates[rates.len() / 2], highest }
    }
}

impl std::fmt::Display for Rates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&format!("{:.0} ({:.0} to {:.0})", self.median, self.lowest, self.highest))
    }
}

/// A second or two of it.
fn count(kind: Kind) -> u32 {
    match kind {
        Kind::ReceivedBytes | Kind::SentBytes => 16 << 20,
        Kind::ReceivedDatagrams => 5000,
        Kind::SentDatagrams => 10_000,
    }
}

/// As many datagrams as the board can just about take.
const MEGABITS: u32 = 60;

/// Each server with the bare loop beside it.
pub(crate) const STACKS: [(&str, [Image; 2]); 2] = [
    ("smoltcp", [Image::Server("smoltcp_server"), Image::Bare("bare_smoltcp")]),
    ("embassy", [Image::Server("embassy_server"), Image::Bare("bare_embassy")]),
];
