//! The LAN9118 Ethernet controller, as much of it as a network stack needs: frames in and out by the
//! core itself, and an interrupt when one has come. One driver for both stacks.
//!
//! Source: the data sheet of the LAN9118 by SMSC.

pub mod embassy;
mod smoltcp;

use crate::register::Register;

/// The controller, and a frame of it each way.
pub struct Lan9118 {
    received: Frame,
    sent: Frame,
}

/// The longest frame without its checksum, in whole words.
type Frame = [u8; 1516];

impl Lan9118 {
    /// Resets the controller and lets it receive everything that is meant for it or for groups.
    pub fn start(&mut self) {
        HARDWARE.write(HARDWARE_RESET);
        while HARDWARE.read() & HARDWARE_RESET != 0 {}
        HARDWARE.write(HARDWARE_MUST_BE_ONE | HARDWARE_TRANSMIT_FIFO);
        // Without these two bits the line is active when nothing is to be told.
        INTERRUPT_LINE.write(LINE_ENABLE | LINE_ACTIVE_HIGH | LINE_PUSH_PULL);
        INTERRUPT_ENABLE.write(0);
        INTERRUPTS.write(u32::MAX);
        write_mac(MAC_CONTROL, MAC_RECEIVE | MAC_TRANSMIT | MAC_FULL_DUPLEX | MAC_ALL_MULTICAST);
        TRANSMIT_CONFIG.write(TRANSMIT_ON);
    }

    /// A controller that is not set up.
    pub const fn new() -> Self {
        Self { received: [0; size_of::<Frame>()], sent: [0; size_of::<Frame>()] }
    }

    /// The address that the board gave it.
    pub fn mac_address(&self) -> [u8; 6] {
        let low = read_mac(MAC_ADDRESS_LOW).to_le_bytes();
        let high = read_mac(MAC_ADDRESS_HIGH).to_le_bytes();
        [low[0], low[1], low[2], low[3], high[0], high[1]]
    }

    /// The next frame, and room for an answer to it.
    fn exchange(&mut self) -> Option<(Received<'_>, Outgoing<'_>)> {
        if !can_send() {
            return None;
        }
        let length = receive(&mut self.received)?;
        Some((Received(&mut self.received[..length]), Outgoing(&mut self.sent)))
    }

    /// Room for a frame.
    fn outgoing(&mut self) -> Option<Outgoing<'_>> {
        can_send().then_some(Outgoing(&mut self.sent))
    }
}

/// A frame that has come.
pub struct Received<'a>(&'a mut [u8]);

/// Room for a frame, and the way out of it.
pub struct Outgoing<'a>(&'a mut Frame);

impl Outgoing<'_> {
    /// Sends a frame of so many bytes, once it was written.
    fn send<R>(self, length: usize, write: impl FnOnce(&mut [u8]) -> R) -> R {
        let written = write(&mut self.0[..length]);
        // Nobody asks how it went, but what is not taken fills the controller.
        while TRANSMIT_FIFO.read() >> 16 & 0xFF != 0 {
            TRANSMIT_STATUS.read();
        }
        TRANSMIT_DATA.write(COMMAND_FIRST | COMMAND_LAST | length as u32);
        TRANSMIT_DATA.write(length as u32);
        let (words, _) = self.0.as_chunks::<4>();
        for word in &words[..length.div_ceil(4)] {
            TRANSMIT_DATA.write(u32::from_le_bytes(*word));
        }
        written
    }
}

impl Default for Lan9118 {
    fn default() -> Self {
        Self::new()
    }
}

/// Whether a frame can be taken.
pub fn is_frame_waiting() -> bool {
    RECEIVE_FIFO.read() >> 16 & 0xFF != 0
}

/// Lets an interrupt come for the next frame. To be asked before each sleep, and whether a frame is
/// there after it: one that came before does not interrupt.
pub fn listen() {
    INTERRUPTS.write(RECEIVED);
    INTERRUPT_ENABLE.write(RECEIVED);
}

/// The interrupt is the waking; the line rests until somebody listens again.
pub(crate) fn on_interrupt() {
    INTERRUPT_ENABLE.write(0);
}

