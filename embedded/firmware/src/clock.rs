//! Time: the free-running counter of the board, widened so that it never wraps, and one alarm.

use core::cell::Cell;

use critical_section::Mutex;

use crate::register::Register;

/// Microseconds since the start. It must be asked once in 171 s, or it misses a turn of the counter;
/// whoever sleeps wakes a thousand times a second.
pub fn micros() -> u64 {
    critical_section::with(|section| {
        let cell = CLOCK.borrow(section);
        let Clock { counted, micros } = cell.get();
        let new = ticks().wrapping_sub(counted) / TICKS_PER_MICRO;
        let clock = Clock {
            counted: counted.wrapping_add(new * TICKS_PER_MICRO),
            micros: micros + u64::from(new),
        };
        cell.set(clock);
        clock.micros
    })
}

/// Lets an interrupt come at a moment of this clock, in place of the one asked for before.
pub fn wake_at(micros_then: u64) {
    let ahead = micros_then.saturating_sub(micros());
    let ticks = u32::try_from(ahead).unwrap_or(u32::MAX).saturating_mul(TICKS_PER_MICRO);
    TIMER_CONTROL.write(0);
    // It counts down to the interrupt, and not from zero.
    TIMER_VALUE.write(ticks.max(1));
    TIMER_CONTROL.write(TIMER_ENABLE | TIMER_INTERRUPT);
}

/// The alarm's interrupt is the waking; nothing else is to be done.
pub(crate) fn on_alarm() {
    TIMER_CONTROL.write(0);
    TIMER_CLEAR.write(1);
}

/// The counter as it is; it wraps.
pub(crate) fn ticks() -> u32 {
    COUNTER.read()
}

#[derive(Clone, Copy)]
struct Clock {
    /// The counter's ticks that are in `micros`.
    counted: u32,
    micros: u64,
}

static CLOCK: Mutex<Cell<Clock>> = Mutex::new(Cell::new(Clock { counted: 0, micros: 0 }));

/// The counter and the timer run with the core, at 25 MHz.
pub const TICKS_PER_MICRO: u32 = 25;

/// FPGAIO's.
const COUNTER: Register = Register::at(0x4002_8018);
/// CMSDK timer 0.
const TIMER_CONTROL: Register = Register::at(0x4000_0000);
const TIMER_VALUE: Register = Register::at(0x4000_0004);
const TIMER_CLEAR: Register = Register::at(0x4000_000C);
const TIMER_ENABLE: u32 = 1 << 0;
const TIMER_INTERRUPT: u32 = 1 << 3;
/// Its line into the interrupt controller.
pub(crate) const ALARM_LINE: u16 = 8;
