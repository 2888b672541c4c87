//! The options as a table: spelling, value, help. Each value is read into its type as it comes
//! ([`value`]); what one option means for another is decided when all are read (`resolve`). The
//! heading that an option stands under is also the rule which role may use it.

use std::time::Duration;

use clap::{ArgAction, CommandFactory, Parser};

use super::value::{self, Rate};
use crate::report::UnitFormat;

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
        .override_usage(format!(
            "{program} -s [OPTIONS]\n       {program} -c HOST [OPTIONS]\n       {program} calibrate"
        ))
        .mut_arg("explain", |arg| arg.hide(program == super::IPERF3_PROGRAM))
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
    max_term_width = 100,
    after_help = "Sizes and counts take k, m, g or t in steps of 1024, rates in steps of 1000: \
                  -n 1M is 1048576 bytes, -b 1M is 1000000 bits per second."
)]
pub(super) struct Args {
    /// Serve tests
    #[arg(short, long, help_heading = COMMON)]
    pub(super) server: bool,

    /// Test the path to the server at HOST, a name or an address
    #[arg(short, long, value_name = "HOST", value_parser = value::host, help_heading = COMMON)]
    pub(super) client: Option<String>,

    /// Port of the server, for control and data [default: 5201]
    #[arg(short, long, value_name = "PORT", value_parser = value::port, help_heading = COMMON)]
    #[arg(allow_negative_numbers = true)]
    pub(super) port: Option<u16>,

    /// Use only this address of this machine
    #[arg(short = 'B', long, value_name = "HOST", value_parser = value::host)]
    #[arg(help_heading = COMMON)]
    pub(super) bind: Option<String>,

    /// Use IPv4 only
    #[arg(short = '4', long, overrides_with = "version6", help_heading = COMMON)]
    pub(super) version4: bool,

    /// Use IPv6 only
    #[arg(short = '6', long, overrides_with = "version4", help_heading = COMMON)]
    pub(super) version6: bool,

    /// Report every so many seconds, 0.1 to 60; 0 reports once, at the end [default: 1]
    #[arg(short, long, value_name = "SECONDS", value_parser = value::interval)]
    #[arg(allow_negative_numbers = true, help_heading = COMMON)]
    pub(super) interval: Option<Duration>,

    /// Show rates in one unit: k, m, g, t for bits, K, M, G, T for bytes [default: as it fits]
    #[arg(short, long, value_name = "UNIT", value_parser = value::format, help_heading = COMMON)]
    pub(super) format: Option<UnitFormat>,

    /// Write one JSON document instead of text
    #[arg(short = 'J', long, help_heading = COMMON)]
    pub(super) json: bool,

    /// Tell more: system, settings, CPU use
    #[arg(short = 'V', long, help_heading = COMMON)]
    pub(super) verbose: bool,

    /// Print hints and warnings even where no terminal shows them
    #[arg(long, help_heading = COMMON)]
    pub(super) explain: bool,

    /// Accepted for scripts; every line is written at once anyway
    #[arg(long, help_heading = COMMON)]
    pub(super) forceflush: bool,

    /// Print the version and the system
    #[arg(short = 'v', long, action = ArgAction::Version, help_heading = COMMON)]
    pub(super) version: Option<bool>,

    /// Print this help
    #[arg(short, long, action = ArgAction::Help, help_heading = COMMON)]
    pub(super) help: Option<bool>,

    /// End after one test
    #[arg(short = '1', long, help_heading = SERVER)]
    pub(super) one_off: bool,

    /// Send datagrams instead of a TCP byte stream
    #[arg(short, long, help_heading = CLIENT)]
    pub(super) udp: bool,

    /// Length of the test, 0 to 86400; 0 runs until stopped [default: 10]
    #[arg(short, long, value_name = "SECONDS", value_parser = value::duration)]
    #[arg(allow_negative_numbers = true, help_heading = CLIENT)]
    pub(super) time: Option<u32>,

    /// End after so many bytes instead of a time
    #[arg(short = 'n', long, value_name = "BYTES", value_parser = value::count)]
    #[arg(allow_negative_numbers = true, help_heading = CLIENT)]
    pub(super) bytes: Option<u64>,

    /// End after so many blocks or datagrams instead of a time
    #[arg(short = 'k', long, value_name = "BLOCKS", value_parser = value::count)]
    #[arg(allow_negative_numbers = true, help_heading = CLIENT)]
    pub(super) blockcount: Option<u64>,

