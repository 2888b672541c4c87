//! How much stack the calls into the engine take, found without looking at memory: each call is made
//! on a thread of its own, from a chosen depth of its stack. Too deep, and the process dies of it; so
//! whoever asks runs a child for every depth, and the deepest that lives is the answer.

mod documents;
mod exchange;
mod faults;
mod flows;

use std::hint::black_box;
use std::io::Write as _;
use std::thread;

pub use exchange::{HOST_STREAMS, HOST_TEXT_BYTES, exchange};
pub use faults::faults;

use exchange::{client, server};
use flows::{flows, receiver};

use linerate_core::test::End;

/// What is measured: a name, and what makes the calls.
#[derive(Debug, Clone, Copy)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// Makes a value and puts it on the heap.
    pub make: fn(Caller),
    /// Makes all other calls, on values that are on the heap.
    pub calls: fn(Caller),
}

/// All that is measured.
pub const SCENARIOS: [Scenario; 5] = [
    Scenario { name: "client, 4 streams", make: client::<4>, calls: session::<4, 64, CLIENT> },
    Scenario { name: "server, 4 streams", make: server::<4, 64>, calls: session::<4, 64, SERVER> },
    Scenario {
        name: "client, 256 streams",
        make: client::<HOST_STREAMS>,
        calls: session::<HOST_STREAMS, HOST_TEXT_BYTES, CLIENT>,
    },
    Scenario {
        name: "server, 256 streams",
        make: server::<HOST_STREAMS, HOST_TEXT_BYTES>,
        calls: session::<HOST_STREAMS, HOST_TEXT_BYTES, SERVER>,
    },
    Scenario { name: "receiving flow", make: receiver, calls: flows },
];

/// A whole session of one end, with the largest test that it has room for; then all that can go
/// wrong.
fn session<const N: usize, const T: usize, const IS_CLIENT: bool>(caller: Caller) {
    let end = if IS_CLIENT { End::Client } else { End::Server };
    exchange::<N, T>(end, caller);
    faults::<N, T>(end, caller);
}

const CLIENT: bool = true;
const SERVER: bool = false;

/// Makes the calls that are measured.
#[derive(Debug, Clone, Copy)]
pub struct Caller {
    place: Option<Place>,
}

/// Where on a stack a call is made.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// The whole stack.
    pub stack_bytes: usize,
    /// How far below its top.
    pub depth_bytes: usize,
}

impl Caller {
    /// Calls from where it is called.
    pub const DIRECT: Self = Self { place: None };

    /// Calls from this place of a stack, and says the name of each call on standard output before.
    pub const fn from(place: Place) -> Self {
        Self { place: Some(place) }
    }

    /// Makes a call.
    pub fn call<R: Send>(self, name: &str, call: impl FnOnce() -> R + Send) -> R {
        let Some(Place { stack_bytes, depth_bytes }) = self.place else { return call() };
        // Whoever reads it may have seen enough.
        let _ = writeln!(std::io::stdout(), "{name}");
        thread::scope(|scope| {
            let thread = thread::Builder::new()
                .stack_size(stack_bytes)
                .spawn_scoped(scope, || {
                    let (mut call, mut answer) = (Some(call), None);
                    let top = 0_u8;
                    descend(address(&top), depth_bytes, &mut || {
                        answer = call.take().map(|call| call())
                    });
                    answer
                })
                .expect("a thread can be started");
            thread.join().expect("the engine does not panic").expect("the call was made")
        })
    }
}

/// Goes down the stack to the wanted depth, in steps of a few hundred bytes.
#[inline(never)]
fn descend(top: usize, depth_bytes: usize, call: &mut dyn FnMut()) {
    let step = black_box([0_u8; 16]);
    if top.abs_diff(address(&step)) >= depth_bytes {
        call();
    } else {
        descend(top, depth_bytes, call);
    }
    // Used after the call, so that no compiler makes a loop of it.
    black_box(&step);
}

fn address<V>(value: &V) -> usize {
    std::ptr::from_ref(black_box(value)).addr()
}
