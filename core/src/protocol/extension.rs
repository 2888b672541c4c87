//! The extension handshake between two linerate ends. iperf3 skips unknown keys of the parameters
//! and aborts on unknown control codes, so the offer travels as a key and the answer comes only to
//! a client that offered. It is fixed in this form:
//!
//! 1. The client's parameters contain, as their last member, `"linerate":{"version":1,"features":N}`:
//!    the highest version it speaks, from 1, and a bit for each feature it can take part in.
//! 2. A server that takes part sends the control code `0x4c` ([`ExtensionAccepted`]) before its
//!    request for streams, or before it refuses, and then one frame (four bytes of length,
//!    big-endian, as for every document) with `{"version":V,"features":M}`: the lower of the two
//!    versions, and the features that both ends have. Both members are always there.
//! 3. Then the exchange goes on as without the extension, with that request or refusal. From here
//!    on both ends may use exactly what step 2 names.
//!
//! A server that does not take part says nothing, and its request for streams means no. Unknown
//! members of both objects are skipped, so that later versions can add to them.
//!
//! [`ExtensionAccepted`]: super::code::ControlCode::ExtensionAccepted

use core::fmt::Write;
use core::ops::BitAnd;

use super::frame::{Document, Outgoing, PIECE_BYTES};
use super::json::{DocumentError, Filter, Kind, Member, Numbers, Taker, Window, WrongType, places};

/// The version of the extension that this engine speaks.
pub const VERSION: u32 = 1;

/// What an end can take part in, or what both have agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Offer {
    /// The highest version that is spoken, from 1.
    pub version: u32,
    /// What can be used.
    pub features: Features,
}

impl Offer {
    /// What this engine offers and accepts.
    pub const OWN: Self = Self { version: VERSION, features: Features::ALL };

    /// What an end with `own` answers to this offer: the lower version and the common features, or
    /// `None` if there is no common version.
    pub fn accept(&self, own: Self) -> Option<Self> {
        let version = self.version.min(own.version);
        (version > 0).then_some(Self { version, features: self.features & own.features })
    }
}

/// A set of features, a bit each. Unknown bits are carried along and vanish in the intersection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Features(u32);

impl Features {
    /// No feature.
    pub const NONE: Self = Self(0);
    /// A text follows each refusal, see [`explanation`](super::explanation).
    pub const EXPLAINED: Self = Self(1 << 1);

    /// UDP greetings name their test and stream, are repeated by the client and acknowledged by the
    /// server ([`NamedGreeting`](super::greeting::NamedGreeting)).
    pub const ACKNOWLEDGED_GREETINGS: Self = Self(1);

    /// Datagrams have numbers of 64 bits, whatever the parameters say.
    pub const WIDE_NUMBERS: Self = Self(1 << 2);

    /// All that this engine has.
    const ALL: Self =
        Self(Self::ACKNOWLEDGED_GREETINGS.0 | Self::EXPLAINED.0 | Self::WIDE_NUMBERS.0);

    /// The set of these bits.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// A bit for each feature.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Whether all of `other` are in this set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitAnd for Features {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

/// The server's answer, ready to be sent as the body of a frame.
#[derive(Debug, Clone, Copy)]
pub struct OutgoingExtension(pub Offer);

impl Outgoing for OutgoingExtension {
    fn write_piece(&self, index: usize, out: &mut [u8; PIECE_BYTES]) -> Option<usize> {
        let mut window = Window::new(index, out);
        // The window says itself when it is full.
        let _ = write!(window, "{}", Spelled(self.0));
        window.filled()
    }
}

/// An offer or answer as JSON.
pub(super) struct Spelled(pub(super) Offer);

impl core::fmt::Display for Spelled {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Offer { version, features: Features(bits) } = self.0;
        write!(f, "{{\"version\":{version},\"features\":{bits}}}")
    }
}

