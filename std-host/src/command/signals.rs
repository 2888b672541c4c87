//! Signals: the first one ends what runs with a summary, the second one at once. A hangup ends it, too,
//! unless there is something to read anew.

use std::sync::Arc;

use linerate::error::ExitCode;
use linerate::observe::Cancel;
use linerate::process::PidFile;
#[cfg(windows)]
use linerate_windows::service::Request;
#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};
#[cfg(windows)]
use tokio::signal::windows;
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
        cancel.cancel_by(signal);
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
                // Nobody who asks a service to read something anew wants it to stop.
                (HANGUP, None) if cfg!(windows) => {}
                (signal, _) => return signal,
            }
        }
    }
}

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
            _ = self.interrupt.recv() => INTERRUPT,
            _ = self.terminate.recv() => "signal Terminated(15)",
            _ = self.hangup.recv() => HANGUP,
        }
    }
}

/// What ends a program of a console, or a service. Once the console closes, or Windows ends, the system
/// waits some 5 seconds and ends the process; tokio keeps the thread that it tells so until then.
#[cfg(windows)]
enum Signals {
    Console {
        interrupt: windows::CtrlC,
        stop: windows::CtrlBreak,
        close: windows::CtrlClose,
        logoff: windows::CtrlLogoff,
        shutdown: windows::CtrlShutdown,
    },
    /// Who logs off is nothing to it.
    Service,
}

#[cfg(windows)]
impl Signals {
    fn new() -> std::io::Result<Self> {
        if linerate_windows::service::current().is_some() {
            return Ok(Self::Service);
        }
        Ok(Self::Console {
            interrupt: windows::ctrl_c()?,
            stop: windows::ctrl_break()?,
            close: windows::ctrl_close()?,
            logoff: windows::ctrl_logoff()?,
            shutdown: windows::ctrl_shutdown()?,
        })
    }

    /// The next one, in words.
    async fn next(&mut self) -> &'static str {
        match self {
            Self::Console { interrupt, stop, close, logoff, shutdown } => tokio::select! {
                _ = interrupt.recv() => INTERRUPT,
                _ = stop.recv() => "Ctrl-Break",
                _ = close.recv() => "the closing of its console",
                _ = logoff.recv() => "the end of the session",
                _ = shutdown.recv() => SHUTDOWN,
            },
            Self::Service => tokio::select! {
                () = STOP.notified() => "the service manager",
                () = END_OF_SYSTEM.notified() => SHUTDOWN,
                () = REREAD.notified() => HANGUP,
            },
        }
    }
}

/// Hears what the service manager asks for.
#[cfg(windows)]
pub(super) fn request(request: Request) {
    match request {
        Request::Stop => STOP.notify_one(),
        Request::Shutdown => END_OF_SYSTEM.notify_one(),
        Request::Reread => REREAD.notify_one(),
    }
}

#[cfg(windows)]
static STOP: Notify = Notify::const_new();
#[cfg(windows)]
static END_OF_SYSTEM: Notify = Notify::const_new();
#[cfg(windows)]
static REREAD: Notify = Notify::const_new();

/// Ctrl-C, which is all that other systems have.
#[cfg(not(any(unix, windows)))]
struct Signals;

#[cfg(not(any(unix, windows)))]
impl Signals {
    #[allow(clippy::unnecessary_wraps, reason = "as on other systems")]
    fn new() -> std::io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) -> &'static str {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        INTERRUPT
    }
}

const INTERRUPT: &str = "signal Interrupt(2)";
/// A service is asked for it by its manager, in words of its own.
const HANGUP: &str = "signal Hangup(1)";
#[cfg(windows)]
const SHUTDOWN: &str = "the shutdown of Windows";
