//! Where a server's limits come from: options, then the policy file, then the defaults. The file is
//! read when the server begins, and can be read again while it runs.

mod file;

use std::path::{Path, PathBuf};
use std::time::Duration;

use linerate_core::units::BitsPerSec;

use self::file::PolicyFile;
use super::value::{BitrateLimit, Queue};
use crate::error::Error;
use crate::limits::{DEFAULT_BITRATE_SPAN, DEFAULT_QUEUE_TIME, Network, Networks, ServerLimits};

/// Where a server's limits come from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LimitsConfig {
    options: LimitChoices,
    policy: Option<PathBuf>,
    service: Service,
}

impl LimitsConfig {
    pub(super) const fn new(
        options: LimitChoices,
        policy: Option<PathBuf>,
        service: Service,
    ) -> Self {
        Self { options, policy, service }
    }

    /// The policy file, if there is one.
    pub fn policy(&self) -> Option<&Path> {
        self.policy.as_deref()
    }

    /// The limits, with the file as it stands.
    ///
    /// # Errors
    /// [`Error::Usage`] that names the file, the line, the key and what is allowed.
    pub fn load(&self) -> Result<ServerLimits, Error> {
        let Some(path) = &self.policy else { return Ok(self.of_options()) };
        PolicyFile::read(path)
            .and_then(|file| self.over(&file))
            .map_err(|what| Error::Usage(one_line(&format!("--policy {}: {what}", path.display()))))
    }

    /// The limits without the file.
    pub(super) fn of_options(&self) -> ServerLimits {
        self.options.clone().resolve()
    }

    /// A file that contradicts itself cannot be used, whatever the options say.
    fn over(&self, file: &PolicyFile) -> Result<ServerLimits, String> {
        let choices = self.options.clone().or(file.choices.clone());
        let conflict = file.choices.conflict(Service::ANY);
        match conflict.or_else(|| choices.conflict(self.service)) {
            Some(conflict) => Err(file.problem(conflict.key(), conflict.words())),
            None => Ok(choices.resolve()),
        }
    }
}

/// What limits are held against besides each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Service {
    /// It serves one test and ends (`-1`).
    pub(super) one_off: bool,
    /// It has the files of a login.
    pub(super) has_login: bool,
}

impl Service {
    /// One that nothing contradicts.
    const ANY: Self = Self { one_off: false, has_login: true };
}

/// Choices that cannot be together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Conflict {
    /// One test at a time, and several.
    Places,
    /// A queue for the one test there is.
    Queue,
    /// A login that nobody could make.
    Login,
}

impl Conflict {
    /// The options that ask for it, where options can.
    pub(super) const fn options(self) -> &'static [&'static str] {
        match self {
            Self::Places => &["exclusive", "max_tests"],
            Self::Queue => &["one_off", "queue"],
            Self::Login => &[],
        }
    }

    /// The key of a file that asks for it.
    const fn key(self) -> &'static str {
        match self {
            Self::Places => "exclusive",
            Self::Queue => "queue",
            Self::Login => "require-login",
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Places => "true: only one of exclusive and max-tests can be",
            Self::Queue => "only one of -1 and a queue can be",
            Self::Login => "true: needs --rsa-private-key-path and --authorized-users-path",
        }
    }
}

/// What somebody chose; the rest is default. A zero is no limit where one can be.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct LimitChoices {
    pub(super) bitrate: Option<BitrateLimit>,
    pub(super) duration: Option<u32>,
    pub(super) bytes: Option<u64>,
    pub(super) streams: Option<u16>,
    pub(super) udp: Option<bool>,
    pub(super) server_bitrate: Option<BitsPerSec>,
    pub(super) streams_in_all: Option<u32>,
    pub(super) exclusive: Option<bool>,
    pub(super) tests: Option<u32>,
    pub(super) tests_per_address: Option<u32>,
    pub(super) tests_per_hour: Option<u32>,
    pub(super) queue: Option<Queue>,
    pub(super) allow: Option<Vec<Network>>,
    pub(super) deny: Option<Vec<Network>>,
    pub(super) require_login: Option<bool>,
}

