//! The client command: one test, printed as it runs.

use std::sync::Arc;

use linerate::cli::{OutputConfig, ProcessConfig};
use linerate::client::run_client;
use linerate::config::ClientConfig;
use linerate::error::{Error, ExitCode};
use linerate::observe::{Cancel, DebugLog, Detail, Observer};
use linerate::process::PidFile;
use linerate::report::Progress;
use linerate::system_info::run_on_cpu;
use linerate_core::test::End;

use super::console::{Console, Purpose};
use super::printer::Report;
use super::{block_on, open_console, password, signals, tell_failure};

/// Runs the test and says how it ended.
pub(crate) fn client(
    mut config: ClientConfig,
    output: OutputConfig,
    process: ProcessConfig,
) -> ExitCode {
    let purpose = Purpose { end: End::Client, log: None, lasts: false };
    let console = match open_console(&output, purpose) {
        Ok(console) => console,
        Err(error) => return error.exit_code(),
    };
    output.warnings().for_each(|text| console.warn_of_options(text));
    config.affinity.into_iter().for_each(run_on_cpu);
    let ran = ask_password(&mut config)
        .and_then(|()| process.pidfile.map(PidFile::create).transpose())
        .and_then(|pid_file| {
            let pid_file = pid_file.map(Arc::new);
            block_on(async { Ok(run(&config, &output, &console, pid_file).await) })
        });
    ran.unwrap_or_else(|error| {
        tell_failure(&console, &output, &error, End::Client);
        console.flush(None);
        error.exit_code()
    })
}

/// A login's password is not on the command line, where other users would see it.
fn ask_password(config: &mut ClientConfig) -> Result<(), Error> {
    if let Some(credentials) = &mut config.credentials {
        credentials.password = password::read()?;
    }
    Ok(())
}

async fn run(
    config: &ClientConfig,
    output: &OutputConfig,
    console: &Arc<Console>,
    pid_file: Option<Arc<PidFile>>,
) -> ExitCode {
    let cancel = Cancel::new();
    signals::listen(&cancel, ExitCode::Aborted, pid_file, None);
    let report = Report::new(output);
    let mut printer = Printer { output, console, report };
    let ran = run_client(config, &mut printer, &cancel).await;
    // As long as signals are heard: who reads may take his time.
    console.flush(None);
    match ran {
        Ok(_) => ExitCode::Success,
        Err(failure) => failure.error.exit_code(),
    }
}

/// Prints the test.
struct Printer<'a> {
    output: &'a OutputConfig,
    console: &'a Arc<Console>,
    report: Report,
}

impl Observer for Printer<'_> {
    fn handle(&mut self, progress: Progress) {
        self.console.print(self.report.handle(&progress));
        match &progress {
            Progress::Warning(warning) => self.console.warn(warning, None),
            Progress::Ended(end) if self.report.is_text() => {
                end.error.iter().for_each(|error| self.console.error(error));
            }
            _ => {}
        }
    }

    fn debug_log(&self) -> Option<DebugLog> {
        let (level, console) = (self.output.debug?, self.console.clone());
        Some(DebugLog::new(Detail::from_level(level), move |text| console.debug(text, None)))
    }
}
