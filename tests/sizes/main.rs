//! Prints what the engine takes: `sizes types` the bytes of its types, `sizes stack` the stack of its
//! deepest calls, as this build makes them. `cargo xtask size` runs both.

use std::process::{Command, ExitCode, Stdio};

use linerate_core::flow::{ReceiveFlow, SendFlow};
use linerate_core::protocol::parameters::ParametersReader;
use linerate_core::protocol::results::ResultsReader;
use linerate_core::session::{ClientSession, ServerSession};
use linerate_core::stats::{Accounts, BUCKETS};
use linerate_embedded::smoltcp::Server;
use linerate_tests::stack::{Caller, Place, SCENARIOS, Scenario};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["types"] => {
            types();
            Ok(())
        }
        ["stack"] => stack(),
        ["calls", name, stack, depth] => calls(name, stack, depth),
        _ => Err("usage: sizes types | stack".to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("sizes: {message}");
            ExitCode::FAILURE
        }
    }
}

/// The types of which there is one per test or per stream, with the room that chips and hosts give
/// them.
fn types() {
    println!("{:34} {:>7} {:>7}", "type", "streams", "bytes");
    for (name, streams, bytes) in [
        ("client's session", "4", size_of::<ClientSession<'_, 4>>()),
        ("client's session", "256", size_of::<ClientSession<'_, 256>>()),
        ("server's session, 64 B of text", "4", size_of::<ServerSession<4, 64>>()),
        ("server's session, 8 KiB of text", "256", size_of::<ServerSession<256, 8192>>()),
        ("  of it accounts", "4", size_of::<Accounts<4>>()),
        ("  of it accounts", "256", size_of::<Accounts<256>>()),
        ("  reader of results", "4", size_of::<ResultsReader<4>>()),
        ("  reader of results", "256", size_of::<ResultsReader<256>>()),
        ("  reader of parameters, 64 B", "", size_of::<ParametersReader<64>>()),
        ("  reader of parameters, 8 KiB", "", size_of::<ParametersReader<8192>>()),
        ("smoltcp server, without buffers", "1", size_of::<Server<1>>()),
        ("smoltcp server, without buffers", "4", size_of::<Server<4>>()),
        ("sending flow, no percentiles", "", size_of::<SendFlow<0>>()),
        ("sending flow of a host", "", size_of::<SendFlow<BUCKETS>>()),
        ("receiving flow, TCP, no percentiles", "", size_of::<ReceiveFlow<0, 0>>()),
        ("receiving flow, window of 448, none", "", size_of::<ReceiveFlow<8, 0>>()),
        ("receiving flow of a host, TCP", "", size_of::<ReceiveFlow<0, BUCKETS>>()),
        ("receiving flow of a host, UDP", "", size_of::<ReceiveFlow<1024, BUCKETS>>()),
    ] {
        println!("{name:34} {streams:>7} {bytes:>7}");
    }
}

/// The stack that each scenario takes: for making the value, and for the deepest call, which is named.
fn stack() -> Result<(), String> {
    println!("{:20} {:>8} {:>8}  KiB; the deepest call", "stack", "to make", "to call");
    for (name, _) in work().into_iter().filter(|(name, _)| name.ends_with(MAKE)) {
        let name = name.trim_end_matches(MAKE);
        let (make, _) = deepest(&format!("{name}{MAKE}"))?;
        let (calls, call) = deepest(name)?;
        let kib = |bytes: usize| bytes as f64 / 1024.0;
        println!("{name:20} {:>8.1} {:>8.1}  {call}", kib(make), kib(calls));
    }
    Ok(())
}

/// All that a child can be asked to do, by name.
fn work() -> Vec<(String, fn(Caller))> {
    let nothing: (String, fn(Caller)) = (NOTHING.to_owned(), |caller| caller.call(NOTHING, || ()));
    let scenarios = SCENARIOS.into_iter().flat_map(|Scenario { name, make, calls }| {
        [(format!("{name}{MAKE}"), make), (name.to_owned(), calls)]
    });
    std::iter::once(nothing).chain(scenarios).collect()
}

/// What all else is compared with.
const NOTHING: &str = "nothing";
const MAKE: &str = ", made";

/// What the deepest call takes, and its name. A stack that is just large enough is found first; on
/// it, the deepest place for all calls is compared with that for the empty one.
fn deepest(name: &str) -> Result<(usize, String), String> {
    let mut stack_bytes = SMALLEST_STACK;
    let mut call = String::new();
    while let Some(last) = run_calls(name, Place { stack_bytes, depth_bytes: 0 })? {
        (stack_bytes, call) = (stack_bytes * 2, last);
        if stack_bytes > LARGEST_STACK {
            return Err(format!("{name}: {call} never ends"));
        }
    }
    let (empty, _) = deepest_place(NOTHING, stack_bytes)?;
    let (depth, last) = deepest_place(name, stack_bytes)?;
    Ok((empty.saturating_sub(depth), last.unwrap_or(call)))
}

/// The deepest place from which all calls can be made, and the call that dies just below.
fn deepest_place(name: &str, stack_bytes: usize) -> Result<(usize, Option<String>), String> {
    let (mut lives, mut dies) = (0, stack_bytes);
    let mut call = None;
    while dies - lives > (stack_bytes / 2048).max(FINEST_STEP) {
        let depth_bytes = usize::midpoint(lives, dies);
        match run_calls(name, Place { stack_bytes, depth_bytes })? {
            None => lives = depth_bytes,
            last => (dies, call) = (depth_bytes, last),
        }
    }
    Ok((lives, call))
}

const SMALLEST_STACK: usize = 32 << 10;
const LARGEST_STACK: usize = 16 << 20;
/// About as fine as the descent.
const FINEST_STEP: usize = 64;

/// Makes the calls in a child; if it dies of them, at which call.
fn run_calls(name: &str, place: Place) -> Result<Option<String>, String> {
    let own = std::env::current_exe().map_err(|e| format!("cannot find itself: {e}"))?;
    let output = Command::new(own)
        .args(["calls", name])
        .args([place.stack_bytes, place.depth_bytes].map(|number| number.to_string()))
        .stderr(Stdio::null())
        .output()
        .map_err(|e| format!("cannot start a child: {e}"))?;
    match output.status.code() {
        Some(0) => Ok(None),
        Some(code @ 1..=255) => Err(format!("{name} fails by itself, with {code}")),
        // A signal, or on Windows an exception.
        _ => {
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            Ok(Some(said.lines().last().unwrap_or_default().to_owned()))
        }
    }
}

/// The child's part.
fn calls(name: &str, stack: &str, depth: &str) -> Result<(), String> {
    let number = |text: &str| text.parse::<usize>().map_err(|e| format!("{text}: {e}"));
    let place = Place { stack_bytes: number(stack)?, depth_bytes: number(depth)? };
    let (_, run) = work().into_iter().find(|(known, _)| known == name).ok_or("unknown calls")?;
    run(Caller::from(place));
    Ok(())
}
