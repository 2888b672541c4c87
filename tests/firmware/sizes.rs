//! What the images take on the board, and what of it is linerate, within budgets.

use linerate_tests::board::path_of;

use crate::bench::STACKS;
use crate::cost::{TABLE, kept};
use crate::elf::{Size, size_of};
use crate::load::Image;

/// Prints the table; an error if a budget is exceeded.
pub(crate) fn sizes() -> Result<(), String> {
    let table = std::fs::read_to_string(TABLE).map_err(|why| format!("{TABLE}: {why}"))?;
    let mut exceeded = Vec::new();
    println!("{:24} {:>8} {:>8} {:>8}  bytes", "image", "flash", "static", "stack");
    for (stack, [server, bare]) in STACKS {
        let [server, bare] = [server, bare].map(|image| Taken::of(image, &table));
        // What an image with the engine takes beyond one that moves the same bytes by the same stack: the
        // engine, its adapter, and whatever only they use (JSON, formatting, the words of the log).
        let engine = Taken {
            name: "  of it linerate",
            flash_bytes: server.flash_bytes - bare.flash_bytes,
            static_bytes: server.static_bytes - bare.static_bytes - DOORS_BYTES,
            stack_bytes: server.stack_bytes - bare.stack_bytes,
        };
        [&server, &engine, &bare].iter().for_each(|taken| taken.print());
        if stack == "smoltcp" {
            for (what, bytes, most) in [
                ("flash of the whole server", server.flash_bytes, 96 << 10),
                ("memory of it with its stack", server.static_bytes + server.stack_bytes, 48 << 10),
                ("flash of linerate", engine.flash_bytes, 56 << 10),
                ("static memory of linerate", engine.static_bytes, 4 << 10),
            ] {
                println!("{what:30} {:6.1} of {:4.1} KiB", kib(bytes), kib(most));
                if bytes > most {
                    exceeded.push(what);
                }
            }
        }
    }
    if exceeded.is_empty() { Ok(()) } else { Err(format!("too large: {}", exceeded.join(", "))) }
}

/// What something takes.
struct Taken {
    name: &'static str,
    flash_bytes: u32,
    static_bytes: u32,
    stack_bytes: u32,
}

impl Taken {
    /// The stack is known from the runs of all kinds that made the table.
    fn of(image: Image, table: &str) -> Self {
        let Size { flash_bytes, memory_bytes } = size_of(&path_of(image.name()));
        let stack = kept(table, image.name(), "bytes of the deepest stack").unwrap_or(0.0);
        let stack_bytes = stack as u32;
        Self { name: image.name(), flash_bytes, static_bytes: memory_bytes, stack_bytes }
    }

    fn print(&self) {
        let Self { name, flash_bytes, static_bytes, stack_bytes } = self;
        println!("{name:24} {flash_bytes:>8} {static_bytes:>8} {stack_bytes:>8}");
    }
}

fn kib(bytes: u32) -> f64 {
    f64::from(bytes) / 1024.0
}

/// What a server has beyond the sockets of a bare loop: two for control connections, each of 408 bytes
/// in smoltcp, with a buffer of 1 KiB each way.
const DOORS_BYTES: u32 = 2 * (408 + 2 * 1024);
