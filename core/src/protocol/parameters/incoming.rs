//! Reading the parameters as a server: defaults by what is absent, ranges with iperf3's error
//! numbers.

use serde::Deserialize;

use super::text::ReceivedText;
use crate::protocol::code::error_number as number;
use crate::protocol::extension::{self, Offer, WireOffer};
use crate::protocol::frame::Document;
use crate::protocol::json::{
    DocumentError, Filter, Kind, Member, Taker, TextPart, WrongType, capacity, handle_bytes,
};
use crate::test::{
    DEFAULT_SECONDS, Direction, Limits, MAX_AFFINITY, MAX_BURST, MAX_FLOW_LABEL, MAX_MSS,
    MAX_OMIT_SECS, MAX_PARALLEL, MAX_SECONDS, MAX_TCP_BLOCK, MAX_UDP_BLOCK, MAX_WINDOW,
    MIN_UDP_BLOCK, Offload, Protocol, TestSettings,
};
use crate::units::BitsPerSec;

/// What a client asked for.
#[derive(Debug, Clone)]
pub struct ReceivedParameters<const T: usize> {
    /// What is to be measured.
    pub settings: TestSettings,
    /// Texts that came along.
    pub text: ReceivedText<T>,
    /// The offer of the extension.
    pub extension: Option<Offer>,
}

/// Reads a client's parameters; `T` is the room for all texts together.
#[derive(Debug, Clone)]
pub struct ParametersReader<const T: usize> {
    filter: Filter<{ capacity(MEMBERS) }>,
    text: ReceivedText<T>,
}

impl<const T: usize> ParametersReader<T> {
    /// A reader of one document.
    pub const fn new() -> Self {
        Self { filter: Filter::new(MEMBERS, WrongType::Refused), text: ReceivedText::new() }
    }

    /// What the client asked for, once the document has ended.
    ///
    /// # Errors
    /// [`DocumentError::OutOfRange`] with iperf3's number for the first value that cannot be.
    pub fn finish(self) -> Result<ReceivedParameters<T>, DocumentError> {
        let wire: Wire = self.filter.decode()?;
        let settings = wire.settings()?;
        let extension = wire.linerate.and_then(WireOffer::offer);
        Ok(ReceivedParameters { settings, text: self.text, extension })
    }
}

impl<const T: usize> Default for ParametersReader<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const T: usize> Document for ParametersReader<T> {
    fn handle_bytes(&mut self, bytes: &[u8]) -> Result<(), DocumentError> {
        handle_bytes(&mut self.filter, bytes, &mut self.text)
    }

    fn handle_end(&mut self) -> Result<(), DocumentError> {
        self.filter.end(&mut self.text)
    }
}

impl<const T: usize> Taker for ReceivedText<T> {
    fn handle_text(&mut self, key: &'static str, part: TextPart) -> Result<(), DocumentError> {
        self.handle(key, part)
    }

    fn handle_element(&mut self, _: &'static str, _: &[u8]) -> Result<(), DocumentError> {
        Ok(())
    }
}

