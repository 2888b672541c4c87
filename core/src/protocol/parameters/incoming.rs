//! Reading the parameters as a server: defaults by what is absent, ranges with iperf3's error
//! numbers.

use super::text::ReceivedText;
use crate::protocol::code::error_number as number;
use crate::protocol::extension::{self, Offer, WireOffer};
use crate::protocol::frame::Document;
use crate::protocol::json::{
    DocumentError, Filter, Kind, Member, Numbers, Taker, TextPart, WrongType, places,
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
    filter: Filter,
    parts: Parts<T>,
}

impl<const T: usize> ParametersReader<T> {
    /// A reader of one document.
    pub const fn new() -> Self {
        let parts = Parts {
            numbers: Numbers::new(MEMBERS),
            offer: WireOffer::new(),
            text: ReceivedText::new(),
        };
        Self { filter: Filter::new(MEMBERS, WrongType::Refused), parts }
    }

    /// What the client asked for, once the document has ended. It leaves the reader, which is too large to be
    /// moved.
    ///
    /// # Errors
    /// [`DocumentError::OutOfRange`] with iperf3's number for the first value that cannot be.
    pub fn finish(&mut self) -> Result<ReceivedParameters<T>, DocumentError> {
        self.filter.check_complete()?;
        let mut wire = Wire { numbers: &self.parts.numbers, error: None };
        let settings = wire.settings();
        let extension = self.parts.offer.offer();
        match wire.error {
            Some(error) => Err(error),
            None => Ok(ReceivedParameters {
                settings,
                text: core::mem::take(&mut self.parts.text),
                extension,
            }),
        }
    }
}

impl<const T: usize> Default for ParametersReader<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const T: usize> Document for ParametersReader<T> {
    fn handle_bytes(&mut self, bytes: &[u8]) -> Result<(), DocumentError> {
        self.filter.handle_bytes(bytes, &mut self.parts)
    }

    fn handle_end(&mut self) -> Result<(), DocumentError> {
        self.filter.end(&mut self.parts)
    }
}

/// What is known so far.
#[derive(Debug, Clone)]
struct Parts<const T: usize> {
    numbers: Numbers<[i64; places(MEMBERS)]>,
    offer: WireOffer,
    text: ReceivedText<T>,
}

impl<const T: usize> Taker for Parts<T> {
    fn handle_number(&mut self, object: &'static str, place: usize, value: i64) {
        let numbers: &mut Numbers = &mut self.numbers;
        match object {
            "" => numbers.put(place, value),
            _ => self.offer.handle_number(object, place, value),
        }
    }

    fn handle_text(&mut self, key: &'static str, part: TextPart) -> Result<(), DocumentError> {
        self.text.handle(key, part)
    }
}

/// Numbers first, so that nothing else takes room for one.
const MEMBERS: &[Member] = &[
    Member::new("omit", Kind::Number),
    Member::new("server_affinity", Kind::Number),
    Member::new("time", Kind::Number),
    Member::new("num", Kind::Number),
    Member::new("blockcount", Kind::Number),
    Member::new("MSS", Kind::Number),
    Member::new("parallel", Kind::Number),
    Member::new("window", Kind::Number),
    Member::new("len", Kind::Number),
    Member::new("bandwidth", Kind::Number),
    Member::new("fqrate", Kind::Number),
    Member::new("pacing_timer", Kind::Number),
    Member::new("burst", Kind::Number),
    Member::new("gso", Kind::Number),
    Member::new("gso_dg_size", Kind::Number),
    Member::new("gso_bf_size", Kind::Number),
    Member::new("gro", Kind::Number),
    Member::new("gro_bf_size", Kind::Number),
    Member::new("TOS", Kind::Number),
    Member::new("flowlabel", Kind::Number),
    Member::new("tcp", Kind::Flag),
    Member::new("udp", Kind::Flag),
    Member::new("sctp", Kind::Flag),
    Member::new("nodelay", Kind::Flag),
    Member::new("reverse", Kind::Flag),
    Member::new("bidirectional", Kind::Flag),
    Member::new("mptcp", Kind::Flag),
    Member::new("get_server_output", Kind::NumberFlag),
    Member::new("udp_counters_64bit", Kind::NumberFlag),
    Member::new("repeating_payload", Kind::NumberFlag),
    Member::new("zerocopy", Kind::NonZeroFlag),
    Member::new("dont_fragment", Kind::NonZeroFlag),
    Member::new("skip_rx_copy", Kind::NonZeroFlag),
    Member::new("title", Kind::Text),
    Member::new("extra_data", Kind::Text),
    Member::new("congestion", Kind::Text),
    Member::new("congestion_used", Kind::Text),
    Member::new("authtoken", Kind::Text),
    Member::new("client_version", Kind::Text),
    Member::new("linerate", Kind::Object(&extension::MEMBERS)),
];

/// The parameters as they came, of which the first that cannot be is remembered.
struct Wire<'n> {
    numbers: &'n Numbers,
    error: Option<DocumentError>,
}

