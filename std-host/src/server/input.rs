//! What comes to a test from elsewhere than its control connection.

use std::net::SocketAddr;

use linerate_core::protocol::code::ServerError;
use tokio::net::TcpStream;

use crate::auth::{Guest, Refusal};
use crate::error::Error;
use crate::stream::DataSocket;

/// One thing that comes.
#[derive(Debug)]
pub(super) enum Input {
    /// A TCP stream of this test, and its place in the order in which the server accepted it.
    Connected(TcpStream, u64),
    /// A UDP stream of this test, and its place in the order of creation if its greeting said that.
    Greeted(Option<u16>, DataSocket),
    /// Its UDP greetings come from here, which is not where its control connection comes from.
    Strayed(SocketAddr),
    /// Its client may have a test, or may not.
    Judged(Result<Guest, Refusal>),
    /// Others wait for its place, and it has had time to say what to test.
    OthersWait,
    /// Its streams can come, or there is no place for it.
    Prepared,
    /// The test cannot be had here: the number for the client, and what there is to say of it here.
    Unfit(ServerError, Error),
}
