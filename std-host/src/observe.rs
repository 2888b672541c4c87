//! Watching a test while it runs, and stopping it.

use std::sync::Arc;

use tokio::sync::watch;

use crate::error::Error;
use crate::report::{Progress, ServerOutput};

/// Is told everything that happens in one test, in order.
pub trait Observer: Send {
    /// Takes one thing that happened. Must not block for long: the test's control connection waits.
    fn handle(&mut self, progress: Progress);

    /// Server: the output so far, for a client that asked for it (`--get-server-output`).
    fn server_output(&mut self) -> Option<ServerOutput> {
        None
    }
}

impl<F: FnMut(Progress) + Send> Observer for F {
    fn handle(&mut self, progress: Progress) {
        self(progress);
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