const MEMBERS: &[Member] = &[
    Member::new("tcp", Kind::Flag),
    Member::new("udp", Kind::Flag),
    Member::new("sctp", Kind::Flag),
    Member::new("omit", Kind::Int64),
    Member::new("server_affinity", Kind::Int64),
    Member::new("time", Kind::Int64),
    Member::new("num", Kind::Int64),
    Member::new("blockcount", Kind::Int64),
    Member::new("MSS", Kind::Int64),
    Member::new("nodelay", Kind::Flag),
    Member::new("parallel", Kind::Int64),
    Member::new("reverse", Kind::Flag),
    Member::new("bidirectional", Kind::Flag),
    Member::new("mptcp", Kind::Flag),
    Member::new("window", Kind::Int64),
    Member::new("len", Kind::Int64),
    Member::new("bandwidth", Kind::Int64),
    Member::new("fqrate", Kind::Int64),
    Member::new("pacing_timer", Kind::Int64),
    Member::new("burst", Kind::Int64),
    Member::new("gso", Kind::Int64),
    Member::new("gso_dg_size", Kind::Int64),
    Member::new("gso_bf_size", Kind::Int64),
    Member::new("gro", Kind::Int64),
    Member::new("gro_bf_size", Kind::Int64),
    Member::new("TOS", Kind::Int64),
    Member::new("flowlabel", Kind::Int64),
    Member::new("title", Kind::Text),
    Member::new("extra_data", Kind::Text),
    Member::new("congestion", Kind::Text),
    Member::new("congestion_used", Kind::Text),
    Member::new("get_server_output", Kind::NumberFlag),
    Member::new("udp_counters_64bit", Kind::NumberFlag),
    Member::new("repeating_payload", Kind::NumberFlag),
    Member::new("zerocopy", Kind::NonZeroFlag),
    Member::new("dont_fragment", Kind::NonZeroFlag),
    Member::new("authtoken", Kind::Text),
    Member::new("skip_rx_copy", Kind::NonZeroFlag),
    Member::new("client_version", Kind::Text),
    Member::new("linerate", Kind::Object(extension::MEMBERS)),
];

/// The canonical text, decoded: flags are `false` and numbers `None` where the key is absent.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Wire {
    udp: bool,
    sctp: bool,
    omit: Option<i64>,
    server_affinity: Option<i64>,
    time: Option<i64>,
    num: Option<i64>,
    blockcount: Option<i64>,
    #[serde(rename = "MSS")]
    mss: Option<i64>,
    nodelay: bool,
    parallel: Option<i64>,
    reverse: bool,
    bidirectional: bool,
    mptcp: bool,
    window: Option<i64>,
    len: Option<i64>,
    bandwidth: Option<i64>,
    fqrate: Option<i64>,
    pacing_timer: Option<i64>,
    burst: Option<i64>,
    gso: Option<i64>,
    gso_dg_size: Option<i64>,
    gso_bf_size: Option<i64>,
    gro: Option<i64>,
    gro_bf_size: Option<i64>,
    #[serde(rename = "TOS")]
    tos: Option<i64>,
    flowlabel: Option<i64>,
    get_server_output: bool,
    udp_counters_64bit: bool,
    repeating_payload: bool,
    zerocopy: bool,
    dont_fragment: bool,
    skip_rx_copy: bool,
    linerate: Option<WireOffer>,
}

impl Wire {
    fn settings(&self) -> Result<TestSettings, DocumentError> {
        let protocol = match (self.sctp, self.udp) {
            (true, _) => Protocol::Sctp,
            (false, true) => Protocol::Udp,
            (false, false) => Protocol::Tcp,
        };
        let defaults = TestSettings::new(protocol);
        for (key, value) in [
            ("gso_dg_size", self.gso_dg_size),
            ("gso_bf_size", self.gso_bf_size),
            ("gro_bf_size", self.gro_bf_size),
        ] {
            in_range(key, value, 0, i32::MAX as u32, number::RECV_PARAMS)?;
        }
        Ok(TestSettings {
            protocol,
            direction: self.direction(),
            parallel: in_range("parallel", self.parallel, 1, MAX_PARALLEL, number::STREAM_COUNT)?
                .unwrap_or(defaults.parallel),
            omit_secs: in_range("omit", self.omit, 0, MAX_OMIT_SECS, number::OMIT)?
                .unwrap_or(defaults.omit_secs),
            limits: self.limits()?,
            block_bytes: self.block_bytes(protocol)?.unwrap_or(defaults.block_bytes),
            bitrate: not_negative("bandwidth", self.bandwidth)?.map(BitsPerSec),
            burst: in_range("burst", self.burst, 1, MAX_BURST, number::BURST)?,
            fq_rate: not_negative("fqrate", self.fqrate)?.map(BitsPerSec),
            pacing_timer_us: in_range(
                "pacing_timer",
                self.pacing_timer,
                0,
                i32::MAX as u32,
                number::RECV_PARAMS,
            )?
            .unwrap_or(defaults.pacing_timer_us),
            window_bytes: in_range("window", self.window, 0, MAX_WINDOW, number::WINDOW)?
                .filter(|&bytes| bytes != 0),
            mss_bytes: in_range("MSS", self.mss, 0, MAX_MSS, number::MSS)?
                .filter(|&bytes| bytes != 0),
            no_delay: self.nodelay,
            tos: in_range("TOS", self.tos, 0, u8::MAX, number::TOS)?.unwrap_or(defaults.tos),
            flow_label: in_range(
                "flowlabel",
                self.flowlabel,
                1,
                MAX_FLOW_LABEL,
                number::FLOW_LABEL,
            )?,
            counters_64bit: self.udp_counters_64bit,
            repeating_payload: self.repeating_payload,
            zero_copy: self.zerocopy,
            skip_rx_copy: self.skip_rx_copy,
            dont_fragment: self.dont_fragment,
            server_output: self.get_server_output,
            mptcp: self.mptcp,
            server_affinity: in_range(
                "server_affinity",
                self.server_affinity,
                0,
                MAX_AFFINITY,
                number::AFFINITY,
            )?,
            offload: Offload {
                gso: in_range("gso", self.gso, 0, i32::MAX as u32, number::RECV_PARAMS)?
                    .is_some_and(|gso| gso != 0),
                gro: in_range("gro", self.gro, 0, 1_u8, number::RECV_PARAMS)?
                    .is_some_and(|gro| gro != 0),
            },
        })
    }

