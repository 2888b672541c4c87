//! Random bytes read as decisions. When they run out every further decision is zero, so that each
//! input means something and a shorter one means less.

/// The rest of the bytes.
#[derive(Clone)]
pub(super) struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn byte(&mut self) -> u8 {
        let [byte] = self.array();
        byte
    }

    /// A number below `end`.
    pub(super) fn below(&mut self, end: u8) -> u8 {
        self.byte() % end
    }

    pub(super) fn u16(&mut self) -> u16 {
        u16::from_be_bytes(self.array())
    }

    pub(super) fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.array())
    }

    pub(super) fn u64(&mut self) -> u64 {
        u64::from_be_bytes(self.array())
    }

    /// The next bytes, `len` at most.
    pub(super) fn bytes(&mut self, len: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        bytes
    }

    fn array<const L: usize>(&mut self) -> [u8; L] {
        let mut array = [0; L];
        let bytes = self.bytes(L);
        array[..bytes.len()].copy_from_slice(bytes);
        array
    }
}

/// Ways to cut the same bytes: whole, each byte alone, and at places that hang on the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chunks {
    Whole,
    Single,
    Mixed { state: u64 },
}

impl Chunks {
    /// The three ways for these bytes.
    pub(super) fn of(bytes: &[u8]) -> [Self; 3] {
        let mix = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let state = bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix);
        [Self::Whole, Self::Single, Self::Mixed { state }]
    }

    /// Cuts the next chunk off the front.
    pub(super) fn next<'a>(&mut self, rest: &mut &'a [u8]) -> &'a [u8] {
        let len = match self {
            Self::Whole => rest.len(),
            Self::Single => 1,
            Self::Mixed { state } => {
                *state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                1 + (*state >> 60) as usize * (*state >> 58 & 3) as usize
            }
        };
        let (chunk, after) = rest.split_at(len.min(rest.len()));
        *rest = after;
        chunk
    }
}
