//! The known members of a document, as data.

/// A member that is read; everything else is skipped.
#[derive(Debug)]
pub(crate) struct Member {
    /// As the canonical text spells it.
    pub(crate) key: &'static str,
    /// What its value must be.
    pub(crate) kind: Kind,
}

impl Member {
    pub(crate) const fn new(key: &'static str, kind: Kind) -> Self {
        Self { key, kind }
    }
}

/// What the value of a member must be, and what becomes of it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    /// A number, towards zero, kept within 32 bits.
    Int32,
    /// A number, towards zero, kept within 64 bits.
    Int64,
    /// As [`Int64`](Self::Int64), handed on while it is read.
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
    /// An object with members of its own.
    Object(&'static [Member]),
    /// An array of objects, each handed on as soon as it is complete. The canonical text only says
    /// that the array is there.
    Elements(&'static [Member]),
}

/// Longer keys are unknown.
pub(super) const MAX_KEY: usize = 24;

/// Most bytes that the canonical text of these members takes.
///
/// # Panics
/// While compiling, if a table has more members or longer keys than the filter can hold.
pub(crate) const fn capacity(members: &[Member]) -> usize {
    assert!(members.len() <= u64::BITS as usize, "a bit for each member");
    let mut bytes = "{}".len();
    let mut index = 0;
    while index < members.len() {
        assert!(members[index].key.len() <= MAX_KEY, "a buffer for each key");
        bytes += room(&members[index]);
        index += 1;
    }
    bytes
}

const fn room(member: &Member) -> usize {
    let width = match member.kind {
        Kind::Number | Kind::Text | Kind::RawText | Kind::RawObject => return 0,
        Kind::Int32 => "-2147483648".len(),
        Kind::Int64 | Kind::Scaled(_) => "-9223372036854775808".len(),
        Kind::Flag | Kind::NumberFlag | Kind::NonZeroFlag => "false".len(),
        Kind::Object(members) => capacity(members),
        Kind::Elements(members) => "true".len() + capacity(members),
    };
    member.key.len() + "\"\":,".len() + width
}
