//! What is made from the definition of the options: completions for shells, and the manual page.

use std::io;

use clap::{ArgAction, CommandFactory, Parser};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use super::examples::EXAMPLES;
use super::{args, auth, calibrate, service};
use crate::error::ExitCode;

/// Prints a script that teaches a shell to complete this program's options.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true, max_term_width = 100)]
pub(super) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,

    /// Print this help
    #[arg(short, long, action = ArgAction::Help)]
    help: Option<bool>,
}

/// The script for the shell that was asked for.
pub(super) fn completions(args: &CompletionsArgs, program: &str) -> String {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut whole(program), program, &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// Prints the manual page, for `man -l -`.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true, max_term_width = 100)]
pub(super) struct ManArgs {
    /// Print this help
    #[arg(short, long, action = ArgAction::Help)]
    help: Option<bool>,
}

/// The manual page, in roff.
///
/// # Errors
/// None: it is written into memory.
pub(super) fn manual(program: &str) -> io::Result<String> {
    // The one line that stands for the usage has no place in a manual: its synopsis lists the roles.
    let page = Man::new(whole(program));
    let mut text = Vec::new();
    page.render_title(&mut text)?;
    page.render_name_section(&mut text)?;
    synopsis(program).to_writer(&mut text)?;
    description().to_writer(&mut text)?;
    page.render_options_section(&mut text)?;
    page.render_subcommands_section(&mut text)?;
    for section in [examples(program), exit_status(), environment()] {
        section.to_writer(&mut text)?;
    }
    page.render_version_section(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// The command with all its subcommands, as only these texts need it.
fn whole(program: &str) -> clap::Command {
    // Each subcommand has -h; a word of its own for help would be one that the parser does not know.
    args::command(program)
        .disable_help_subcommand(true)
        .subcommand(auth::AuthArgs::command().name(super::AUTH))
        .subcommand(calibrate::CalibrateArgs::command().name(super::CALIBRATE))
        .subcommand(CompletionsArgs::command().name(super::COMPLETIONS))
        .subcommand(ManArgs::command().name(super::MAN))
        .subcommand(service::ServiceArgs::command().name(super::SERVICE))
}

fn synopsis(program: &str) -> Roff {
    let mut section = Roff::new();
    section.control("SH", ["SYNOPSIS"]);
    for words in [" -s [OPTIONS]", " -c HOST [OPTIONS]", " COMMAND [OPTIONS]"] {
        section.text([bold(program), roman(words)]).control("br", []);
    }
    section
}

fn description() -> Roff {
    let mut section = Roff::new();
    section.control("SH", ["DESCRIPTION"]);
    for paragraph in [
        "Measures throughput, loss, jitter and delay over TCP and UDP. It speaks the protocol of \
         iperf3 in both roles: either end can be iperf3 instead.",
        "The client says what is measured and for how long; all options of a test are its own. A \
         server runs any number of tests at once and prints each. An option that a system cannot \
         serve is said once, and the test goes on without it.",
    ] {
        section.control("PP", []).text([roman(paragraph)]);
    }
    section
}

fn examples(program: &str) -> Roff {
    let mut section = Roff::new();
    section.control("SH", ["EXAMPLES"]);
    for (task, words) in EXAMPLES {
        if !task.is_empty() {
            section.control("TP", []).text([roman(*task)]);
        }
        section.text([bold(format!("{program} {words}"))]).control("br", []);
    }
    section
}

fn exit_status() -> Roff {
    let mut section = Roff::new();
    section.control("SH", ["EXIT STATUS"]);
    for code in ExitCode::ALL {
        let number = (code as u8).to_string();
        section.control("TP", []).text([bold(number)]).text([roman(code.meaning())]);
    }
    section
}

fn environment() -> Roff {
    let mut section = Roff::new();
    section.control("SH", ["ENVIRONMENT"]);
    for (name, meaning) in [
        ("IPERF3_PASSWORD", "The password of a login; without it the command asks."),
        (
            "TMPDIR, TEMP, TMP",
            "Where the block of a zero-copy sender lies, on systems that need it.",
        ),
    ] {
        section.control("TP", []).text([bold(name)]).text([roman(meaning)]);
    }
    section
}
