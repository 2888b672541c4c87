//! The policy file while the server runs: read again when somebody asks for it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use linerate::cli::LimitsConfig;
use linerate::limits::LiveLimits;
use linerate::report::error_line;
use linerate_core::test::End;
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
    /// Reads the file again whenever it is asked for. A system that does not give the file, or takes no
    /// line, keeps nothing else: that is done on threads that serve nobody.
    pub(super) async fn reread(self: Arc<Self>, asked: Arc<Notify>, console: Arc<Console>) {
        loop {
            asked.notified().await;
            let (policy, of_policy) = (self.clone(), console.clone());
            let mut reading = spawn_blocking(move || of_policy.complain(&policy.load()));
            if timeout(PATIENCE, &mut reading).await.is_err() {
                let line = self.line("cannot be read yet, the limits stay");
                spawn_blocking({
                    let console = console.clone();
                    move || console.complain(&line)
                });
                let _ = reading.await;
            }
        }
    }

    /// Replaces the limits by those of the file, if they can be used. What to say of it.
    fn load(&self) -> String {
        match self.limits.load() {
            Ok(limits) => {
                self.live.set(limits);
                self.line("read again, for later tests")
            }
            Err(error) => error_line(&self.program, &error, End::Server),
        }
    }

    fn line(&self, what: &str) -> String {
        let file = self.limits.policy().unwrap_or(Path::new("")).display();
        format!("{}: --policy {file}: {what}", self.program)
    }
}

/// A policy file that takes longer to read is worth a word.
const PATIENCE: Duration = Duration::from_secs(5);
