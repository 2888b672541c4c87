//! The bytes that a server allows a test. Its senders stop by themselves at their shares; what arrives
//! is looked at, and the test is over once it would move more.

use super::Denial;
use super::looks::Looks;
use crate::test::{Direction, TestSettings};
use crate::time::{Instant, NANOS_PER_SEC};

/// What a test may move, and when to look at what it has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allowance {
    limit: u64,
    /// What an agreed amount may be above it, since blocks are whole.
    slack: u64,
    is_by_amount: bool,
    is_both_ways: bool,
    looks: Looks,
    /// When all was seen to be sent that may be.
    spent: Option<Instant>,
}

impl Allowance {
    pub(super) fn new(limit: u64, settings: &TestSettings) -> Self {
        let is_by_amount = settings.limits.bytes.or(settings.limits.blocks).is_some();
        let all_blocks = u64::from(settings.block_bytes) * settings.stream_count() as u64;
        Self {
            limit,
            slack: if is_by_amount { all_blocks } else { 0 },
            is_by_amount,
            is_both_ways: settings.direction == Direction::Bidirectional,
            looks: Looks::new(Instant::ZERO, LONGEST_LOOK_NS),
            spent: None,
        }
    }

    /// The test's clock runs. Returns when to look first.
    pub(super) fn begin(&mut self, now: Instant) -> Instant {
        self.looks = Looks::new(now, LONGEST_LOOK_NS);
        self.looks.first()
    }

    /// All bytes that may be moved.
    pub(super) const fn most(&self) -> u64 {
        self.limit.saturating_add(self.slack)
    }

    /// Those that this end may send. An amount was agreed for each way; without one, the other way may
    /// move nothing.
    pub(super) const fn most_sent(&self) -> u64 {
        if self.is_by_amount && self.is_both_ways { self.most() / 2 } else { self.most() }
    }

    /// A stream has its share: the others may have theirs soon.
    pub(super) fn hurry(&mut self) {
        self.looks.hurry();
    }

    /// Takes a look at `now`, when `measured` bytes have been moved; says when to look again.
    ///
    /// # Errors
    /// What is wrong when more was moved than may be, or `is_spent`: the senders have nothing left that
    /// they may send. An agreed amount may be just that, and its test is about to end by itself.
    pub(super) fn look(
        &mut self,
        now: Instant,
        measured: u64,
        is_spent: bool,
    ) -> Result<Instant, Denial> {
        let patience_ns = if self.is_by_amount { LAST_BYTES_NS } else { 0 };
        let is_over = is_spent && {
            let since = *self.spent.get_or_insert(now);
            now.nanos_since(since) >= patience_ns
        };
        if measured > self.most() || is_over {
            return Err(Denial::MeasuredBytes { measured, limit: self.limit });
        }
        Ok(self.looks.next(now, measured, self.most() - measured))
    }
}

const LONGEST_LOOK_NS: u64 = NANOS_PER_SEC / 2;
/// How long the last bytes of an agreed amount, and the client's word, may be on their way.
const LAST_BYTES_NS: u64 = NANOS_PER_SEC;
