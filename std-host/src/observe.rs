//! Watching a test while it runs, and stopping it.

use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;

use crate::auth::Guest;
use crate::error::Error;
use crate::report::{Progress, ServerOutput};

/// Is told everything that happens in one test, in order.
pub trait Observer: Send {
    /// Takes one thing that happened. Must not block for long: the test's control connection waits.
    fn handle(&mut self, progress: Progress);

    /// Server: the client may have its test because it logged in.
    fn logged_in(&mut self, _guest: &Guest) {}

    /// Server: the output so far, for a client that asked for it (`--get-server-output`).
    fn server_output(&mut self) -> Option<ServerOutput> {
        None
    }

    /// Where details of how the test works go; none if nobody wants them.
    fn debug_log(&self) -> Option<DebugLog> {
        None
    }
}

impl<F: FnMut(Progress) + Send> Observer for F {
    fn handle(&mut self, progress: Progress) {
        self(progress);
    }
}

/// How much a debug log holds: each level holds those before it too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// The codes that go over the control connection.
    Codes = 1,
    /// The documents too.
    Documents,
    /// The data sockets too: what they were asked for and what the system gave.
    Sockets,
    /// Each step of the session too.
    Steps,
}

impl Detail {
    /// The detail of `--debug=LEVEL`, from 1 on; more than the most is the most.
    pub const fn from_level(level: u8) -> Self {
        match level {
            0 | 1 => Self::Codes,
            2 => Self::Documents,
            3 => Self::Sockets,
            _ => Self::Steps,
        }
    }
}

/// Takes lines about how a test works, for whoever looks for a fault (`--debug`).
#[derive(Clone)]
pub struct DebugLog {
    detail: Detail,
    write: Arc<dyn Fn(&str) + Send + Sync>,
}

impl DebugLog {
    /// A log of so much detail, whose lines go to `write` without their newline.
    pub fn new(detail: Detail, write: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { detail, write: Arc::new(write) }
    }

    /// Writes the line that `text` makes, if the log holds so much.
    pub(crate) fn line(&self, detail: Detail, text: impl FnOnce() -> String) {
        if detail <= self.detail {
            (self.write)(&text());
        }
    }
}

impl fmt::Debug for DebugLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DebugLog").field("detail", &self.detail).finish_non_exhaustive()
    }
}

/// A switch that ends tests early: each ends with a summary of what there is, and tells its peer.
/// Clones are the same switch.
#[derive(Debug, Clone)]
pub struct Cancel(Arc<watch::Sender<State>>);

#[derive(Debug, Clone, Default)]
struct State {
    is_thrown: bool,
    by: Option<Arc<str>>,
}

impl Cancel {
    /// A switch that is not thrown.
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(State::default())))
    }

    /// Throws the switch, for good.
    pub fn cancel(&self) {
        self.0.send_modify(|state| state.is_thrown = true);
    }

    /// Throws the switch and says by what, to follow "terminated by" in reports.
    pub fn cancel_by(&self, what: &str) {
        let by = Some(what.into());
        self.0.send_modify(|state| *state = State { is_thrown: true, by });
    }

    /// Whether it was thrown.
    pub fn is_cancelled(&self) -> bool {
        self.0.borrow().is_thrown
    }

    /// The error of a test that it ended.
    pub fn error(&self) -> Error {
        Error::Interrupted { by: self.0.borrow().by.as_deref().map(str::to_owned) }
    }

    /// Returns once it is thrown.
    pub async fn cancelled(&self) {
        // The sender lives in `self`, so the channel cannot close first.
        let _ = self.0.subscribe().wait_for(|state| state.is_thrown).await;
    }
}

impl Default for Cancel {
    fn default() -> Self {
        Self::new()
    }
}