/// Whether it has room for the longest frame and its two words of command.
fn can_send() -> bool {
    TRANSMIT_FIFO.read() & 0xFFFF >= (size_of::<Frame>() + 8) as u32
}

/// Takes the next frame out of the controller; how long it is, or none if there is none. What is broken
/// or does not fit is dropped.
fn receive(frame: &mut Frame) -> Option<usize> {
    while is_frame_waiting() {
        let status = RECEIVE_STATUS.read();
        // With the checksum, which nobody wants.
        let all_bytes = (status >> 16 & 0x3FFF) as usize;
        let length = all_bytes.saturating_sub(CHECKSUM_BYTES);
        let (all, wanted) = (all_bytes.div_ceil(4), length.div_ceil(4));
        let (words, _) = frame.as_chunks_mut::<4>();
        let is_good = status & RECEIVE_ERROR == 0 && wanted <= words.len();
        let kept = if is_good { wanted } else { 0 };
        for word in &mut words[..kept] {
            *word = RECEIVE_DATA.read().to_le_bytes();
        }
        drop_words(all - kept);
        if is_good {
            return Some(length);
        }
    }
    None
}

fn drop_words(words: usize) {
    for _ in 0..words {
        RECEIVE_DATA.read();
    }
}

fn read_mac(register: u32) -> u32 {
    MAC_COMMAND.write(MAC_BUSY | MAC_READ | register);
    while MAC_COMMAND.read() & MAC_BUSY != 0 {}
    MAC_DATA.read()
}

fn write_mac(register: u32, value: u32) {
    MAC_DATA.write(value);
    MAC_COMMAND.write(MAC_BUSY | register);
    while MAC_COMMAND.read() & MAC_BUSY != 0 {}
}

const fn register(offset: usize) -> Register {
    Register::at(0x4020_0000 + offset)
}

/// Its line into the interrupt controller.
pub(crate) const LINE: u16 = 13;

const RECEIVE_DATA: Register = register(0x00);
const TRANSMIT_DATA: Register = register(0x20);
const RECEIVE_STATUS: Register = register(0x40);
const TRANSMIT_STATUS: Register = register(0x48);
const INTERRUPT_LINE: Register = register(0x54);
const INTERRUPTS: Register = register(0x58);
const INTERRUPT_ENABLE: Register = register(0x5C);
const TRANSMIT_CONFIG: Register = register(0x70);
const HARDWARE: Register = register(0x74);
const RECEIVE_FIFO: Register = register(0x7C);
const TRANSMIT_FIFO: Register = register(0x80);
const MAC_COMMAND: Register = register(0xA4);
const MAC_DATA: Register = register(0xA8);

const RECEIVE_ERROR: u32 = 1 << 15;
const CHECKSUM_BYTES: usize = 4;
const COMMAND_FIRST: u32 = 1 << 13;
const COMMAND_LAST: u32 = 1 << 12;
const LINE_ENABLE: u32 = 1 << 8;
const LINE_ACTIVE_HIGH: u32 = 1 << 4;
const LINE_PUSH_PULL: u32 = 1 << 0;
/// More frames wait than the level, which is zero after a reset.
const RECEIVED: u32 = 1 << 3;
const TRANSMIT_ON: u32 = 1 << 1;
const HARDWARE_RESET: u32 = 1 << 0;
const HARDWARE_MUST_BE_ONE: u32 = 1 << 20;
/// Five of sixteen KiB; the rest is for what arrives.
const HARDWARE_TRANSMIT_FIFO: u32 = 5 << 16;

const MAC_BUSY: u32 = 1 << 31;
const MAC_READ: u32 = 1 << 30;
const MAC_CONTROL: u32 = 1;
const MAC_ADDRESS_HIGH: u32 = 2;
const MAC_ADDRESS_LOW: u32 = 3;
const MAC_RECEIVE: u32 = 1 << 2;
const MAC_TRANSMIT: u32 = 1 << 3;
/// IPv6 finds its neighbours by groups.
const MAC_ALL_MULTICAST: u32 = 1 << 19;
const MAC_FULL_DUPLEX: u32 = 1 << 20;
