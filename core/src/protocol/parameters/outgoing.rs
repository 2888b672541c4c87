//! Writing the parameters as a stock client does: same keys, same order, left out under the same
//! conditions. The offer of the extension comes last.

use core::fmt::{self, Write};

use crate::protocol::extension::{Offer, Spelled};
use crate::protocol::frame::{Outgoing, PIECE_BYTES};
use crate::protocol::json::{Escaped, Window};
use crate::test::{Direction, MAX_UDP_BLOCK, Protocol, TestSettings};

/// The free-form texts that a client may send along.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClientText<'a> {
    /// Printed before each line (`-T`).
    pub title: Option<&'a str>,
    /// Carried into the JSON report (`--extra-data`).
    pub extra_data: Option<&'a str>,
    /// The congestion control algorithm asked for (`-C`).
    pub congestion: Option<&'a str>,
    /// The encrypted credentials, in base64.
    pub auth_token: Option<&'a str>,
}

/// A client's parameters, ready to be sent as the body of a frame.
#[derive(Debug, Clone, Copy)]
pub struct OutgoingParameters<'a> {
    /// What is to be measured.
    pub settings: &'a TestSettings,
    /// Texts that go along.
    pub text: &'a ClientText<'a>,
    /// The release that the client says it is; see [`crate::IPERF3_EQUIVALENT`].
    pub client_version: &'a str,
    /// The offer of the extension.
    pub extension: Option<Offer>,
}

impl Outgoing for OutgoingParameters<'_> {
    fn write_piece(&self, index: usize, out: &mut [u8; PIECE_BYTES]) -> Option<usize> {
        let mut window = Window::new(index, out);
        // The window stops the printing when it is full.
        let _ = self.print(&mut window);
        window.filled()
    }
}

impl OutgoingParameters<'_> {
    fn print(&self, out: &mut Window<'_>) -> fmt::Result {
        let Self { settings, text, .. } = self;
        let is_udp = settings.protocol == Protocol::Udp;
        out.write_str(match settings.protocol {
            Protocol::Tcp => "{\"tcp\":true",
            Protocol::Udp => "{\"udp\":true",
            Protocol::Sctp => "{\"sctp\":true",
        })?;
        number(out, "omit", settings.omit_secs)?;
        some_number(out, "server_affinity", settings.server_affinity)?;
        number(out, "time", settings.limits.seconds.unwrap_or(0))?;
        number(out, "num", settings.limits.bytes.unwrap_or(0))?;
        number(out, "blockcount", settings.limits.blocks.unwrap_or(0))?;
        nonzero(out, "MSS", settings.mss_bytes.unwrap_or(0))?;
        flag(out, "nodelay", settings.no_delay)?;
        number(out, "parallel", settings.parallel)?;
        flag(out, "reverse", settings.direction == Direction::Reverse)?;
        flag(out, "bidirectional", settings.direction == Direction::Bidirectional)?;
        flag(out, "mptcp", settings.mptcp)?;
        nonzero(out, "window", settings.window_bytes.unwrap_or(0))?;
        number(out, "len", settings.block_bytes)?;
        nonzero(out, "bandwidth", settings.bitrate.map_or(0, |rate| rate.0))?;
        nonzero(out, "fqrate", settings.fq_rate.map_or(0, |rate| rate.0))?;
        nonzero(out, "pacing_timer", settings.pacing_timer_us)?;
        some_number(out, "burst", settings.burst)?;
        if is_udp {
            offload(out, settings)?;
        }
        nonzero(out, "TOS", settings.tos)?;
        some_number(out, "flowlabel", settings.flow_label)?;
        some_text(out, "title", text.title)?;
        some_text(out, "extra_data", text.extra_data)?;
        some_text(out, "congestion", text.congestion)?;
        one(out, "get_server_output", settings.server_output)?;
        one(out, "udp_counters_64bit", settings.counters_64bit)?;
        one(out, "repeating_payload", settings.repeating_payload)?;
        one(out, "zerocopy", settings.zero_copy)?;
        one(out, "dont_fragment", settings.dont_fragment)?;
        some_text(out, "authtoken", text.auth_token)?;
        one(out, "skip_rx_copy", settings.skip_rx_copy)?;
        some_text(out, "client_version", Some(self.client_version))?;
        if let Some(offer) = self.extension {
            write!(out, ",\"linerate\":{}", Spelled(offer))?;
        }
        out.write_str("}")
    }
}

/// The five keys that a UDP client sends since 3.21. They describe buffers of its own, so a server
/// needs only the two switches.
fn offload(out: &mut Window<'_>, settings: &TestSettings) -> fmt::Result {
    let block_bytes = settings.block_bytes;
    let segments = MAX_UDP_BLOCK.checked_div(block_bytes).unwrap_or(0).min(MAX_SEGMENTS);
    let (dg_size, bf_size) = match settings.offload.gso {
        true => (block_bytes, segments * block_bytes),
        false => (0, MAX_UDP_BLOCK),
    };
    number(out, "gso", u8::from(settings.offload.gso))?;
    number(out, "gso_dg_size", dg_size)?;
    number(out, "gso_bf_size", bf_size)?;
    number(out, "gro", u8::from(settings.offload.gro))?;
    number(out, "gro_bf_size", MAX_UDP_BLOCK)
}

/// Most datagrams that a Linux kernel cuts one send into.
const MAX_SEGMENTS: u32 = 128;

fn number(out: &mut Window<'_>, key: &str, value: impl Into<u64>) -> fmt::Result {
    write!(out, ",\"{key}\":{}", value.into())
}

fn nonzero(out: &mut Window<'_>, key: &str, value: impl Into<u64>) -> fmt::Result {
    let value = value.into();
    if value == 0 { Ok(()) } else { number(out, key, value) }
}

fn some_number(out: &mut Window<'_>, key: &str, value: Option<impl Into<u64>>) -> fmt::Result {
    value.map_or(Ok(()), |value| number(out, key, value))
}

fn flag(out: &mut Window<'_>, key: &str, set: bool) -> fmt::Result {
    if set { write!(out, ",\"{key}\":true") } else { Ok(()) }
}

fn one(out: &mut Window<'_>, key: &str, set: bool) -> fmt::Result {
    if set { number(out, key, 1_u8) } else { Ok(()) }
}

fn some_text(out: &mut Window<'_>, key: &str, text: Option<&str>) -> fmt::Result {
    text.map_or(Ok(()), |text| write!(out, ",\"{key}\":{}", Escaped(text)))
}
