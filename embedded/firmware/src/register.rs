//! Registers of the board's devices: the one place where addresses become memory.

/// A register of 32 bits.
#[derive(Clone, Copy)]
pub(crate) struct Register(usize);

impl Register {
    /// The register at an address of the board's devices.
    pub(crate) const fn at(address: usize) -> Self {
        assert!(address >= DEVICES && address.is_multiple_of(4), "no register is there");
        Self(address)
    }

    pub(crate) fn read(self) -> u32 {
        // SAFETY: above `DEVICES` there is no memory that Rust knows, and the address is aligned.
        unsafe { (self.0 as *const u32).read_volatile() }
    }

    pub(crate) fn write(self, value: u32) {
        // SAFETY: as for `read`.
        unsafe { (self.0 as *mut u32).write_volatile(value) }
    }
}

/// Where the memory map of a Cortex-M has devices: below are code and RAM.
const DEVICES: usize = 0x4000_0000;
