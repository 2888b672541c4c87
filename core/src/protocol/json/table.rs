//! The known members of a document, as data.

/// A member that is read; everything else is skipped.
#[derive(Debug)]
pub(crate) struct Member {
    /// As iperf3 spells it.
    pub(crate) key: &'static str,
    /// What its value must be.
    pub(crate) kind: Kind,
}

impl Member {
    /// # Panics
    /// While compiling, if the key is longer than keys are read, or has more members than there are bits.
    pub(crate) const fn new(key: &'static str, kind: Kind) -> Self {
        assert!(key.len() <= MAX_KEY, "longer keys are unknown");
        if let Kind::Object(members) | Kind::Elements(members) = kind {
            assert!(members.len() <= MAX_MEMBERS, "a bit for each member");
        }
        Self { key, kind }
    }
}

/// What the value of a member must be, and what becomes of it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    /// A number, towards zero, kept within 32 bits.
    Int32,
    /// A number, towards zero, kept within 64 bits.
    Number,
    /// A number in units of a power of ten: seconds with nine digits are nanoseconds. C prints a
    /// value that is none (NaN) as `null`; it counts as zero.
    Scaled(u8),
    /// `true` or `false`, and both mean set.
    Flag,
    /// Any number, and all mean set.
    NumberFlag,
    /// A number that is set unless it is zero.
    NonZeroFlag,
    /// Text, handed on while it is read.
    Text,
    /// A text whose spelling is handed on as it is.
    RawText,
    /// An object whose spelling is handed on as it is.
    RawObject,
    /// An object with members of its own. They are behind one more reference because a thin one keeps all
    /// members of all tables small.
    Object(&'static &'static [Member]),
    /// An array of objects with members of their own. The array itself is a flag.
    Elements(&'static &'static [Member]),
}

/// Longer keys are unknown.
pub(super) const MAX_KEY: usize = 24;

/// Most members of a table: a bit for each.
pub(super) const MAX_MEMBERS: usize = u64::BITS as usize;
