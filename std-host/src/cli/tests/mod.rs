//! The command line as a table: every kind of bad input with the exact line it gets, every option
//! with the configuration it makes.

mod bad_input;
mod good_input;
mod help;
mod table;

use super::*;

fn parse_line(line: &str) -> Result<Command, Stop> {
    parse(line.split_whitespace().map(OsString::from))
}

fn client(options: &str) -> (ClientConfig, OutputConfig) {
    match parse_line(&format!("linerate -c host {options}")) {
        Ok(Command::Client(config, output, _)) => (config, output),
        other => panic!("{options}: {other:?}"),
    }
}

fn server(options: &str) -> (ServerConfig, OutputConfig) {
    match parse_line(&format!("linerate -s {options}")) {
        Ok(Command::Server(config, output, _)) => (config, output),
        other => panic!("{options}: {other:?}"),
    }
}
