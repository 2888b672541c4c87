//! Services: what the service manager is told and asked of one, and the process that is one. It knows
//! states, requests and numbers; what a service does is its caller's.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use windows_service::service::{
    Service, ServiceAccess, ServiceAction, ServiceActionType, ServiceControl, ServiceControlAccept,
    ServiceErrorControl, ServiceExitCode, ServiceFailureActions, ServiceFailureResetPeriod,
    ServiceInfo, ServiceStartType, ServiceState, ServiceStatus, ServiceType,
};
use windows_service::service_control_handler::{
    self, ServiceControlHandlerResult, ServiceStatusHandle,
};
use windows_service::service_manager::{ServiceManager, ServiceManagerAccess};
use windows_service::{define_windows_service, service_dispatcher};

/// A service to be made.
#[derive(Debug)]
pub struct Plan<'a> {
    /// What commands call it.
    pub name: &'a OsStr,
    /// What lists of services call it.
    pub display_name: &'a OsStr,
    /// What it is for, in one line.
    pub description: &'a str,
    /// The program.
    pub program: PathBuf,
    /// The words after it.
    pub words: Vec<OsString>,
}

/// Makes a service that starts with Windows, has the least rights of all accounts that need no password,
/// and is started again when it fails: after 5, then 30, then every 60 seconds.
///
/// # Errors
/// The system's: it takes an administrator, and the name may be taken.
pub fn install(plan: Plan<'_>) -> io::Result<()> {
    let rights = ServiceManagerAccess::CONNECT | ServiceManagerAccess::CREATE_SERVICE;
    let info = ServiceInfo {
        name: plan.name.into(),
        display_name: plan.display_name.into(),
        service_type: ServiceType::OWN_PROCESS,
        start_type: ServiceStartType::AutoStart,
        error_control: ServiceErrorControl::Normal,
        executable_path: plan.program,
        launch_arguments: plan.words,
        dependencies: Vec::new(),
        account_name: Some(ACCOUNT.into()),
        account_password: None,
    };
    let service = manager(rights)?.create_service(&info, ServiceAccess::ALL_ACCESS).map_err(os)?;
    let described = service.set_description(plan.description).map_err(os);
    // The rest is comfort that a system may lack.
    let _ = described.and_then(|()| restart_on_failure(&service));
    Ok(())
}

fn restart_on_failure(service: &Service) -> io::Result<()> {
    let restart = |secs| ServiceAction {
        action_type: ServiceActionType::Restart,
        delay: Duration::from_secs(secs),
    };
    let update = ServiceFailureActions {
        reset_period: ServiceFailureResetPeriod::After(Duration::from_secs(24 * 60 * 60)),
        reboot_msg: None,
        command: None,
        actions: Some([5, 30, 60].map(restart).into()),
    };
    service.update_failure_actions(update).map_err(os)?;
    // An end with an error is a failure, not only a crash.
    service.set_failure_actions_on_non_crash_failures(true).map_err(os)
}

/// A service that the manager has.
pub struct Installed(Service);

/// What a service does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Nothing, and how it ended.
    Stopped(End),
    /// It begins.
    Starting,
    /// It works, as the process of this number.
    Running(u32),
    /// It ends.
    Stopping,
    /// Something that services of ours never do.
    Other,
}

/// How a service ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Well, or it has not run yet.
    Success,
    /// By an error of the system, which has words for it.
    System(u32),
    /// By an error of its own.
    Own(u32),
}

/// What is to be done with a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To look at it.
    Look,
    /// To start it.
    Start,
    /// To stop it.
    Stop,
    /// To stop and remove it.
    Remove,
}

impl Installed {
    /// # Errors
    /// The system's: there is none of this name, or all but looking takes an administrator.
    pub fn open(name: &OsStr, purpose: Purpose) -> io::Result<Self> {
        let look = ServiceAccess::QUERY_STATUS | ServiceAccess::QUERY_CONFIG;
        let rights = look
            | match purpose {
                Purpose::Look => ServiceAccess::empty(),
                Purpose::Start => ServiceAccess::START,
                Purpose::Stop => ServiceAccess::STOP,
                Purpose::Remove => ServiceAccess::STOP | ServiceAccess::DELETE,
            };
        let manager = manager(ServiceManagerAccess::CONNECT)?;
        manager.open_service(name, rights).map(Self).map_err(os)
    }

    /// The line that starts it: the program and its words.
    ///
    /// # Errors
    /// The system's.
    pub fn command_line(&self) -> io::Result<OsString> {
        Ok(self.0.query_config().map_err(os)?.executable_path.into_os_string())
    }

    /// # Errors
    /// The system's.
    pub fn state(&self) -> io::Result<State> {
        let status = self.0.query_status().map_err(os)?;
        Ok(match status.current_state {
            ServiceState::Stopped => State::Stopped(status.exit_code.into()),
            ServiceState::StartPending => State::Starting,
            ServiceState::Running => State::Running(status.process_id.unwrap_or(0)),
            ServiceState::StopPending => State::Stopping,
            _ => State::Other,
        })
    }

    /// Lets it begin, and does not wait for it.
    ///
    /// # Errors
    /// The system's.
    pub fn start(&self) -> io::Result<()> {
        self.0.start::<&OsStr>(&[]).map_err(os)
    }