/// Reads the server's answer.
#[derive(Debug, Clone)]
pub struct ExtensionReader {
    filter: Filter,
    offer: WireOffer,
}

impl ExtensionReader {
    /// A reader of one answer.
    pub const fn new() -> Self {
        Self { filter: Filter::new(MEMBERS, WrongType::Refused), offer: WireOffer::new() }
    }

    /// What the server agrees to, once the document has ended.
    ///
    /// # Errors
    /// [`DocumentError::Missing`] without a version that can be spoken.
    pub fn finish(self) -> Result<Offer, DocumentError> {
        self.filter.check_complete()?;
        self.offer.offer().ok_or(DocumentError::Missing { key: "version" })
    }
}

impl Default for ExtensionReader {
    fn default() -> Self {
        Self::new()
    }
}

impl Document for ExtensionReader {
    fn handle_bytes(&mut self, bytes: &[u8]) -> Result<(), DocumentError> {
        self.filter.handle_bytes(bytes, &mut self.offer)
    }

    fn handle_end(&mut self) -> Result<(), DocumentError> {
        self.filter.end(&mut self.offer)
    }
}

/// The members of an offer, wherever it stands.
pub(super) const MEMBERS: &[Member] =
    &[Member::new("version", Kind::Number), Member::new("features", Kind::Number)];

/// An offer as it came.
#[derive(Debug, Clone)]
pub(super) struct WireOffer(Numbers<[i64; places(MEMBERS)]>);

impl WireOffer {
    pub(super) const fn new() -> Self {
        Self(Numbers::new(MEMBERS))
    }

    /// The offer, unless its version is none that can be spoken.
    pub(super) fn offer(&self) -> Option<Offer> {
        let numbers: &Numbers = &self.0;
        let version = u32::try_from(numbers.number("version")?.min(u32::MAX.into())).ok()?;
        let features = Features(numbers.number("features").unwrap_or(0) as u32);
        (version > 0).then_some(Offer { version, features })
    }
}

impl Taker for WireOffer {
    fn handle_number(&mut self, _object: &'static str, place: usize, value: i64) {
        let numbers: &mut Numbers = &mut self.0;
        numbers.put(place, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::testing::{fed, written};

    const fn offer(version: u32, bits: u32) -> Offer {
        Offer { version, features: Features(bits) }
    }

    #[test]
    fn the_answer_is_the_lower_version_and_the_common_features() {
        let cases = [
            (offer(1, 0), offer(1, 0), Some(offer(1, 0))),
            (offer(3, 0b1110), offer(2, 0b0111), Some(offer(2, 0b0110))),
            (offer(1, 0b1000), offer(2, 0b0111), Some(offer(1, 0))),
            (offer(0, 0b1111), offer(2, 0b1111), None),
        ];
        for (theirs, own, answer) in cases {
            assert_eq!(theirs.accept(own), answer);
        }
    }

    #[test]
    fn the_answer_survives_the_wire() {
        let body = written(&OutgoingExtension(offer(1, 6)));
        assert_eq!(body, "{\"version\":1,\"features\":6}");
        let reader = fed(ExtensionReader::new(), body.as_bytes(), &[1]).unwrap();
        assert_eq!(reader.finish(), Ok(offer(1, 6)));
    }

    #[test]
    fn answers_may_say_more_but_not_less() {
        let read = |body: &str| fed(ExtensionReader::new(), body.as_bytes(), &[4])?.finish();
        assert_eq!(read("{\"new\":{\"version\":9},\"version\":2,\"features\":1}"), Ok(offer(2, 1)));
        let missing = Err(DocumentError::Missing { key: "version" });
        assert_eq!(read("{\"features\":1}"), missing);
        assert_eq!(read("{\"version\":0,\"features\":1}"), missing);
        let wrong = Err(DocumentError::WrongType { key: "features" });
        assert_eq!(read("{\"version\":1,\"features\":[]}"), wrong);
    }
}
