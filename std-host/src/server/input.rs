//! What comes to a test from elsewhere than its control connection.

use tokio::net::TcpStream;

use crate::stream::DataSocket;

/// One thing that comes.
#[derive(Debug)]
pub(super) enum Input {
    /// A TCP stream of this test, and its place in the order of acceptance.
    Connected(u64, TcpStream),
    /// A UDP stream of this test.
    Greeted(DataSocket),
    /// Its streams can come, or there is no place for it.
    Prepared,
}
