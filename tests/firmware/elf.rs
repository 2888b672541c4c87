//! What an image takes on the board, read from the segments of its file (ELF, 32 bits, little-endian).

use std::path::Path;

/// Sizes of an image.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    /// Code, constants, and what memory holds at the start.
    pub(crate) flash_bytes: u32,
    /// All that is static.
    pub(crate) memory_bytes: u32,
}

/// The sizes of the image in this file.
pub(crate) fn size_of(path: &Path) -> Size {
    let file = std::fs::read(path).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
    assert_eq!(file[..6], *b"\x7fELF\x01\x01", "{} is no image of this kind", path.display());
    let word = |at: usize| u32::from_le_bytes(file[at..][..4].try_into().expect("four bytes"));
    let half = |at: usize| usize::from(u16::from_le_bytes([file[at], file[at + 1]]));
    let (segments, segment_bytes, count) = (word(28) as usize, half(42), half(44));
    let loaded =
        (0..count).map(|index| segments + index * segment_bytes).filter(|&at| word(at) == LOAD);
    let mut size = Size { flash_bytes: 0, memory_bytes: 0 };
    for at in loaded {
        let (address, in_file, in_memory) = (word(at + 8), word(at + 16), word(at + 20));
        size.flash_bytes += in_file;
        if address >= MEMORY {
            size.memory_bytes += in_memory;
        }
    }
    size
}

const LOAD: u32 = 1;
/// Where the board's memory begins.
const MEMORY: u32 = 0x2000_0000;
