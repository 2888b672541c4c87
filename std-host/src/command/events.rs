//! The event log of Windows, where a service has what others have on their error stream. A process is a
//! service or none, from its beginning to its end.

use super::writer::Output;

/// The event log, if this process is a service.
#[cfg(windows)]
pub(super) fn log() -> Option<Output> {
    use linerate::report::log::Severity;
    use linerate_windows::event_log::Weight;
    let log = LOG.get()?.clone();
    Some(Output::Events(Box::new(move |severity, text| {
        let weight = match severity {
            Severity::Information => Weight::Information,
            Severity::Warning => Weight::Warning,
            Severity::Error => Weight::Error,
        };
        log.report(weight, text)
    })))
}

/// Elsewhere services have an error stream.
#[cfg(not(windows))]
pub(super) fn log() -> Option<Output> {
    None
}

/// Opens it for the service of this name. Without it the service works on in silence.
#[cfg(windows)]
pub(super) fn open(service: &std::ffi::OsStr) {
    if let Ok(source) = linerate_windows::event_log::EventSource::open(service) {
        LOG.get_or_init(|| std::sync::Arc::new(source));
    }
}

#[cfg(windows)]
static LOG: std::sync::OnceLock<std::sync::Arc<linerate_windows::event_log::EventSource>> =
    std::sync::OnceLock::new();
