//! The first 37 bytes of each connection, within a deadline. Connections wait side by side, so that
//! none holds up another; of too many, the one that has been silent longest gives way.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use linerate_core::accept::{Foreign, Greeting, GreetingReader};
use linerate_core::protocol::cookie::Cookie;
use tokio::net::TcpStream;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

/// A connection that named a test.
#[derive(Debug)]
pub(super) struct Greeted {
    pub(super) stream: TcpStream,
    pub(super) cookie: Cookie,
    /// Its place in the order in which the server accepted connections.
    pub(super) order: u64,
}

/// The connections that have not said yet what they are.
pub(super) struct Greetings {
    waiting: JoinSet<(Result<Greeted, &'static str>, SocketAddr)>,
    /// Each that may still wait, the oldest first.
    oldest: VecDeque<Waiting>,
    accepted: u64,
}

struct Waiting {
    greeting: AbortHandle,
    peer: SocketAddr,
    since: Instant,
}

impl Greetings {
    pub(super) fn new() -> Self {
        Self { waiting: JoinSet::new(), oldest: VecDeque::new(), accepted: 0 }
    }

    /// When the next connection may be taken, if not at once: a busy server reads cookies late, and
    /// the connections that sent them are not to give way.
    pub(super) fn room_at(&mut self) -> Option<Instant> {
        if self.oldest.len() >= MOST {
            self.oldest.retain(|waiting| !waiting.greeting.is_finished());
        }
        let oldest = self.oldest.front().filter(|_| self.oldest.len() >= MOST);
        oldest.map(|waiting| waiting.since + PATIENCE)
    }

    /// Whether half of all places are taken.
    pub(super) fn are_many(&self) -> bool {
        self.oldest.len() >= MOST / 2
    }

    /// Waits for the cookie of a fresh connection. Returns the peer that had to give way to it.
    pub(super) fn begin(&mut self, stream: TcpStream, peer: SocketAddr) -> Option<SocketAddr> {
        let displaced = if self.oldest.len() >= MOST { self.oldest.pop_front() } else { None };
        if let Some(displaced) = &displaced {
            displaced.greeting.abort();
        }
        let order = self.accepted;
        self.accepted += 1;
        let greeting = self.waiting.spawn(async move { (greet(stream, order).await, peer) });
        self.oldest.push_back(Waiting { greeting, peer, since: Instant::now() });
        displaced.map(|displaced| displaced.peer)
    }

    /// The next connection that said what it is, or why it is none of ours in a few words for a
    /// log; `None` if no connection waits. Loses nothing if dropped.
    pub(super) async fn next(&mut self) -> Option<(Result<Greeted, &'static str>, SocketAddr)> {
        loop {
            // One that gave way to another has nothing to say.
            if let Ok(greeted) = self.waiting.join_next().await? {
                return Some(greeted);
            }
        }
    }
}

/// Reads the cookie and no byte beyond it.
async fn greet(stream: TcpStream, order: u64) -> Result<Greeted, &'static str> {
    match tokio::time::timeout(DEADLINE, read(&stream)).await {
        Ok(Ok(cookie)) => Ok(Greeted { stream, cookie, order }),
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

/// Silent connections at once: far below the descriptors that a process gets by default.
const MOST: usize = 256;
/// How long each of them may be silent where others wait for its place.
const PATIENCE: Duration = Duration::from_millis(500);
/// iperf3 since 3.15 gives a client as long.
const DEADLINE: Duration = Duration::from_secs(10);
