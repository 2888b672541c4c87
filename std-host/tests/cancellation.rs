//! A program that gives up a test at any moment, as with a time-out around the call, keeps nothing of
//! it: no socket, no thread, on neither end. The counts are the whole process's, so this file has one
//! test.

#![cfg(target_os = "linux")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use linerate::client::run_client;
use linerate::config::{ClientConfig, ServerConfig};
use linerate::observe::{Cancel, Observer};
use linerate::report::Progress;
use linerate::server::{ObserveTests, Server};
use linerate_core::test::{Direction, Protocol};
use linerate_core::units::BitsPerSec;
use tokio::runtime::{Builder, Runtime};

struct Quiet;

impl ObserveTests for Quiet {
    fn observe(&self, _test_number: u64) -> Box<dyn Observer> {
        Box::new(|_: Progress| ())
    }
}

/// What a process holds of the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Held {
    descriptors: usize,
    threads: usize,
}

#[test]
fn cancelled_tests_leave_no_socket_and_no_thread() {
    // tokio keeps a pair of sockets for signals, once it has had a runtime.
    drop(runtime());
    let before = held();
    let runtime = runtime();
    let server = start_server(&runtime);
    // The first ones open what the runtime keeps for good.
    cancel_many(&runtime, &server, 0..20);
    let descriptors = settled(|held| held.descriptors, usize::MAX);
    cancel_many(&runtime, &server, 20..200);
    let after = settled(|held| held.descriptors, descriptors);
    assert!(after <= descriptors, "{after} descriptors, {descriptors} after the first 20");

    // A server that is given up in the middle of tests leaves nothing either.
    let client = server.client(Protocol::Tcp, Direction::Bidirectional);
    let running = runtime.spawn(async move {
        let _ = run_client(&client, &mut |_: Progress| (), &Cancel::new()).await;
    });
    // The test is to be in its middle.
    std::thread::sleep(Duration::from_millis(200));
    server.serving.abort();
    runtime.block_on(running).expect("a client outlives its server");

    drop((server, runtime));
    let threads = settled(|held| held.threads, before.threads);
    let descriptors = settled(|held| held.descriptors, before.descriptors);
    assert!(threads <= before.threads, "{threads} threads, {} before", before.threads);
    assert!(descriptors <= before.descriptors, "{descriptors}, {} before", before.descriptors);
}

struct Running {
    port: u16,
    serving: tokio::task::JoinHandle<()>,
}

impl Running {
    fn client(&self, protocol: Protocol, direction: Direction) -> ClientConfig {
        let mut config = ClientConfig::new("127.0.0.1", protocol);
        config.port = self.port;
        config.settings.direction = direction;
        config.settings.parallel = 2;
        config.settings.bitrate = Some(BitsPerSec(20_000_000));
        config
    }
}

fn runtime() -> Runtime {
    // Sessions are large in debug builds.
    let mut builder = Builder::new_multi_thread();
    let builder = builder.worker_threads(2).thread_stack_size(4 << 20).enable_all();
    builder.build().expect("there is room for a runtime")
}

fn start_server(runtime: &Runtime) -> Running {
    let server = runtime.block_on(Server::bind(ServerConfig::loopback())).expect("a free port");
    let port = server.port();
    let serving = runtime.spawn(async move { server.run(Arc::new(Quiet), &Cancel::new()).await });
    Running { port, serving }
}

/// Begins tests of all kinds and drops each at a moment of its own: while it connects, sets up its
/// streams, or runs; or throws its switch there, and drops it a moment later.
fn cancel_many(runtime: &Runtime, server: &Running, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let protocol = if number % 2 == 0 { Protocol::Tcp } else { Protocol::Udp };
        let direction = [Direction::Forward, Direction::Reverse, Direction::Bidirectional]
            [number as usize / 2 % 3];
        let config = server.client(protocol, direction);
        // From 0 to 48 ms, no two alike in a row.
        let after = Duration::from_micros(number * 7919 % 49 * 1000 + number * 104_729 % 1000);
        runtime.block_on(async {
            let cancel = Cancel::new();
            let mut observer = |_: Progress| ();
            let test = run_client(&config, &mut observer, &cancel);
            if number % 5 == 4 {
                // Given up at a moment that the number chooses, and dropped a little later.
                let thrown = async {
                    tokio::time::sleep(after).await;
                    cancel.cancel();
                    tokio::time::sleep(Duration::from_millis(number % 10)).await;
                };
                tokio::select! { _ = test => {} () = thrown => {} }
            } else {
                let _ = tokio::time::timeout(after, test).await;
            }
        });
    }
}

/// Waits until the count is no more than `most`, or a bounded time for it to stand still.
fn settled(count: impl Fn(Held) -> usize, most: usize) -> usize {
    let deadline = Instant::now() + PATIENCE;
    let mut last = count(held());
    let mut steady_since = Instant::now();
    loop {
        // What the system still winds down tells nobody when it is done.
        std::thread::sleep(Duration::from_millis(20));
        let found = count(held());
        if found != last {
            (last, steady_since) = (found, Instant::now());
        }
        let is_steady = steady_since.elapsed() > Duration::from_secs(2);
        if found <= most && (most < usize::MAX || is_steady) || Instant::now() > deadline {
            return found;
        }
    }
}

fn held() -> Held {
    let entries = |path| std::fs::read_dir(path).expect("/proc is mounted").count();
    Held { descriptors: entries("/proc/self/fd"), threads: entries("/proc/self/task") }
}

/// A server notices within this that its client has gone.
const PATIENCE: Duration = Duration::from_secs(10);
