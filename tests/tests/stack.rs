//! The stack that the engine takes, where it must not be more. A thread that has too little ends the
//! whole process; `cargo xtask size` tells how much it is.

use std::hint::black_box;
use std::thread;

use linerate_core::session::{ClientSession, ServerSession};
use linerate_core::test::End;
use linerate_tests::stack::{Caller, HOST_STREAMS, HOST_TEXT_BYTES, exchange, faults};

/// What std and tokio give a thread.
const WORKER_STACK: usize = 2 << 20;

#[test]
fn a_hosts_session_and_its_deepest_call_fit_a_workers_stack() {
    for end in [End::Client, End::Server] {
        let worker = thread::Builder::new().stack_size(WORKER_STACK).spawn(move || {
            // In case that whoever calls holds the session itself on this stack.
            let session = [0_u8; SESSION_BYTES];
            black_box(&session);
            exchange::<HOST_STREAMS, HOST_TEXT_BYTES>(end, Caller::DIRECT);
            faults::<HOST_STREAMS, HOST_TEXT_BYTES>(end, Caller::DIRECT);
            black_box(&session);
        });
        worker.expect("a thread can be started").join().expect("the exchange completes");
    }
}

const SESSION_BYTES: usize = {
    let client = size_of::<ClientSession<'_, HOST_STREAMS>>();
    let server = size_of::<ServerSession<HOST_STREAMS, HOST_TEXT_BYTES>>();
    if client > server { client } else { server }
};
