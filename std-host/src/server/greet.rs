//! The first 37 bytes of a connection, within a deadline.

use std::io;
use std::time::Duration;

use linerate_core::accept::{Foreign, Greeting, GreetingReader};
use linerate_core::protocol::cookie::Cookie;
use tokio::net::TcpStream;

/// A connection that named a test.
#[derive(Debug)]
pub(super) struct Greeted {
    pub(super) stream: TcpStream,
    pub(super) cookie: Cookie,
    /// Its place in the order in which connections were accepted.
    pub(super) number: u64,
}

/// Reads the cookie of the connection of this number, and no byte beyond it.
///
/// # Errors
/// Why the connection is none of ours, in a few words for a log.
pub(super) async fn greet(stream: TcpStream, number: u64) -> Result<Greeted, &'static str> {
    match tokio::time::timeout(DEADLINE, read(&stream)).await {
        Ok(Ok(cookie)) => Ok(Greeted { stream, cookie, number }),
        Ok(Err(why)) => Err(why),
        Err(_) => Err("it sent no cookie in time"),
    }
}

async fn read(stream: &TcpStream) -> Result<Cookie, &'static str> {
    let mut reader = GreetingReader::new();
    let mut bytes = [0; Cookie::LEN];
    let mut missing = Cookie::LEN;
    loop {
        stream.readable().await.map_err(|_| "it broke before its cookie was complete")?;
        let len = match stream.try_read(&mut bytes[..missing]) {
            Ok(0) => return Err("it closed before its cookie was complete"),
            Ok(len) => len,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(_) => return Err("it broke before its cookie was complete"),
        };
        missing -= len;
        match reader.read(&bytes[..len]).1 {
            Greeting::Incomplete => {}
            Greeting::Cookie(cookie) => return Ok(cookie),
            Greeting::Foreign(foreign) => return Err(describe(foreign)),
        }
    }
}

const fn describe(foreign: Foreign) -> &'static str {
    match foreign {
        Foreign::Http => "it speaks HTTP, not iperf3",
        Foreign::Tls => "it speaks TLS, not iperf3",
        Foreign::Iperf2 => "it speaks iperf 2, not iperf3",
        Foreign::Ssh => "it speaks SSH, not iperf3",
        Foreign::Line => "it sent a line of text, no cookie",
    }
}

/// iperf3 since 3.15 gives a client as long.
const DEADLINE: Duration = Duration::from_secs(10);