impl Wire<'_> {
    fn settings(&mut self) -> TestSettings {
        let protocol = match (self.flag("sctp"), self.flag("udp")) {
            (true, _) => Protocol::Sctp,
            (false, true) => Protocol::Udp,
            (false, false) => Protocol::Tcp,
        };
        let defaults = TestSettings::new(protocol);
        for key in ["gso_dg_size", "gso_bf_size", "gro_bf_size"] {
            self.not_negative_32(key);
        }
        TestSettings {
            protocol,
            direction: self.direction(),
            parallel: self
                .in_range("parallel", 1, MAX_PARALLEL, number::STREAM_COUNT)
                .unwrap_or(defaults.parallel),
            omit_secs: self
                .in_range("omit", 0, MAX_OMIT_SECS, number::OMIT)
                .unwrap_or(defaults.omit_secs),
            limits: self.limits(),
            block_bytes: self.block_bytes(protocol).unwrap_or(defaults.block_bytes),
            bitrate: self.not_zero("bandwidth").map(BitsPerSec),
            burst: self.in_range("burst", 1, MAX_BURST, number::BURST),
            fq_rate: self.not_zero("fqrate").map(BitsPerSec),
            pacing_timer_us: self
                .not_negative_32("pacing_timer")
                .unwrap_or(defaults.pacing_timer_us),
            window_bytes: self
                .in_range("window", 0, MAX_WINDOW, number::WINDOW)
                .filter(|&bytes| bytes != 0),
            mss_bytes: self.in_range("MSS", 0, MAX_MSS, number::MSS).filter(|&bytes| bytes != 0),
            no_delay: self.flag("nodelay"),
            tos: self.in_range("TOS", 0, u8::MAX, number::TOS).unwrap_or(defaults.tos),
            flow_label: self.in_range("flowlabel", 1, MAX_FLOW_LABEL, number::FLOW_LABEL),
            counters_64bit: self.flag("udp_counters_64bit"),
            repeating_payload: self.flag("repeating_payload"),
            zero_copy: self.flag("zerocopy"),
            skip_rx_copy: self.flag("skip_rx_copy"),
            dont_fragment: self.flag("dont_fragment"),
            server_output: self.flag("get_server_output"),
            mptcp: self.flag("mptcp"),
            server_affinity: self.in_range("server_affinity", 0, MAX_AFFINITY, number::AFFINITY),
            offload: Offload {
                gso: self.not_negative_32("gso").is_some_and(|gso| gso != 0),
                gro: self.in_range("gro", 0, 1_u8, number::RECV_PARAMS).is_some_and(|gro| gro != 0),
            },
        }
    }

    /// A stock server that finds both flags takes the bidirectional one.
    fn direction(&self) -> Direction {
        match (self.flag("bidirectional"), self.flag("reverse")) {
            (true, _) => Direction::Bidirectional,
            (false, true) => Direction::Reverse,
            (false, false) => Direction::Forward,
        }
    }

    /// Clients up to 3.2 leave `time` out when another limit holds; without any of the three the
    /// default time does.
    fn limits(&mut self) -> Limits {
        let bytes = self.not_zero("num");
        let blocks = self.not_zero("blockcount");
        let seconds = match self.in_range("time", 0, MAX_SECONDS, number::DURATION) {
            None if bytes.is_none() && blocks.is_none() => Some(DEFAULT_SECONDS),
            None | Some(0) => None,
            some => some,
        };
        Limits { seconds, bytes, blocks }
    }

    fn block_bytes(&mut self, protocol: Protocol) -> Option<u32> {
        match (protocol, self.numbers.number("len")) {
            (Protocol::Tcp | Protocol::Sctp, _) => {
                self.in_range("len", 1, MAX_TCP_BLOCK, number::BLOCK_SIZE)
            }
            (Protocol::Udp, Some(0)) => None,
            (Protocol::Udp, _) => {
                self.in_range("len", MIN_UDP_BLOCK, MAX_UDP_BLOCK, number::UDP_BLOCK_SIZE)
            }
        }
    }

    fn flag(&self, key: &'static str) -> bool {
        self.numbers.flag(key)
    }

    /// The value if it is there and neither zero nor negative.
    fn not_zero(&mut self, key: &'static str) -> Option<u64> {
        let value = self.number(key, 0, i64::MAX, number::RECV_PARAMS)?;
        u64::try_from(value).ok().filter(|&value| value != 0)
    }

    /// The value if it is there and one of C's `int` that is not negative.
    fn not_negative_32(&mut self, key: &'static str) -> Option<u32> {
        self.in_range(key, 0, i32::MAX as u32, number::RECV_PARAMS)
    }

    /// The value if it is there and within this range.
    fn in_range<U>(&mut self, key: &'static str, min: U, max: U, number: i32) -> Option<U>
    where
        U: TryFrom<i64> + Into<i64>,
    {
        let value = self.number(key, min.into(), max.into(), number)?;
        U::try_from(value).ok()
    }

    fn number(&mut self, key: &'static str, min: i64, max: i64, number: i32) -> Option<i64> {
        let value = self.numbers.number(key)?;
        if (min..=max).contains(&value) {
            return Some(value);
        }
        self.error.get_or_insert(DocumentError::OutOfRange { key, value, number });
        None
    }
}
