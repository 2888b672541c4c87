//! `linerate service`: makes, starts, stops and removes a server that is a service of Windows, and is
//! one. A service of somebody else's is left alone, whatever its name.

use linerate::cli::ServiceConfig;
use linerate::error::{Error, ExitCode};
use linerate::report::error_line;
use linerate_core::test::End;

use super::console;

/// Does what was asked for and says what became of it.
pub(crate) fn service(config: ServiceConfig) -> ExitCode {
    match system::service(config) {
        Ok(text) => {
            console::print(&text);
            ExitCode::Success
        }
        Err(error) => {
            console::complain(&error_line("linerate", &error, End::Client));
            error.exit_code()
        }
    }
}

#[cfg(not(windows))]
mod system {
    use super::{Error, ServiceConfig};

    pub(super) fn service(_config: ServiceConfig) -> Result<String, Error> {
        Err(Error::Usage(
            "service: only Windows has such services; for systemd there is a unit file, \
             std-host/dist/linerate.service (docs/server.md)"
                .into(),
        ))
    }
}

#[cfg(windows)]
mod system {
    use std::ffi::{OsStr, OsString};
    use std::fmt::Write as _;
    use std::io;
    use std::iter::once;
    use std::thread;
    use std::time::{Duration, Instant};

    use linerate::cli::{self, Command, words_of_service};
    use linerate_windows::event_log as sources;
    use linerate_windows::service::{self as windows, End, Installed, Plan, Purpose, State};

    use super::super::{events, firewall, server, signals, stop};
    use super::{Error, ServiceConfig};

    pub(super) fn service(config: ServiceConfig) -> Result<String, Error> {
        match config {
            ServiceConfig::Install { name, display_name, words } => {
                install(&name, &display_name, words)
            }
            ServiceConfig::Start(name) => start(&name),
            ServiceConfig::Stop(name) => end(&open(&name, Purpose::Stop, "stop")?, &name)
                .map(|()| format!("service {} is stopped\n", name.display())),
            ServiceConfig::Status(name) => status(&name),
            ServiceConfig::Uninstall(name) => uninstall(&name),
            ServiceConfig::Run { name, words } => run(&name, words),
        }
    }

    fn install(name: &OsStr, display_name: &str, words: Vec<OsString>) -> Result<String, Error> {
        let failed = |error| problem("install", name, &error);
        let program = std::env::current_exe().map_err(failed)?;
        let plan = Plan {
            name,
            display_name: display_name.as_ref(),
            description: DESCRIPTION,
            program: program.clone(),
            words: words_of_service(name, words),
        };
        windows::install(plan).map_err(failed)?;
        sources::register(name).map_err(failed)?;
        let (shown, account) = (name.display(), windows::ACCOUNT);
        let mut text =
            format!("service {shown} is installed: it starts with Windows, as {account}\n");
        let _ = writeln!(text, "start it at once: linerate service start --name \"{shown}\"");
        let rule = firewall::rule(&name.to_string_lossy(), &program);
        let _ = writeln!(text, "let clients through Windows Firewall: {rule}");
        Ok(text)
    }

    fn start(name: &OsStr) -> Result<String, Error> {
        let service = open(name, Purpose::Start, "start")?;
        let failed = |error| problem("start", name, &error);
        match service.start() {
            Err(error) if error.raw_os_error() != Some(ALREADY_RUNS) => return Err(failed(error)),
            _ => {}
        }
        let state = wait(&service, |state| {
            !matches!(state, State::Starting | State::Stopped(End::Success))
        });
        match state.map_err(failed)? {
            State::Running(process) => {
                Ok(format!("service {} runs, as process {process}\n", name.display()))
            }
            State::Stopped(end) => Err(failed(io::Error::other(format!(
                "it ended: {}; the event viewer has more under Application",
                words_of_end(end)
            )))),
            _ => Err(failed(io::ErrorKind::TimedOut.into())),
        }
    }

    /// Asks the service to end, and waits for that.
    fn end(service: &Installed, name: &OsStr) -> Result<(), Error> {
        let failed = |error| problem("stop", name, &error);
        match service.stop() {
            Err(error) if !matches!(error.raw_os_error(), Some(NOT_STARTED | NO_CONTROL)) => {
                return Err(failed(error));
            }
            _ => {}
        }
        match wait(service, |state| matches!(state, State::Stopped(_))).map_err(failed)? {
            State::Stopped(_) => Ok(()),
            _ => Err(failed(io::ErrorKind::TimedOut.into())),
        }
    }

    fn status(name: &OsStr) -> Result<String, Error> {
        let service = open(name, Purpose::Look, "status")?;
        let failed = |error| problem("status", name, &error);
        let state = match service.state().map_err(failed)? {
            State::Stopped(End::Success) => "stopped".into(),
            State::Stopped(end) => format!("stopped: {}", words_of_end(end)),
            State::Starting => "starting".into(),
            State::Running(process) => format!("running, as process {process}"),
            State::Stopping => "stopping".into(),
            State::Other => "unknown".into(),
        };
        let line = service.command_line().map_err(failed)?;
        Ok(format!("service {}: {state}\n{}\n", name.display(), line.display()))
    }

