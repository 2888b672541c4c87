//! The tests of a server by their cookies: which connection belongs to whom, and how many there
//! are. The only state that tests share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use linerate_core::accept::{Admission, Known};
use linerate_core::protocol::cookie::Cookie;
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use super::input::Input;

#[derive(Debug)]
pub(super) struct Table {
    tests: Arc<Mutex<HashMap<Cookie, Entry>>>,
    most: usize,
}

#[derive(Debug)]
struct Entry {
    /// Takes the test's TCP streams while it waits for them.
    streams: Option<mpsc::UnboundedSender<Input>>,
    /// How many it still waits for: a client that opens more holds no sockets here.
    missing: usize,
    is_running: bool,
}

impl Table {
    pub(super) fn new(most: usize) -> Self {
        Self { tests: Arc::default(), most }
    }

    /// What a connection with this cookie is.
    pub(super) fn admission(&self, cookie: &Cookie) -> Admission {
        let tests = lock(&self.tests);
        Admission::of(tests.get(cookie).map(|test| match test.streams {
            Some(_) => Known::AwaitingStreams,
            None => Known::Running,
        }))
    }

    pub(super) fn is_full(&self) -> bool {
        lock(&self.tests).len() >= self.most
    }

    /// Gives a data connection, accepted in this place, to its test; closes it if the test has just
    /// gone.
    pub(super) fn hand_over(&self, cookie: &Cookie, stream: TcpStream, order: u64) {
        let mut tests = lock(&self.tests);
        if let Some(test) = tests.get_mut(cookie).filter(|test| test.missing > 0)
            && let Some(streams) = &test.streams
        {
            test.missing -= 1;
            // A test that has just ended takes nothing more; the connection closes with it.
            let _ = streams.send(Input::Connected(stream, order));
        }
    }

    /// Takes a place for a test whose parameters were accepted. `streams` gets so many TCP
    /// streams; none for a test without. `None` if all places are taken or the cookie is in use.
    pub(super) fn enter(
        &self,
        cookie: Cookie,
        streams: Option<(mpsc::UnboundedSender<Input>, usize)>,
    ) -> Option<Place> {
        let mut tests = lock(&self.tests);
        if tests.len() >= self.most || tests.contains_key(&cookie) {
            return None;
        }
        let (streams, missing) = streams.unzip();
        let missing = missing.unwrap_or(0);
        tests.insert(cookie, Entry { streams, missing, is_running: false });
        Some(Place { cookie, tests: self.tests.clone() })
    }
}

/// A test's place in the table, given back when dropped.
#[derive(Debug)]
pub(super) struct Place {
    cookie: Cookie,
    tests: Arc<Mutex<HashMap<Cookie, Entry>>>,
}

impl Place {
    /// All streams are there.
    pub(super) fn set_running(&self) {
        if let Some(test) = lock(&self.tests).get_mut(&self.cookie) {
            test.streams = None;
            test.is_running = true;
        }
    }

    /// The test does nothing more; connections with its cookie still come too late.
    pub(super) fn set_over(&self) {
        if let Some(test) = lock(&self.tests).get_mut(&self.cookie) {
            test.streams = None;
            test.is_running = false;
        }
    }

    /// Other tests whose clock runs.
    pub(super) fn others_running(&self) -> u32 {
        let tests = lock(&self.tests);
        let is_other =
            |(cookie, test): &(&Cookie, &Entry)| **cookie != self.cookie && test.is_running;
        tests.iter().filter(is_other).count() as u32
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.tests).remove(&self.cookie);
    }
}

/// A panic of one test must not take the others with it; the map is whole between any two lines.
fn lock(tests: &Mutex<HashMap<Cookie, Entry>>) -> MutexGuard<'_, HashMap<Cookie, Entry>> {
    tests.lock().unwrap_or_else(PoisonError::into_inner)
}
