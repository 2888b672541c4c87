//! From the options as typed to the configuration that runs: which options go together, what they
//! mean for each other, which defaults fill the gaps. The checks come in iperf3's order.

use std::time::Duration;

use clap::parser::ValueSource;
use linerate_core::protocol::code::error_number;
use linerate_core::test::{
    DEFAULT_SECONDS, Direction, Limits, MAX_TCP_BLOCK, MAX_UDP_BLOCK, MIN_UDP_BLOCK, Protocol,
};

use super::args::{Args, CLIENT, SERVER};
use super::problem::{Problem, iperf3_text, number, option_name, spelling};
use super::{Command, OutputConfig};
use crate::config::{ClientConfig, DEFAULT_INTERVAL, DEFAULT_PORT, Family, ServerConfig};

/// Checks the options against each other and fills in the defaults.
pub(super) fn resolve(
    mut args: Args,
    command: &clap::Command,
    matches: &clap::ArgMatches,
    program: &str,
) -> Result<Command, Problem> {
    let typed = Typed { command, matches };
    typed.at_most_one(&["server", "client"], number::BOTH_ROLES)?;
    typed.at_most_one(&["reverse", "bidir"], number::REVERSE_BIDIR)?;
    let host = args.client.take();
    if host.is_none() && !args.server {
        return Err(Problem::new("", iperf3_text(number::NO_ROLE)));
    }
    let output = output(&args, program);
    match host {
        Some(host) => {
            typed.none_under(SERVER, number::SERVER_ONLY)?;
            Ok(Command::Client(client(host, args, &typed)?, output))
        }
        None => {
            typed.none_under(CLIENT, number::CLIENT_ONLY)?;
            Ok(Command::Server(server(args), output))
        }
    }
}

fn client(host: String, args: Args, typed: &Typed<'_>) -> Result<ClientConfig, Problem> {
    let mut config = ClientConfig::new(host, if args.udp { Protocol::Udp } else { Protocol::Tcp });
    let length = block_bytes(&args, typed)?;
    let limits = limits(&args, typed)?;

    config.port = args.port.unwrap_or(DEFAULT_PORT);
    config.family = family(&args);
    config.interval = interval(&args);
    config.bind = args.bind;
    config.connect_timeout = args.connect_timeout;
    config.block_from_path = args.udp && length.is_none();
    config.title = args.title;
    config.extra_data = args.extra_data;
    config.congestion = args.congestion;

    let settings = &mut config.settings;
    settings.direction = match (args.reverse, args.bidir) {
        (true, _) => Direction::Reverse,
        (_, true) => Direction::Bidirectional,
        _ => Direction::Forward,
    };
    settings.parallel = args.parallel.unwrap_or(settings.parallel);
    settings.omit_secs = args.omit.unwrap_or(settings.omit_secs);
    settings.limits = limits;
    settings.block_bytes = length.unwrap_or(settings.block_bytes);
    if let Some(rate) = args.bitrate {
        config.rate_is_default = false;
        settings.bitrate = rate.bitrate;
        settings.burst = rate.burst;
    }
    settings.window_bytes = args.window.filter(|bytes| *bytes > 0);
    settings.mss_bytes = args.set_mss.filter(|bytes| *bytes > 0);
    settings.no_delay = args.no_delay;
    settings.tos = args.tos.or(args.dscp).unwrap_or(settings.tos);
    settings.counters_64bit = args.udp_counters_64bit;
    settings.repeating_payload = args.repeating_payload;
    settings.zero_copy = args.zerocopy;
    settings.server_output = args.get_server_output;
    Ok(config)
}

fn server(args: Args) -> ServerConfig {
    ServerConfig {
        port: args.port.unwrap_or(DEFAULT_PORT),
        family: family(&args),
        interval: interval(&args),
        one_off: args.one_off,
        bind: args.bind,
    }
}

