//! What the images cost, counted: instructions for each byte and datagram (QEMU's clock goes by them),
//! flash, memory and stack. All of it stands in a table of the repository, which the figures are held
//! against; what grows past the leeway fails.

use std::fmt::Write;
use std::path::Path;

use linerate_tests::board::{Board, Setup, path_of};

use crate::bench::STACKS;
use crate::elf;
use crate::load::{Image, Kind};

/// Measures all images, and holds the figures against the table, or writes them into it.
pub(crate) fn cost(writes: bool) -> Result<(), String> {
    let images = STACKS.iter().flat_map(|(_, images)| images);
    let found = images.map(figures_of).collect::<Result<Vec<_>, _>>()?.concat();
    let path = Path::new(TABLE);
    if writes {
        std::fs::write(path, table(&found)).map_err(|why| format!("{TABLE}: {why}"))?;
    }
    let text = std::fs::read_to_string(path).map_err(|why| format!("{TABLE}: {why}"))?;
    let mut grown = Vec::new();
    for Figure { image, what, value, leeway_percent } in &found {
        let kept = kept(&text, image, what);
        let change = kept.map(|kept| (value / kept - 1.0) * 100.0);
        let shown = change.map_or("new".to_owned(), |change| format!("{change:+.1} %"));
        println!("{image:16} {what:36} {value:>10.2} {shown:>10}");
        if change.is_none_or(|change| change > *leeway_percent) {
            grown.push(format!("{image}: {what}, which may grow by {leeway_percent} %"));
        }
    }
    if grown.is_empty() {
        return crate::sizes::sizes();
    }
    let grown = grown.join("\n  ");
    Err(format!(
        "above {TABLE}:\n  {grown}\n\
         if it must be, `cargo xtask firmware cost --write` writes the new figures"
    ))
}

/// One line of the table.
#[derive(Clone)]
struct Figure {
    image: &'static str,
    what: String,
    value: f64,
    /// What it may grow by.
    leeway_percent: f64,
}

fn figures_of(image: &Image) -> Result<Vec<Figure>, String> {
    let name = image.name();
    let figure = |what: &str, value: f64, leeway_percent| Figure {
        image: name,
        what: what.to_owned(),
        value,
        leeway_percent,
    };
    let setup = Setup { counts_instructions: true, ..Setup::default() };
    let board = Board::start(name, setup);
    let mut figures = Vec::new();
    let mut stack_bytes = 0;
    for kind in Kind::ALL {
        let mut busy_before = 0.0;
        // What a test moved, and its instructions; of the first it is not known where they began.
        let mut test = |asked: u32| {
            let measured = image.run(&board, kind, asked, MEGABITS);
            let costs = board.costs();
            stack_bytes = costs.stack_bytes;
            let busy = costs.busy.as_nanos() as f64;
            (kind.count(&measured) as f64, busy - std::mem::replace(&mut busy_before, busy))
        };
        test(few(kind));
        let mut found = Vec::new();
        for _ in 0..MOST_ROUNDS {
            // What a test costs by itself is in both, and so taken away.
            let (small, large) = (test(few(kind)), test(many(kind)));
            let (more, instructions) = (large.0 - small.0, large.1 - small.1);
            // Where the host is too busy, datagrams do not arrive and a test takes long by itself.
            if more * 2.0 > f64::from(many(kind) - few(kind)) && instructions > 0.0 {
                found.push(instructions / more);
            }
            if found.len() == ROUNDS {
                break;
            }
        }
        // What disturbs makes more of it.
        let each = found.into_iter().reduce(f64::min).ok_or_else(|| {
            format!("{name}: too little of what was sent arrived to count a {}", kind.name())
        })?;
        let what = format!("instructions a {}", kind.name());
        figures.push(figure(&what, each, leeway_percent(name, kind)));
    }
    let size = elf::size_of(&path_of(name));
    figures.push(figure("bytes of flash", size.flash_bytes.into(), EXACT_PERCENT));
    figures.push(figure("bytes of static memory", size.memory_bytes.into(), EXACT_PERCENT));
    figures.push(figure("bytes of the deepest stack", stack_bytes as f64, EXACT_PERCENT));
    Ok(figures)
}

/// How many frames wait when the core wakes is the host's doing. Where they are taken all at once, or are
/// too many, it changes what each of them costs.
fn leeway_percent(image: &str, kind: Kind) -> f64 {
    match kind {
        Kind::ReceivedBytes if image.contains("embassy") => ROUGH_PERCENT,
        Kind::ReceivedDatagrams => ROUGH_PERCENT,
        _ => EXACT_PERCENT,
    }
}

const fn few(kind: Kind) -> u32 {
    match kind {
        Kind::ReceivedBytes | Kind::SentBytes => 128 << 10,
        Kind::ReceivedDatagrams | Kind::SentDatagrams => 200,
    }
}

const fn many(kind: Kind) -> u32 {
    match kind {
        Kind::ReceivedBytes | Kind::SentBytes => 8 << 20,
        Kind::ReceivedDatagrams => 1000,
        Kind::SentDatagrams => 2000,
    }
}

fn table(figures: &[Figure]) -> String {
    let mut text = HEAD.to_owned();
    for Figure { image, what, value, leeway_percent } in figures {
        let _ = writeln!(text, "| {image} | {what} | {value:.2} | {leeway_percent} % |");
    }
    text
}

/// What the table has for a figure.
pub(crate) fn kept(table: &str, image: &str, what: &str) -> Option<f64> {
    let begin = format!("| {image} | {what} | ");
    let row = table.lines().find_map(|line| line.strip_prefix(&begin))?;
    row.split(' ').next()?.parse().ok()
}

pub(crate) const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../embedded/firmware/COST.md");
/// So few datagrams that none are dropped, which would cost something, too.
const MEGABITS: u32 = 15;
/// The least of so many is what something costs.
const ROUNDS: usize = 2;
/// So many are tried.
const MOST_ROUNDS: usize = 6;
const EXACT_PERCENT: f64 = 5.0;
const ROUGH_PERCENT: f64 = 30.0;
const HEAD: &str = "# What the firmware costs

Written by `cargo xtask firmware cost --write`; `cargo xtask test` fails when a figure grows by more than
it may. Instructions are counted by QEMU (`-icount shift=0`) while the core does not sleep: those of a large
test less those of a small one, by what the large one moved more, so that what a test costs by itself is
not in them; the less of two. Datagrams have 1400 bytes. Flash is all that is loaded, memory all that is static, the stack
what lost its paint in these tests.

| image | what | figure | may grow by |
|---|---|---|---|
";
