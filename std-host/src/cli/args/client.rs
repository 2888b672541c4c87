//! Options that only a client has.

use std::path::PathBuf;
use std::time::Duration;

use linerate_core::units::BitsPerSec;

use crate::cli::value::{self, Rate};

#[derive(Debug, clap::Args)]
#[command(next_help_heading = super::CLIENT)]
pub(in crate::cli) struct ClientArgs {
    /// Send datagrams instead of a TCP byte stream
    #[arg(short, long)]
    pub(in crate::cli) udp: bool,

    /// Carry the data over SCTP
    #[arg(long)]
    pub(in crate::cli) sctp: bool,

    /// SCTP: streams within each association [default: the system's]
    #[arg(long, value_name = "STREAMS", value_parser = value::sctp_streams)]
    #[arg(allow_negative_numbers = true)]
    pub(in crate::cli) nstreams: Option<u16>,

    /// Length of the test, 0 to 86400; 0 runs until stopped [default: 10]
    #[arg(short, long, value_name = "SECONDS", value_parser = value::duration)]
    #[arg(allow_negative_numbers = true)]
    pub(in crate::cli) time: Option<u32>,

    /// End after so many bytes instead of a time
    #[arg(short = 'n', long, value_name = "BYTES", value_parser = value::count)]
    #[arg(allow_negative_numbers = true)]
    pub(in crate::cli) bytes: Option<u64>,

    /// End after so many blocks or datagrams instead of a time
    #[arg(short = 'k', long, value_name = "BLOCKS", value_parser = value::count)]
    #[arg(allow_negative_numbers = true)]
    pub(in crate::cli) blockcount: Option<u64>,

    /// Bytes a TCP write (up to 1M) or a datagram (16 to 65507) [default: 128K, or what fits one
    /// packet of the path]
    #[arg(short, long, value_name = "BYTES", value_parser = value::length)]
    #[arg(allow_negative_numbers = true)]
    pub(in crate::cli) length: Option<u64>,

    /// Streams side by side in each direction, 1 to 128 [default: 1]
    #[arg(short = 'P', long, value_name = "STREAMS", value_parser = value::parallel)]
    #[arg(allow_negative_numbers = true)]
    pub(in crate::cli) parallel: Option<u16>,

    /// Let the server send
    #[arg(short = 'R', long)]
    pub(in crate::cli) reverse: bool,

    /// Let both ends send at once
    #[arg(long)]
    pub(in crate::cli) bidir: bool,

    /// Bits per second of each stream, or blocks per second with pps behind the number (1000pps), 0 for
    /// no limit; /BURST sends so many blocks back to back
    /// [default: no limit for TCP, 1048576 for UDP]
    #[arg(short, long, alias = "bandwidth", value_name = "RATE[/BURST]")]
    #[arg(value_parser = value::bitrate, allow_negative_numbers = true)]
    pub(in crate::cli) bitrate: Option<Rate>,

    /// Let the kernel pace each data socket to so many bits per second; 0 does not [default: 0]
    #[arg(long, value_name = "RATE", value_parser = value::fq_rate)]
    #[arg(overrides_with = "no_fq_socket_pacing", allow_negative_numbers = true)]
    pub(in crate::cli) fq_rate: Option<BitsPerSec>,

    /// The old way to say --fq-rate 0.
    #[arg(long, hide = true, overrides_with = "fq_rate")]
    pub(in crate::cli) no_fq_socket_pacing: bool,

    /// Told to servers older than 3.18, which look at the rate so often, in microseconds
    /// [default: 1000]
    #[arg(long, value_name = "MICROSECONDS", value_parser = value::pacing_timer)]
    #[arg(allow_negative_numbers = true)]
    pub(in crate::cli) pacing_timer: Option<u32>,

    /// Leave the first seconds out of the result, up to 600 [default: 0]
    #[arg(short = 'O', long, value_name = "SECONDS", value_parser = value::omit)]
    #[arg(allow_negative_numbers = true)]
    pub(in crate::cli) omit: Option<u32>,

