//! The client command: one test, printed as it runs.

use linerate::cli::{OutputConfig, ProcessConfig};
use linerate::client::run_client;
use linerate::config::ClientConfig;
use linerate::error::{Error, ExitCode};
use linerate::observe::Cancel;
use linerate::report::json::{JsonOptions, JsonReport, to_document_string};
use linerate::report::text::{TextOptions, TextReport};
use linerate::report::{Progress, error_line};
use linerate::system_info::{run_on_cpu, system_info};
use linerate_core::test::End;

use super::{block_on, console, is_plain, password, signals};

/// Runs the test and says how it ended.
pub(crate) fn client(
    mut config: ClientConfig,
    output: OutputConfig,
    _process: &ProcessConfig,
) -> ExitCode {
    for warning in output.warnings() {
        console::complain(&format!("warning: {warning}"));
    }
    config.affinity.into_iter().for_each(run_on_cpu);
    let ran = ask_password(&mut config)
        .and_then(|()| block_on(async { Ok(run(&config, &output).await) }));
    ran.unwrap_or_else(|error| {
        console::complain(&error_line(&output.program, &error, End::Client));
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

async fn run(config: &ClientConfig, output: &OutputConfig) -> ExitCode {
    let cancel = Cancel::new();
    signals::listen(&cancel, ExitCode::Aborted);
    let mut printer = Printer::new(output);
    let mut observer = |progress: Progress| printer.handle(&progress, output);
    match run_client(config, &mut observer, &cancel).await {
        Ok(_) => ExitCode::Success,
        Err(failure) => failure.error.exit_code(),
    }
}

enum Printer {
    Text(TextReport),
    Json(JsonReport),
}

impl Printer {
    fn new(output: &OutputConfig) -> Self {
        let system_info = system_info();
        if output.json {
            Self::Json(JsonReport::new(JsonOptions { system_info, plain: is_plain(output) }))
        } else {
            Self::Text(TextReport::new(TextOptions {
                format: output.format,
                verbose: output.verbose,
                title: output.title.clone(),
                system_info,
            }))
        }
    }

    fn handle(&mut self, progress: &Progress, output: &OutputConfig) {
        match self {
            Self::Text(report) => console::print(&report.handle(progress)),
            Self::Json(report) => report.handle(progress),
        }
        match (progress, self) {
            (Progress::Warning(warning), _) => console::warn(output, warning),
            (Progress::Ended(_), Self::Json(report)) => {
                console::print(&to_document_string(&report.finish()));
            }
            (Progress::Ended(end), Self::Text(_)) => {
                end.error.iter().for_each(|error| complain(output, error));
            }
            _ => {}
        }
    }
}

fn complain(output: &OutputConfig, error: &Error) {
    console::complain(&error_line(&output.program, error, End::Client));
}