impl LimitChoices {
    /// These, and where nothing was chosen, the others. How many tests there may be at once is one
    /// choice, however it is said.
    fn or(self, other: Self) -> Self {
        let says_tests = self.exclusive.is_some() || self.tests.is_some();
        let (exclusive, tests) = match says_tests {
            true => (self.exclusive, self.tests),
            false => (other.exclusive, other.tests),
        };
        Self {
            bitrate: self.bitrate.or(other.bitrate),
            duration: self.duration.or(other.duration),
            bytes: self.bytes.or(other.bytes),
            streams: self.streams.or(other.streams),
            udp: self.udp.or(other.udp),
            server_bitrate: self.server_bitrate.or(other.server_bitrate),
            streams_in_all: self.streams_in_all.or(other.streams_in_all),
            exclusive,
            tests,
            tests_per_address: self.tests_per_address.or(other.tests_per_address),
            tests_per_hour: self.tests_per_hour.or(other.tests_per_hour),
            queue: self.queue.or(other.queue),
            allow: self.allow.or(other.allow),
            deny: self.deny.or(other.deny),
            require_login: self.require_login.or(other.require_login),
        }
    }

    /// What of them cannot be together, of such a server.
    pub(super) fn conflict(&self, service: Service) -> Option<Conflict> {
        let has_queue = self.queue.is_some_and(|queue| queue.clients > 0);
        match () {
            () if self.exclusive == Some(true) && self.tests.is_some_and(|tests| tests > 1) => {
                Some(Conflict::Places)
            }
            () if service.one_off && has_queue => Some(Conflict::Queue),
            () if !service.has_login && self.require_login == Some(true) => Some(Conflict::Login),
            () => None,
        }
    }

    fn resolve(self) -> ServerLimits {
        let defaults = ServerLimits::DEFAULT;
        let queue = self.queue.map_or(0, |queue| queue.clients);
        let is_exclusive = self.exclusive.unwrap_or(queue > 0 && self.tests.is_none());
        ServerLimits {
            bitrate: self.bitrate.and_then(|limit| limit.bitrate),
            bitrate_span: self.bitrate.and_then(|l| l.span).unwrap_or(DEFAULT_BITRATE_SPAN),
            duration: not_zero(self.duration).map(|secs| Duration::from_secs(secs.into())),
            bytes: not_zero(self.bytes),
            streams: self.streams.unwrap_or(defaults.streams),
            udp: self.udp.unwrap_or(defaults.udp),
            server_bitrate: self.server_bitrate.filter(|rate| rate.0 > 0),
            streams_in_all: self.streams_in_all.unwrap_or(defaults.streams_in_all),
            tests: if is_exclusive { 1 } else { self.tests.unwrap_or(defaults.tests) },
            tests_per_address: not_zero(self.tests_per_address),
            tests_per_hour: not_zero(self.tests_per_hour),
            queue,
            queue_time: self.queue.and_then(|q| q.time).unwrap_or(DEFAULT_QUEUE_TIME),
            networks: Networks {
                allow: self.allow.unwrap_or_default(),
                deny: self.deny.unwrap_or_default(),
            },
            require_login: self.require_login.unwrap_or(defaults.require_login),
        }
    }
}

/// Whatever is in a file or its name does not end a line or turn a terminal over.
fn one_line(text: &str) -> String {
    let mut line = String::new();
    for c in text.chars() {
        match c {
            '"' | '\'' | '\\' => line.push(c),
            _ => line.extend(c.escape_debug()),
        }
    }
    line
}

fn not_zero<T: Default + PartialEq>(value: Option<T>) -> Option<T> {
    value.filter(|value| *value != T::default())
}