fn output(args: &Args, program: &str) -> OutputConfig {
    OutputConfig {
        program: program.into(),
        format: args.format,
        json: args.json,
        verbose: args.verbose,
        explain: args.explain && program != super::IPERF3_PROGRAM,
        title: args.title.clone(),
    }
}

/// The block size that was asked for; none stands for the default.
fn block_bytes(args: &Args, typed: &Typed<'_>) -> Result<Option<u32>, Problem> {
    let (smallest, largest, error) = if args.udp {
        (MIN_UDP_BLOCK, MAX_UDP_BLOCK, error_number::UDP_BLOCK_SIZE)
    } else {
        (1, MAX_TCP_BLOCK, error_number::BLOCK_SIZE)
    };
    match args.length {
        None | Some(0) => Ok(None),
        Some(bytes) => match u32::try_from(bytes) {
            Ok(bytes) if (smallest..=largest).contains(&bytes) => Ok(Some(bytes)),
            _ => Err(typed.problem(&["length"], error)),
        },
    }
}

/// Zero bytes or blocks are no condition, as in iperf3; zero seconds are one: run until interrupted.
fn limits(args: &Args, typed: &Typed<'_>) -> Result<Limits, Problem> {
    let bytes = args.bytes.filter(|bytes| *bytes > 0);
    let blocks = args.blockcount.filter(|blocks| *blocks > 0);
    let conditions = [
        ("time", args.time.is_some()),
        ("bytes", bytes.is_some()),
        ("blockcount", blocks.is_some()),
    ];
    let given: Vec<_> =
        conditions.into_iter().filter_map(|(id, given)| given.then_some(id)).collect();
    let seconds = match given[..] {
        [] => Some(DEFAULT_SECONDS),
        [_] => args.time.filter(|seconds| *seconds > 0),
        _ => return Err(typed.problem(&given, number::END_CONDITIONS)),
    };
    Ok(Limits { seconds, bytes, blocks })
}

fn family(args: &Args) -> Option<Family> {
    match (args.version4, args.version6) {
        (true, _) => Some(Family::V4),
        (_, true) => Some(Family::V6),
        _ => None,
    }
}

fn interval(args: &Args) -> Option<Duration> {
    Some(args.interval.unwrap_or(DEFAULT_INTERVAL)).filter(|interval| !interval.is_zero())
}

/// What was typed, for messages that name it.
struct Typed<'a> {
    command: &'a clap::Command,
    matches: &'a clap::ArgMatches,
}

impl Typed<'_> {
    fn is_given(&self, id: &str) -> bool {
        self.matches.value_source(id) == Some(ValueSource::CommandLine)
    }

    fn at_most_one(&self, ids: &[&str], number: i32) -> Result<(), Problem> {
        let given: Vec<_> = ids.iter().copied().filter(|id| self.is_given(id)).collect();
        if given.len() > 1 { Err(self.problem(&given, number)) } else { Ok(()) }
    }

    /// No option of the other role.
    fn none_under(&self, heading: &str, number: i32) -> Result<(), Problem> {
        let mut args = self.command.get_arguments();
        let stranger = args.find(|arg| {
            arg.get_help_heading() == Some(heading) && self.is_given(arg.get_id().as_str())
        });
        stranger.map_or(Ok(()), |arg| Err(self.problem(&[arg.get_id().as_str()], number)))
    }

    /// iperf3's words about these options.
    fn problem(&self, ids: &[&str], number: i32) -> Problem {
        let seen: Vec<_> = ids.iter().map(|id| self.shown(id)).collect();
        Problem::new(seen.join(" "), iperf3_text(number))
    }

    /// An option as typed, with its value.
    fn shown(&self, id: &str) -> String {
        let mut args = self.command.get_arguments();
        let arg = args.find(|arg| arg.get_id() == id).expect("an option of the table");
        let value = self.matches.get_raw(id).and_then(Iterator::last);
        match value.filter(|_| arg.get_action().takes_values()) {
            Some(value) => spelling(&option_name(arg), &value.to_string_lossy()),
            None => option_name(arg),
        }
    }
}
