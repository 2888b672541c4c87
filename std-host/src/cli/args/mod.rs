//! The options as a table: spelling, value, help. Each value is read into its type as it comes
//! ([`super::value`]); what one option means for another is decided when all are read (`resolve`). The
//! heading that an option stands under is also the rule which role may use it.

mod client;
mod common;
mod server;

use clap::{CommandFactory, Parser};

pub(super) use self::client::ClientArgs;
pub(super) use self::common::CommonArgs;
pub(super) use self::server::ServerArgs;
use super::examples;

/// Options that choose the role, and those that both roles have.
pub(super) const COMMON: &str = "Client or server";
/// Options that only a server has.
pub(super) const SERVER: &str = "Server";
/// Options that only a client has.
pub(super) const CLIENT: &str = "Client";

/// The parser under the name that the command was started as.
pub(super) fn command(program: &str) -> clap::Command {
    Args::command()
        .bin_name(program)
        .override_usage(usage(program))
        .after_help(examples::text(program))
        .mut_arg("explain", |arg| arg.hide(program == super::IPERF3_PROGRAM))
}

/// Under iperf3's name there is nothing but iperf3's roles.
fn usage(program: &str) -> String {
    let roles = format!("{program} -s [OPTIONS]\n       {program} -c HOST [OPTIONS]");
    if program == super::IPERF3_PROGRAM {
        return roles;
    }
    let words = super::SUBCOMMANDS.join(" | ");
    format!("{roles}\n       {program} {words}  [-h]")
}

/// Measures what a network can do between a client and a server.
#[derive(Debug, Parser)]
#[command(
    version,
    no_binary_name = true,
    disable_help_flag = true,
    disable_version_flag = true,
    infer_long_args = true,
    args_override_self = true,
    max_term_width = 100
)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) common: CommonArgs,
    #[command(flatten)]
    pub(super) server: ServerArgs,
    #[command(flatten)]
    pub(super) client: ClientArgs,
}
