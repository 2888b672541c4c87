//! Options that only a server has.

use std::path::PathBuf;
use std::time::Duration;

use linerate_core::units::BitsPerSec;

use crate::cli::LogChoice;
use crate::cli::value::{self, BitrateLimit, Queue};

#[derive(Debug, clap::Args)]
#[command(next_help_heading = super::SERVER)]
pub(in crate::cli) struct ServerArgs {
    /// End after one test
    #[arg(short = '1', long)]
    pub(in crate::cli) one_off: bool,

    /// Run in the background
    #[arg(short = 'D', long)]
    pub(in crate::cli) daemon: bool,

    /// Log where each test begins and ends and who was turned away, in lines on the error stream:
    /// text, json or off [default: text for a daemon or service, else off]
    #[arg(long, value_name = "FORMAT", value_parser = value::test_log)]
    pub(in crate::cli) test_log: Option<LogChoice>,

    /// End, with -1, or begin anew when no client came for so many seconds, 1 to 86400
    #[arg(long, value_name = "SECONDS", value_parser = value::idle_timeout)]
    #[arg(allow_negative_numbers = true)]
    pub(in crate::cli) idle_timeout: Option<Duration>,

    /// Refuse or end tests that move more bits per second, both ways and all streams together;
    /// /SPAN averages over 0.1 to 60 seconds, or with 0 over the whole test [default: no limit, 5 s]
    #[arg(long, value_name = "RATE", value_parser = value::bitrate_limit)]
    #[arg(allow_negative_numbers = true)]
    pub(in crate::cli) server_bitrate_limit: Option<BitrateLimit>,

    /// Refuse tests that may last longer, 0 to 86400; 0 lets all in [default: 0]
    #[arg(long, value_name = "SECONDS", value_parser = value::duration)]
    #[arg(allow_negative_numbers = true)]
    pub(in crate::cli) server_max_duration: Option<u32>,

    /// Most bits per second of all tests together, 0 for no limit [default: 0]
    #[arg(long, value_name = "RATE", value_parser = value::exact_rate)]
    #[arg(allow_negative_numbers = true)]
    pub(in crate::cli) max_bitrate: Option<BitsPerSec>,

    /// Most bytes of a test, both ways and all streams together, 0 for no limit [default: 0]
    #[arg(long, value_name = "BYTES", value_parser = value::exact_count)]
    #[arg(allow_negative_numbers = true)]
    pub(in crate::cli) max_test_bytes: Option<u64>,

    /// Most streams of a test each way, 1 to 128 [default: 128]
    #[arg(long, value_name = "STREAMS", value_parser = value::parallel)]
    #[arg(allow_negative_numbers = true)]
    pub(in crate::cli) max_streams: Option<u16>,

    /// Most tests at once, 1 to 10000 [default: 256]
    #[arg(long, value_name = "TESTS", value_parser = value::tests)]
    #[arg(allow_negative_numbers = true)]
    pub(in crate::cli) max_tests: Option<u32>,

    /// Most tests at once of one address, 0 for any number, up to 10000 [default: 0]
    #[arg(long, value_name = "TESTS", value_parser = value::tests_or_any)]
    #[arg(allow_negative_numbers = true)]
    pub(in crate::cli) max_tests_per_address: Option<u32>,

    /// One test at a time: --max-tests 1
    #[arg(long)]
    pub(in crate::cli) exclusive: bool,

    /// Let so many clients wait their turn instead of refusing them, 0 to 1000; with --exclusive,
    /// unless --max-tests says otherwise. /SECONDS is how long each waits at most, 1 to 86400
    /// [default: 0, 600 s]
    #[arg(long, value_name = "CLIENTS", value_parser = value::queue)]
    #[arg(allow_negative_numbers = true)]
    pub(in crate::cli) queue: Option<Queue>,

    /// Read these limits and others from a TOML file; options go before what it says
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) policy: Option<PathBuf>,

    /// Let in only who logs in: the private key that logins are made for (PEM)
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) rsa_private_key_path: Option<PathBuf>,

    /// Let in only who logs in: the users and the hashes of their passwords
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) authorized_users_path: Option<PathBuf>,

    /// Seconds that the clocks of client and server may differ at a login [default: 10]
    #[arg(long, value_name = "SECONDS", value_parser = value::time_skew)]
    #[arg(allow_negative_numbers = true)]
    pub(in crate::cli) time_skew_threshold: Option<Duration>,

    /// Let UDP streams come from and go to other addresses than that of their control connection, if
    /// their greetings name the test; without it datagrams go only to who asked for them
    #[arg(long)]
    pub(in crate::cli) udp_anywhere: bool,
}