    /// Socket buffer size, up to 512M [default: the system tunes it]
    #[arg(short, long, value_name = "BYTES", value_parser = value::window)]
    #[arg(allow_negative_numbers = true)]
    pub(in crate::cli) window: Option<u32>,

    /// Largest TCP segment, up to 32767 [default: the system's]
    #[arg(short = 'M', long, value_name = "BYTES", value_parser = value::mss)]
    #[arg(allow_negative_numbers = true)]
    pub(in crate::cli) set_mss: Option<u32>,

    /// Send small TCP segments at once (no Nagle)
    #[arg(short = 'N', long)]
    pub(in crate::cli) no_delay: bool,

    /// Type of service byte of every packet, 0 to 255, in C notation
    #[arg(short = 'S', long, value_name = "BYTE", value_parser = value::tos)]
    #[arg(overrides_with = "dscp", allow_negative_numbers = true)]
    pub(in crate::cli) tos: Option<u8>,

    /// The same byte by its code point: 0 to 63 or a name such as ef, af41, cs6
    #[arg(long, value_name = "CODE", value_parser = value::dscp)]
    #[arg(overrides_with = "tos", allow_negative_numbers = true)]
    pub(in crate::cli) dscp: Option<u8>,

    /// IPv6 flow label of every packet, 1 to 1048575, in C notation
    #[arg(short = 'L', long, value_name = "LABEL", value_parser = value::flow_label)]
    #[arg(allow_negative_numbers = true)]
    pub(in crate::cli) flowlabel: Option<u32>,

    /// TCP congestion control of both ends, such as cubic or bbr [default: the system's]
    #[arg(short = 'C', long, alias = "linux-congestion", value_name = "NAME")]
    #[arg(value_parser = value::congestion)]
    pub(in crate::cli) congestion: Option<String>,

    /// Send without copying where the system can
    #[arg(short = 'Z', long)]
    pub(in crate::cli) zerocopy: bool,

    /// Let the receiving kernel throw the data away where it can
    #[arg(long)]
    pub(in crate::cli) skip_rx_copy: bool,

    /// UDP: send and receive many datagrams in one call where the kernel can (GSO, GRO)
    #[arg(long)]
    pub(in crate::cli) gsro: bool,

    /// UDP over IPv4: no datagram may travel in fragments
    #[arg(long)]
    pub(in crate::cli) dont_fragment: bool,

    /// Begin every line of text with this name of the test
    #[arg(short = 'T', long, value_name = "TEXT")]
    pub(in crate::cli) title: Option<String>,

    /// Keep this text with the results of both ends
    // What iperf3 takes for it; --explain would make these beginnings ambiguous.
    #[arg(long, value_name = "TEXT", aliases = ["e", "ex"])]
    pub(in crate::cli) extra_data: Option<String>,

    /// Show the server's own output, too
    #[arg(long)]
    pub(in crate::cli) get_server_output: bool,

    /// Give up connecting after so many milliseconds
    #[arg(long, value_name = "MS", value_parser = value::connect_timeout)]
    #[arg(allow_negative_numbers = true)]
    pub(in crate::cli) connect_timeout: Option<Duration>,

    /// Wait so long for the server's first word, which one with a queue says when it is one's turn,
    /// 0 to 86400; 0 waits as long as the connection lives [default: 600]
    #[arg(long, value_name = "SECONDS", value_parser = value::answer_timeout)]
    #[arg(allow_negative_numbers = true)]
    pub(in crate::cli) answer_timeout: Option<Duration>,

    /// Number datagrams with 64 bits, for more than 4 billion of them
    #[arg(long = "udp-counters-64bit", alias = "udp-")]
    pub(in crate::cli) udp_counters_64bit: bool,

    /// Send digits instead of random bytes, for links that compress
    #[arg(long)]
    pub(in crate::cli) repeating_payload: bool,

    /// Login: who you are. The password is asked for, or comes from IPERF3_PASSWORD
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) username: Option<String>,

    /// Login: the server's public key (PEM)
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) rsa_public_key_path: Option<PathBuf>,
}