    /// A stock server that finds both flags takes the bidirectional one.
    fn direction(&self) -> Direction {
        match (self.bidirectional, self.reverse) {
            (true, _) => Direction::Bidirectional,
            (false, true) => Direction::Reverse,
            (false, false) => Direction::Forward,
        }
    }

    /// Clients up to 3.2 leave `time` out when another limit holds; without any of the three the
    /// default time does.
    fn limits(&self) -> Result<Limits, DocumentError> {
        let bytes = not_negative("num", self.num)?;
        let blocks = not_negative("blockcount", self.blockcount)?;
        let seconds = match in_range("time", self.time, 0, MAX_SECONDS, number::DURATION)? {
            None if bytes.is_none() && blocks.is_none() => Some(DEFAULT_SECONDS),
            None | Some(0) => None,
            some => some,
        };
        Ok(Limits { seconds, bytes, blocks })
    }

    fn block_bytes(&self, protocol: Protocol) -> Result<Option<u32>, DocumentError> {
        match (protocol, self.len) {
            (Protocol::Tcp | Protocol::Sctp, len) => {
                in_range("len", len, 1, MAX_TCP_BLOCK, number::BLOCK_SIZE)
            }
            (Protocol::Udp, Some(0)) => Ok(None),
            (Protocol::Udp, len) => {
                in_range("len", len, MIN_UDP_BLOCK, MAX_UDP_BLOCK, number::UDP_BLOCK_SIZE)
            }
        }
    }
}

/// The value if it is there; an error if it lies outside.
fn in_range<U>(
    key: &'static str,
    value: Option<i64>,
    min: U,
    max: U,
    number: i32,
) -> Result<Option<U>, DocumentError>
where
    U: TryFrom<i64> + Into<i64>,
{
    let Some(value) = value else { return Ok(None) };
    if !(min.into()..=max.into()).contains(&value) {
        return Err(out_of_range(key, value, number));
    }
    U::try_from(value).map(Some).map_err(|_| out_of_range(key, value, number))
}

/// The value if it is there and not zero; an error if it is negative.
fn not_negative(key: &'static str, value: Option<i64>) -> Result<Option<u64>, DocumentError> {
    let Some(value) = value else { return Ok(None) };
    match u64::try_from(value) {
        Ok(0) => Ok(None),
        Ok(value) => Ok(Some(value)),
        Err(_) => Err(out_of_range(key, value, number::RECV_PARAMS)),
    }
}

const fn out_of_range(key: &'static str, value: i64, number: i32) -> DocumentError {
    DocumentError::OutOfRange { key, value, number }
}
