//! Sleep. The core stops until an interrupt, of which there is one each millisecond: QEMU's user
//! network looks at its sockets only when something wakes it.

use core::cell::Cell;

use cortex_m::interrupt::InterruptNumber;
use cortex_m::peripheral::syst::SystClkSource;
use cortex_m::peripheral::{NVIC, Peripherals};
use cortex_m_rt::exception;
use critical_section::Mutex;

use crate::{clock, lan9118};

/// Starts the tick and lets interrupts of the board through. Once, before the first sleep and after
/// the network controller was set up: until then its line is active.
///
/// # Panics
///
/// When it is called twice.
pub fn start() {
    let mut core = Peripherals::take().expect("nobody else takes them");
    core.SYST.set_clock_source(SystClkSource::Core);
    core.SYST.set_reload(clock::TICKS_PER_MICRO * 1000 - 1);
    core.SYST.clear_current();
    core.SYST.enable_counter();
    core.SYST.enable_interrupt();
    for line in [clock::ALARM_LINE, lan9118::LINE] {
        // SAFETY: no code relies on these being masked.
        unsafe { NVIC::unmask(Line(line)) };
    }
}

/// Sleeps until the next interrupt, unless there is something to do, which is asked while none can
/// come in between.
pub fn sleep_unless(is_busy: impl FnOnce() -> bool) {
    critical_section::with(|section| {
        if is_busy() {
            return;
        }
        let began = clock::ticks();
        cortex_m::asm::wfi();
        let slept = SLEPT.borrow(section);
        slept.set(slept.get() + u64::from(clock::ticks().wrapping_sub(began)));
    });
}

/// Microseconds since the start in which the core did not sleep. Where QEMU counts instructions
/// instead of time (`-icount shift=0`), it is thousands of them.
pub fn busy_micros() -> u64 {
    let slept = critical_section::with(|section| SLEPT.borrow(section).get());
    clock::micros() - slept / u64::from(clock::TICKS_PER_MICRO)
}

/// In ticks of the clock.
static SLEPT: Mutex<Cell<u64>> = Mutex::new(Cell::new(0));

/// A line into the interrupt controller.
#[derive(Clone, Copy)]
struct Line(u16);

// SAFETY: the number is the line's for as long as the value lives.
unsafe impl InterruptNumber for Line {
    fn number(self) -> u16 {
        self.0
    }
}

/// Waking is all that it is for.
#[exception]
fn SysTick() {}

/// All lines come here: nothing but these two is let through.
// SAFETY: it touches registers only, and those of its own devices.
#[exception]
unsafe fn DefaultHandler(line: i16) {
    match u16::try_from(line) {
        Ok(clock::ALARM_LINE) => clock::on_alarm(),
        Ok(lan9118::LINE) => lan9118::on_interrupt(),
        _ => defmt::panic!("interrupt {}", line),
    }
}
