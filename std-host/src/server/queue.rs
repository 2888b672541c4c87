//! Waiting for one's turn. A client that waits hears nothing: stock clients wait for the first word as
//! long as it takes, and any word would be one. Its connection is watched meanwhile, so that whoever
//! goes leaves the queue at once.

use std::fmt;
use std::io;
use std::time::Duration;

use linerate_core::protocol::code::ControlCode;
use linerate_core::session::Denial;
use tokio::net::TcpStream;

use super::table::{Promise, Waiting};
use crate::error::words;
use crate::observe::Cancel;

/// Why a client left the queue without a test.
#[derive(Debug)]
pub(super) enum Left {
    /// It went: its connection closed, or it said that it was interrupted.
    Gone,
    /// Its connection broke.
    Broke(io::Error),
    /// It said something else before it was asked.
    Spoke,
    /// It has to be told.
    Refused(Denial),
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => f.write_str("it left the queue"),
            Self::Broke(error) => write!(f, "its connection broke in the queue: {}", words(error)),
            Self::Spoke => f.write_str("it said something in the queue before it was asked"),
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
        left = left(stream) => Err(left),
        () = tokio::time::sleep(limit) => {
            let limit_secs = u32::try_from(limit.as_secs()).unwrap_or(u32::MAX);
            Err(Left::Refused(Denial::QueueTime { limit_secs }))
        }
        () = cancel.cancelled() => Err(Left::Refused(Denial::Closing)),
    }
}

/// Returns once the client waits no longer. Whoever says something before it is asked does not: clients
/// say so when they are interrupted, and nothing else.
async fn left(stream: &TcpStream) -> Left {
    let mut byte = [0];
    loop {
        if let Err(error) = stream.readable().await {
            return Left::Broke(error);
        }
        return match stream.try_read(&mut byte) {
            Ok(0) => Left::Gone,
            Ok(_) => match ControlCode::from_byte(byte[0]) {
                Some(ControlCode::ClientTerminate | ControlCode::IperfDone) => Left::Gone,
                _ => Left::Spoke,
            },
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            // Killed with something unread, or by its system.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Left::Gone,
            Err(error) => Left::Broke(error),
        };
    }
}
