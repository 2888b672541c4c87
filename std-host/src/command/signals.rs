//! Signals: the first one ends what runs with a summary, the second one at once. A hangup ends it, too,
//! unless there is something to read anew.

use std::sync::Arc;

use linerate::error::ExitCode;
use linerate::observe::Cancel;
use linerate::process::PidFile;
#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;

/// Throws `cancel` at the first signal to stop; exits with `at_once` at the second, without the pid
/// file. A hangup asks for what is read anew, where there is that.
pub(super) fn listen(
    cancel: &Cancel,
    at_once: ExitCode,
    pid_file: Option<Arc<PidFile>>,
    reread: Option<Arc<Notify>>,
) {
    // Without handlers the system ends the process by itself, which is what is left.
    let Ok(mut signals) = Signals::new() else { return };
    let cancel = cancel.clone();
    tokio::spawn(async move {
        let signal = signals.next_to_stop(reread.as_deref()).await;
        cancel.cancel_by(&format!("signal {signal}"));
        signals.next_to_stop(reread.as_deref()).await;
        pid_file.iter().for_each(|file| file.remove());
        std::process::exit(at_once as i32);
    });
}

/// Does something that must not be torn off by an interrupt, which is lost meanwhile.
///
/// # Errors
/// The system's, when it hands out no signals.
#[cfg(unix)]
pub(super) fn without_interrupt<T>(work: impl FnOnce() -> T) -> std::io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _within = runtime.enter();
    let _caught = signal(SignalKind::interrupt())?;
    Ok(work())
}

/// Elsewhere an interrupt is a key like others to who reads them one by one.
///
/// # Errors
/// None.
#[cfg(not(unix))]
pub(super) fn without_interrupt<T>(work: impl FnOnce() -> T) -> std::io::Result<T> {
    Ok(work())
}

impl Signals {
    /// The next one that asks to stop.
    async fn next_to_stop(&mut self, reread: Option<&Notify>) -> &'static str {
        loop {
            match (self.next().await, reread) {
                (HANGUP, Some(reread)) => reread.notify_one(),
                (signal, _) => return signal,
            }
        }
    }
}

const HANGUP: &str = "Hangup(1)";

/// The signals that ask a program to stop.
#[cfg(unix)]
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// The name of the next one, as the C library and its number have it.
    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "Interrupt(2)",
            _ = self.terminate.recv() => "Terminated(15)",
            _ = self.hangup.recv() => HANGUP,
        }
    }
}

/// Ctrl-C, which is all that other systems have.
#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    #[allow(clippy::unnecessary_wraps, reason = "as on other systems")]
    fn new() -> std::io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) -> &'static str {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        "Interrupt(2)"
    }
}
