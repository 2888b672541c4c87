//! Runs what the command line says and prints what the library tells. Everything that touches the
//! terminal, signals or the exit code is here.

mod calibrate;
mod client;
mod console;
mod server;
mod signals;

use linerate::cli::{OutputConfig, Stop};
use linerate::error::{Error, ExitCode};
use linerate::system_info::allow_many_sockets;
use tokio::runtime::{Builder, Runtime};

pub(crate) use calibrate::calibrate;
pub(crate) use client::client;
pub(crate) use console::exit_code;
pub(crate) use server::server;

/// Says what a person should read instead of a test.
pub(crate) fn stop(stop: &Stop) -> ExitCode {
    match stop {
        Stop::Help(text) | Stop::Version(text) => console::print(&format!("{text}\n")),
        Stop::Usage(line) => console::complain(line),
    }
    stop.exit_code()
}

/// The control plane of all tests in the process.
fn runtime() -> Result<Runtime, Error> {
    allow_many_sockets();
    let built = Builder::new_multi_thread().worker_threads(CONTROL_THREADS).enable_all().build();
    built.map_err(|error| Error::system("unable to start", &error))
}

/// The program was started under iperf3's name, whose readers expect its output and nothing more.
fn is_plain(output: &OutputConfig) -> bool {
    output.program == linerate::cli::IPERF3_PROGRAM
}

/// Control connections need little; the data streams have threads of their own.
const CONTROL_THREADS: usize = 2;
