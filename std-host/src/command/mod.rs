//! Runs what the command line says and prints what the library tells. Everything that touches the
//! terminal, signals or the exit code is here.

mod auth;
mod calibrate;
mod client;
mod console;
mod events;
mod firewall;
mod journal;
mod password;
mod policy;
mod printer;
mod server;
mod service;
mod signals;
mod supervise;
mod throttle;
mod writer;

use std::sync::Arc;
use std::time::Duration;

use linerate::cli::{OutputConfig, Stop};
use linerate::error::{Error, ExitCode};
use linerate::system_info::allow_many_sockets;
use linerate_core::test::End;
use tokio::runtime::Builder;

pub(crate) use auth::auth;
pub(crate) use calibrate::calibrate;
pub(crate) use client::client;
pub(crate) use console::exit_code;
pub(crate) use server::server;
pub(crate) use service::service;

use console::{Console, Purpose};
use printer::Report;

/// Says what a person should read instead of a test.
pub(crate) fn stop(stop: &Stop) -> ExitCode {
    match stop {
        Stop::Generated(text) => console::print(text),
        Stop::Help(text) | Stop::Version(text) => console::print(&format!("{text}\n")),
        Stop::Usage(line) => console::complain(line),
    }
    stop.exit_code()
}

/// Runs the control plane of all tests in the process. Making a session takes stack, most of all in
/// debug builds, and the main thread of some systems has little: it works on a thread of its own.
fn block_on<T: Send>(work: impl Future<Output = Result<T, Error>> + Send) -> Result<T, Error> {
    allow_many_sockets();
    let failed = |error| Error::system("unable to start", &error);
    let runtime = Builder::new_multi_thread()
        .worker_threads(CONTROL_THREADS)
        .thread_stack_size(STACK_BYTES)
        .enable_all()
        .build()
        .map_err(failed)?;
    let ran = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("control".into()).stack_size(STACK_BYTES);
        let running = thread.spawn_scoped(scope, || runtime.block_on(work)).map_err(failed)?;
        running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    // A thread that a disk or a key keeps busy does not keep the process.
    runtime.shutdown_timeout(LAST_THREADS);
    ran
}

/// Opens what the command prints to.
fn open_console(output: &OutputConfig, purpose: Purpose) -> Result<Arc<Console>, Error> {
    Console::open(output, purpose).map(Arc::new).inspect_err(|error| {
        // Nothing is a document, or a log, before there is a place for it.
        console::complain_of(error, output, purpose.end);
    })
}

/// Says why there was no test, in the form that was asked for, and in the log.
fn tell_failure(console: &Console, output: &OutputConfig, error: &Error, end: End) {
    let document = Report::without_peer(output, error, end);
    if document.is_none() || console.has_log() {
        console.error(error);
    }
    document.into_iter().for_each(|document| console.print(document));
}

/// Control connections need little; the data streams have threads of their own.
const CONTROL_THREADS: usize = 2;
const LAST_THREADS: Duration = Duration::from_secs(1);
const STACK_BYTES: usize = 4 << 20;
