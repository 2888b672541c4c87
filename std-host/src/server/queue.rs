//! Waiting for one's turn. A client that waits hears nothing: stock clients wait for the first word as
//! long as it takes, and any word would be one. Its connection is watched meanwhile, so that whoever
//! goes leaves the queue at once.

use std::fmt;
use std::io;
use std::time::Duration;

use linerate_core::session::Denial;
use tokio::net::TcpStream;

use super::table::{Promise, Waiting};
use crate::observe::Cancel;

/// Why a client left the queue without a test.
#[derive(Debug)]
pub(super) enum Left {
    /// It went, or its connection broke.
    Gone,
    /// It has to be told.
    Refused(Denial),
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => f.write_str("it left the queue"),
            Self::Refused(denial) => denial.fmt(f),
        }
    }
}

/// Waits until it is the turn of the client of this connection, `limit` at most.
pub(super) async fn wait(
    stream: &TcpStream,
    mut waiting: Waiting,
    limit: Duration,
    cancel: &Cancel,
) -> Result<Promise, Left> {
    tokio::select! {
        // A turn that came counts, whatever else did.
        biased;
        promise = waiting.turn() => Ok(promise),
        () = gone(stream) => Err(Left::Gone),
        () = tokio::time::sleep(limit) => {
            let limit_secs = u32::try_from(limit.as_secs()).unwrap_or(u32::MAX);
            Err(Left::Refused(Denial::QueueTime { limit_secs }))
        }
        () = cancel.cancelled() => Err(Left::Refused(Denial::Closing)),
    }
}

/// Returns once the client is gone. One that says something before it is asked gives up, too: stock
/// clients do when they are interrupted.
async fn gone(stream: &TcpStream) {
    loop {
        let is_readable = stream.readable().await.is_ok();
        match stream.try_read(&mut [0]) {
            Err(error) if is_readable && error.kind() == io::ErrorKind::WouldBlock => {}
            _ => return,
        }
    }
}
