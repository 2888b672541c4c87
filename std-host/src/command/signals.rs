//! Signals: the first one ends what runs with a summary, the second one at once.

use linerate::error::ExitCode;
use linerate::observe::Cancel;

/// Throws `cancel` at the first signal to stop; exits with `at_once` at the second.
pub(super) fn listen(cancel: &Cancel, at_once: ExitCode) {
    let cancel = cancel.clone();
    tokio::spawn(async move {
        loop {
            let signal = next().await;
            if cancel.is_cancelled() {
                std::process::exit(at_once as i32);
            }
            cancel.cancel_by(&format!("signal {signal}"));
        }
    });
}

#[cfg(unix)]
async fn next() -> &'static str {
    use tokio::signal::unix::{SignalKind, signal};

    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let [Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)] = kinds.map(signal) else {
        // Without handlers the system ends the process by itself, which is what is left.
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => "Interrupt(2)",
        _ = terminate.recv() => "Terminated(15)",
        _ = hangup.recv() => "Hangup(1)",
    }
}

#[cfg(not(unix))]
async fn next() -> &'static str {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
    "Interrupt(2)"
}