    /// Asks it to end, and does not wait for it.
    ///
    /// # Errors
    /// The system's.
    pub fn stop(&self) -> io::Result<()> {
        self.0.stop().map(drop).map_err(os)
    }

    /// Removes it, once it has ended and nobody looks at it.
    ///
    /// # Errors
    /// The system's.
    pub fn remove(self) -> io::Result<()> {
        self.0.delete().map_err(os)
    }
}

impl fmt::Debug for Installed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Installed").finish_non_exhaustive()
    }
}

/// What the service manager asks the process for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// To end.
    Stop,
    /// To end, because Windows does.
    Shutdown,
    /// To read its parameters again.
    Reread,
}

/// The service that this process is.
#[derive(Debug, Clone, Copy)]
pub struct Status(ServiceStatusHandle);

/// What a process does as a service.
struct Job {
    name: OsString,
    on_request: fn(Request),
    work: Box<dyn Fn() -> End + Send + Sync>,
}

/// Makes this process the service that the manager has started it as: does the work and tells what
/// became of it. `on_request` is called by a thread of the system.
///
/// # Errors
/// The system's: nobody but the service manager can start a service's process.
pub fn run(
    name: &OsStr,
    on_request: fn(Request),
    work: impl Fn() -> End + Send + Sync + 'static,
) -> io::Result<()> {
    let job = Job { name: name.into(), on_request, work: Box::new(work) };
    if JOB.set(job).is_err() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    service_dispatcher::start(name, enter).map_err(os)
}

/// The service that this process is, once the manager has been told that it begins.
pub fn current() -> Option<Status> {
    CURRENT.get().copied()
}

define_windows_service!(enter, main);

fn main(_words: Vec<OsString>) {
    let Some(job) = JOB.get() else { return };
    let on_request = |control| {
        let request = match control {
            ServiceControl::Interrogate => return ServiceControlHandlerResult::NoError,
            ServiceControl::Stop => Request::Stop,
            ServiceControl::Shutdown => Request::Shutdown,
            ServiceControl::ParamChange => Request::Reread,
            _ => return ServiceControlHandlerResult::NotImplemented,
        };
        if request != Request::Reread {
            current().iter().for_each(Status::stopping);
        }
        (job.on_request)(request);
        ServiceControlHandlerResult::NoError
    };
    let Ok(handle) = service_control_handler::register(&job.name, on_request) else { return };
    let status = *CURRENT.get_or_init(|| Status(handle));
    status.tell(ServiceState::StartPending, START_TIME, End::Success);
    let end = (job.work)();
    status.tell(ServiceState::Stopped, Duration::ZERO, end);
}

impl Status {
    /// It works.
    pub fn running(&self) {
        self.tell(ServiceState::Running, Duration::ZERO, End::Success);
    }

    fn stopping(&self) {
        self.tell(ServiceState::StopPending, STOP_TIME, End::Success);
    }

    /// A manager that does not listen is no reason to stop the work.
    fn tell(self, state: ServiceState, wait_hint: Duration, end: End) {
        let controls_accepted = match state {
            ServiceState::Running => {
                ServiceControlAccept::STOP
                    | ServiceControlAccept::SHUTDOWN
                    | ServiceControlAccept::PARAM_CHANGE
            }
            _ => ServiceControlAccept::empty(),
        };
        let _ = self.0.set_service_status(ServiceStatus {
            service_type: ServiceType::OWN_PROCESS,
            current_state: state,
            controls_accepted,
            exit_code: end.into(),
            checkpoint: 0,
            wait_hint,
            process_id: None,
        });
    }
}

impl From<End> for ServiceExitCode {
    fn from(end: End) -> Self {
        match end {
            End::Success => Self::NO_ERROR,
            End::System(code) => Self::Win32(code),
            End::Own(code) => Self::ServiceSpecific(code),
        }
    }
}

impl From<ServiceExitCode> for End {
    fn from(code: ServiceExitCode) -> Self {
        match code {
            ServiceExitCode::Win32(0 | NEVER_STARTED) => Self::Success,
            ServiceExitCode::Win32(code) => Self::System(code),
            ServiceExitCode::ServiceSpecific(code) => Self::Own(code),
        }
    }
}

fn manager(rights: ServiceManagerAccess) -> io::Result<ServiceManager> {
    ServiceManager::local_computer(None::<&OsStr>, rights).map_err(os)
}

/// The system's error, which has words and a number.
fn os(error: windows_service::Error) -> io::Error {
    match error {
        windows_service::Error::Winapi(error) => error,
        other => io::Error::new(io::ErrorKind::InvalidInput, other.to_string()),
    }
}

static JOB: OnceLock<Job> = OnceLock::new();
static CURRENT: OnceLock<Status> = OnceLock::new();

/// An account of every Windows that needs no password, and has fewer rights than a user.
pub const ACCOUNT: &str = r"NT AUTHORITY\LocalService";
/// ERROR_SERVICE_NEVER_STARTED.
const NEVER_STARTED: u32 = 1077;
/// Keys and names to resolve may take a while.
const START_TIME: Duration = Duration::from_secs(20);
/// As long as the last tests and the last lines may take.
const STOP_TIME: Duration = Duration::from_secs(10);
