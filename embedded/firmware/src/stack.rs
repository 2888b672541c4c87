//! How deep the stack ever was: the start paints all of it, and what has lost its paint was used.

/// Bytes of the stack that were ever used.
pub fn deepest_bytes() -> usize {
    let (end, start) = (&raw const _stack_end, &raw const _stack_start);
    let words = (start as usize - end as usize) / size_of::<u32>();
    // SAFETY: between the two there is RAM that no static has; reading it is always allowed, and what
    // is not painted belongs to callers of this function, which do not write meanwhile.
    let untouched = (0..words).take_while(|&at| unsafe { end.add(at).read_volatile() } == PAINT);
    (words - untouched.count()) * size_of::<u32>()
}

unsafe extern "C" {
    static _stack_end: u32;
    static _stack_start: u32;
}

/// What cortex-m-rt paints with.
const PAINT: u32 = cortex_m_rt::STACK_PAINT_VALUE;
