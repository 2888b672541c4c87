//! Options that choose the role, and those that both roles have.

use std::path::PathBuf;
use std::time::Duration;

use clap::ArgAction;

use crate::cli::value::{self, Affinity};
use crate::config::KeepAlive;
use crate::report::UnitFormat;

#[derive(Debug, clap::Args)]
#[command(next_help_heading = super::COMMON)]
pub(in crate::cli) struct CommonArgs {
    /// Serve tests
    #[arg(short, long)]
    pub(in crate::cli) server: bool,

    /// Test the path to the server at HOST, a name or an address
    #[arg(short, long, value_name = "HOST", value_parser = value::host)]
    pub(in crate::cli) client: Option<String>,

    /// Port of the server, for control and data [default: 5201]
    #[arg(short, long, alias = "po", value_name = "PORT", value_parser = value::port)]
    #[arg(allow_negative_numbers = true)]
    pub(in crate::cli) port: Option<u16>,

    /// Use only this address of this machine; %DEVICE behind it binds to that device, too
    #[arg(short = 'B', long, value_name = "HOST", value_parser = value::host)]
    pub(in crate::cli) bind: Option<String>,

    /// Use only this network device, such as eth0
    #[arg(long, value_name = "DEVICE", value_parser = value::device)]
    pub(in crate::cli) bind_dev: Option<String>,

    /// Client: local port of the first data stream; the others follow it
    #[arg(long, value_name = "PORT", value_parser = value::port)]
    #[arg(allow_negative_numbers = true)]
    pub(in crate::cli) cport: Option<u16>,

    /// Use IPv4 only
    #[arg(short = '4', long, overrides_with = "version6")]
    pub(in crate::cli) version4: bool,

    /// Use IPv6 only
    #[arg(short = '6', long, overrides_with = "version4")]
    pub(in crate::cli) version6: bool,

    /// Report every so many seconds, 0.1 to 60; 0 reports once, at the end [default: 1]
    #[arg(short, long, value_name = "SECONDS", value_parser = value::interval)]
    #[arg(allow_negative_numbers = true)]
    pub(in crate::cli) interval: Option<Duration>,

    /// Show rates in one unit: k, m, g, t for bits, K, M, G, T for bytes [default: as it fits]
    #[arg(short, long, value_name = "UNIT", value_parser = value::format)]
    pub(in crate::cli) format: Option<UnitFormat>,

    /// Write one JSON document instead of text
    #[arg(short = 'J', long)]
    pub(in crate::cli) json: bool,

    /// Write a line of JSON for each thing that happens, as it happens
    #[arg(long)]
    pub(in crate::cli) json_stream: bool,

    /// With --json-stream: the whole document after the last line, too
    #[arg(long)]
    pub(in crate::cli) json_stream_full_output: bool,

    /// Append all output to this file instead
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) logfile: Option<PathBuf>,

    /// Begin every line of text with the time, in the format of strftime [default: "%c "]
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = value::TIMESTAMP_FORMAT)]
    pub(in crate::cli) timestamps: Option<String>,

    /// Tell more: system, settings, CPU use
    #[arg(short = 'V', long)]
    pub(in crate::cli) verbose: bool,

    /// Tell what happens inside, in more detail the higher the level, 1 to 4 [default: 4]
    #[arg(short, long, value_name = "LEVEL", value_parser = value::debug_level)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "4")]
    pub(in crate::cli) debug: Option<u8>,

    /// Explain the result and print hints and warnings, terminal or not
    #[arg(long)]
    pub(in crate::cli) explain: bool,

    /// Receive into this file, or send what is in it (TCP)
    #[arg(short = 'F', long, value_name = "FILE")]
    pub(in crate::cli) file: Option<PathBuf>,

    /// Run on this CPU, counted from 0; a client's ,M sets the server's for its test
    #[arg(short = 'A', long, value_name = "N[,M]", value_parser = value::affinity)]
    #[arg(allow_negative_numbers = true)]
    pub(in crate::cli) affinity: Option<Affinity>,

    /// Carry the data over MPTCP; a server does so whenever a client asks
    #[arg(short, long, alias = "m")]
    pub(in crate::cli) mptcp: bool,

    /// Receiver: end a test in which no data came for so many milliseconds, 100 to 86400000
    #[arg(long, value_name = "MS", value_parser = value::receive_timeout)]
    #[arg(allow_negative_numbers = true)]
    pub(in crate::cli) rcv_timeout: Option<Duration>,

    /// Give up a TCP connection whose data is not acknowledged for so many milliseconds
    #[arg(long, value_name = "MS", value_parser = value::send_timeout)]
    #[arg(allow_negative_numbers = true)]
    pub(in crate::cli) snd_timeout: Option<Duration>,

    /// Ask for a sign of life on a silent control connection, as IDLE/INTERVAL/COUNT: seconds before
    /// the first time, between two, and how often; what is left out or 0 is the system's
    /// [default: 5/5/3]
    #[arg(long, value_name = "TIMES", value_parser = value::keep_alive)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(in crate::cli) cntl_ka: Option<KeepAlive>,

    /// SCTP: one of the addresses of this end; may be given several times
    #[arg(short = 'X', long, value_name = "HOST", value_parser = value::host)]
    #[arg(action = ArgAction::Append)]
    pub(in crate::cli) xbind: Vec<String>,

    /// Login with PKCS#1 v1.5 padding, as iperf3 up to 3.16 has it, instead of OAEP
    #[arg(long)]
    pub(in crate::cli) use_pkcs1_padding: bool,

    /// Write the process id into this file while running
    #[arg(short = 'I', long, value_name = "FILE")]
    pub(in crate::cli) pidfile: Option<PathBuf>,

    /// Accepted for scripts; every line is written at once anyway
    #[arg(long)]
    pub(in crate::cli) forceflush: bool,

    /// Print the version and the system
    #[arg(short = 'v', long, action = ArgAction::Version)]
    pub(in crate::cli) version: Option<bool>,

    /// Print this help
    #[arg(short, long, action = ArgAction::Help)]
    pub(in crate::cli) help: Option<bool>,
}