    /// Bytes a TCP write (up to 1M) or a datagram (16 to 65507) [default: 128K, or what fits one
    /// packet of the path]
    #[arg(short, long, value_name = "BYTES", value_parser = value::length)]
    #[arg(allow_negative_numbers = true, help_heading = CLIENT)]
    pub(super) length: Option<u64>,

    /// Streams side by side in each direction, 1 to 128 [default: 1]
    #[arg(short = 'P', long, value_name = "STREAMS", value_parser = value::parallel)]
    #[arg(allow_negative_numbers = true, help_heading = CLIENT)]
    pub(super) parallel: Option<u16>,

    /// Let the server send
    #[arg(short = 'R', long, help_heading = CLIENT)]
    pub(super) reverse: bool,

    /// Let both ends send at once
    #[arg(long, help_heading = CLIENT)]
    pub(super) bidir: bool,

    /// Bits per second of each stream, 0 for no limit; /BURST sends so many blocks back to back
    /// [default: no limit for TCP, 1048576 for UDP]
    #[arg(short, long, alias = "bandwidth", value_name = "RATE[/BURST]")]
    #[arg(value_parser = value::bitrate, allow_negative_numbers = true, help_heading = CLIENT)]
    pub(super) bitrate: Option<Rate>,

    /// Leave the first seconds out of the result, up to 600 [default: 0]
    #[arg(short = 'O', long, value_name = "SECONDS", value_parser = value::omit)]
    #[arg(allow_negative_numbers = true, help_heading = CLIENT)]
    pub(super) omit: Option<u32>,

    /// Socket buffer size, up to 512M [default: the system tunes it]
    #[arg(short, long, value_name = "BYTES", value_parser = value::window)]
    #[arg(allow_negative_numbers = true, help_heading = CLIENT)]
    pub(super) window: Option<u32>,

    /// Largest TCP segment, up to 32767 [default: the system's]
    #[arg(short = 'M', long, value_name = "BYTES", value_parser = value::mss)]
    #[arg(allow_negative_numbers = true, help_heading = CLIENT)]
    pub(super) set_mss: Option<u32>,

    /// Send small TCP segments at once (no Nagle)
    #[arg(short = 'N', long, help_heading = CLIENT)]
    pub(super) no_delay: bool,

    /// Type of service byte of every packet, 0 to 255, in C notation
    #[arg(short = 'S', long, value_name = "BYTE", value_parser = value::tos)]
    #[arg(overrides_with = "dscp", allow_negative_numbers = true, help_heading = CLIENT)]
    pub(super) tos: Option<u8>,

    /// The same byte by its code point: 0 to 63 or a name such as ef, af41, cs6
    #[arg(long, value_name = "CODE", value_parser = value::dscp)]
    #[arg(overrides_with = "tos", allow_negative_numbers = true, help_heading = CLIENT)]
    pub(super) dscp: Option<u8>,

    /// TCP congestion control of both ends, such as cubic or bbr [default: the system's]
    #[arg(short = 'C', long, alias = "linux-congestion", value_name = "NAME")]
    #[arg(value_parser = value::congestion, help_heading = CLIENT)]
    pub(super) congestion: Option<String>,

    /// Send without copying where the system can
    #[arg(short = 'Z', long, help_heading = CLIENT)]
    pub(super) zerocopy: bool,

    /// Begin every line of text with this name of the test
    #[arg(short = 'T', long, value_name = "TEXT", help_heading = CLIENT)]
    pub(super) title: Option<String>,

    /// Keep this text with the results of both ends
    #[arg(long, value_name = "TEXT", help_heading = CLIENT)]
    pub(super) extra_data: Option<String>,

    /// Show the server's own output, too
    #[arg(long, help_heading = CLIENT)]
    pub(super) get_server_output: bool,

    /// Give up connecting after so many milliseconds
    #[arg(long, value_name = "MS", value_parser = value::connect_timeout)]
    #[arg(allow_negative_numbers = true, help_heading = CLIENT)]
    pub(super) connect_timeout: Option<Duration>,

    /// Number datagrams with 64 bits, for more than 4 billion of them
    #[arg(long = "udp-counters-64bit", help_heading = CLIENT)]
    pub(super) udp_counters_64bit: bool,

    /// Send digits instead of random bytes, for links that compress
    #[arg(long, help_heading = CLIENT)]
    pub(super) repeating_payload: bool,
}
