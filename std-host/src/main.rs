//! The `linerate` command.

mod command;

use std::process::ExitCode;

use linerate::cli::{self, Command};

fn main() -> ExitCode {
    linerate::system_info::outlive_file_limit();
    linerate::system_info::return_large_blocks();
    let ran = match cli::parse(std::env::args_os()) {
        Ok(Command::Client(config, output, process)) => command::client(config, output, process),
        Ok(Command::Server(config, output, process)) => command::server(config, output, process),
        Ok(Command::Auth(config)) => command::auth(&config),
        Ok(Command::Calibrate(config)) => command::calibrate(&config),
        Ok(Command::Service(config)) => command::service(config),
        Err(stop) => command::stop(&stop),
    };
    command::exit_code(ran).into()
}