    fn uninstall(name: &OsStr) -> Result<String, Error> {
        let service = open(name, Purpose::Remove, "uninstall")?;
        let failed = |error| problem("uninstall", name, &error);
        end(&service, name)?;
        service.remove().map_err(failed)?;
        sources::unregister(name).map_err(failed)?;
        Ok(format!("service {} is removed\n", name.display()))
    }

    fn open(name: &OsStr, purpose: Purpose, what: &str) -> Result<Installed, Error> {
        let failed = |error| problem(what, name, &error);
        let service = Installed::open(name, purpose).map_err(failed)?;
        let line = service.command_line().map_err(failed)?;
        match line.to_string_lossy().contains(OURS) {
            true => Ok(service),
            false => Err(failed(io::Error::other("it is no service of linerate"))),
        }
    }

    /// Looks at a service until it is in such a state, or for as long as it may take; its last state.
    fn wait(service: &Installed, is_there: impl Fn(State) -> bool) -> io::Result<State> {
        let began = Instant::now();
        loop {
            let state = service.state()?;
            if is_there(state) || began.elapsed() >= PATIENCE {
                return Ok(state);
            }
            thread::sleep(PAUSE);
        }
    }

    /// What the service manager starts. What fails from here on is in the event log.
    fn run(name: &OsStr, words: Vec<OsString>) -> Result<String, Error> {
        let service = name.to_owned();
        let work = move || {
            events::open(&service);
            serve(words.clone())
        };
        windows::run(name, signals::request, work).map_err(|error| match error.raw_os_error() {
            Some(NO_SERVICE) => Error::Usage(
                "service run is what the service manager starts; what starts it is service start"
                    .into(),
            ),
            _ => problem("run", name, &error),
        })?;
        Ok(String::new())
    }

    fn serve(words: Vec<OsString>) -> End {
        let program = std::env::args_os().next().unwrap_or_default();
        match cli::parse(once(program).chain(words)) {
            Ok(Command::Server(config, output, process)) => {
                match server::run(config, output, process) {
                    Ok(()) => End::Success,
                    Err(error) => end_by(&error),
                }
            }
            Ok(_) => End::System(BAD_ARGUMENTS),
            Err(why) => {
                stop(&why);
                End::System(BAD_ARGUMENTS)
            }
        }
    }

    /// The system's own number says more than ours.
    fn end_by(error: &Error) -> End {
        match error {
            Error::System { code: Some(code), .. } if *code > 0 => End::System(code.unsigned_abs()),
            Error::Usage(_) => End::System(BAD_ARGUMENTS),
            other => End::Own(other.exit_code() as u32),
        }
    }

    fn words_of_end(end: End) -> String {
        match end {
            End::Success => "without an error".into(),
            End::System(code) => {
                io::Error::from_raw_os_error(i32::try_from(code).unwrap_or(i32::MAX)).to_string()
            }
            End::Own(code) => format!("exit code {code}"),
        }
    }

    /// What the system says, and what to do about it where that is known.
    fn problem(what: &str, name: &OsStr, error: &io::Error) -> Error {
        let what = format!("service {what}: {}", name.display());
        match (Error::system(what, error), error.raw_os_error()) {
            (Error::System { what, message, code }, Some(ACCESS_DENIED)) => {
                let message = format!("{message} {ADMINISTRATOR}");
                Error::System { what, message, code }
            }
            (error, _) => error,
        }
    }

    const DESCRIPTION: &str = "Serves network measurements to clients of linerate and iperf3.";
    /// What stands in the line of every service of ours.
    const OURS: &str = " service run --name ";
    const ADMINISTRATOR: &str = "(it takes an administrator: open the console with \"Run as \
                                 administrator\"; a service that may not start has a program that \
                                 LocalService may not read, as in a user's own folders)";
    const ACCESS_DENIED: i32 = 5;
    /// ERROR_BAD_ARGUMENTS: what the service was installed with cannot be used.
    const BAD_ARGUMENTS: u32 = 160;
    /// ERROR_SERVICE_ALREADY_RUNNING.
    const ALREADY_RUNS: i32 = 1056;
    /// ERROR_SERVICE_CANNOT_ACCEPT_CTRL: it ends already, or has not begun.
    const NO_CONTROL: i32 = 1061;
    /// ERROR_SERVICE_NOT_ACTIVE.
    const NOT_STARTED: i32 = 1062;
    /// ERROR_FAILED_SERVICE_CONTROLLER_CONNECT.
    const NO_SERVICE: i32 = 1063;
    /// As long as the service manager waits itself.
    const PATIENCE: Duration = Duration::from_secs(30);
    const PAUSE: Duration = Duration::from_millis(100);
}
