//! The policy file while the server runs: read again when somebody asks for it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use linerate::cli::LimitsConfig;
use linerate::limits::LiveLimits;
use linerate::report::log::LogLine;
use tokio::sync::Notify;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::console::Console;

/// The policy file of a running server.
pub(super) struct Policy {
    /// Where it is, and what it is held against.
    pub(super) limits: LimitsConfig,
    /// What it replaces.
    pub(super) live: LiveLimits,
    /// The name that messages begin with.
    pub(super) program: String,
}

impl Policy {
    /// Reads the file again whenever it is asked for. A system that does not give the file keeps nothing
    /// else: it is read on a thread that serves nobody.
    pub(super) async fn reread(self: Arc<Self>, asked: Arc<Notify>, console: Arc<Console>) {
        loop {
            asked.notified().await;
            let (policy, of_policy) = (self.clone(), console.clone());
            let mut reading = spawn_blocking(move || policy.load(&of_policy));
            if timeout(PATIENCE, &mut reading).await.is_err() {
                self.tell(&console, "cannot be read yet, the limits stay");
                let _ = reading.await;
            }
        }
    }

    /// Replaces the limits by those of the file, if they can be used, and says so.
    fn load(&self, console: &Console) {
        match self.limits.load() {
            Ok(limits) => {
                self.live.set(limits);
                self.tell(console, "read again, for later tests");
            }
            Err(error) => console.error(&error),
        }
    }

    fn tell(&self, console: &Console, what: &str) {
        let file = self.limits.policy().unwrap_or(Path::new("")).display().to_string();
        let plain = format!("{}: --policy {file}: {what}", self.program);
        console
            .tell(&plain, &LogLine::new("policy").with("file", file.as_str()).with("state", what));
    }
}

/// A policy file that takes longer to read is worth a word.
const PATIENCE: Duration = Duration::from_secs(5);
