//! Tells whoever started the server how it is, for as long as it is well: each sign of life is one of
//! the task that takes the connections, so that a server that hangs is restarted.

use std::sync::Arc;
use std::time::Duration;

use linerate::server::ServerHandle;
use linerate::service::Supervisor;

/// Begins to send signs of life. `status` makes the line that goes with each.
pub(super) fn begin(
    supervisor: Arc<Supervisor>,
    server: ServerHandle,
    status: impl Fn() -> String + Send + 'static,
) {
    supervisor.ready(&status());
    // Twice within the time that the supervisor waits, as its manual asks for.
    let half = supervisor.watchdog().map_or(LONGEST, |watchdog| watchdog / 2);
    let mut signs = tokio::time::interval(half.clamp(SHORTEST, LONGEST));
    signs.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    tokio::spawn(async move {
        loop {
            signs.tick().await;
            if !server.gives_sign().await {
                return;
            }
            supervisor.alive(&status());
        }
    });
}

/// So old is the line of `systemctl status` at most.
const LONGEST: Duration = Duration::from_secs(5);
const SHORTEST: Duration = Duration::from_millis(10);
