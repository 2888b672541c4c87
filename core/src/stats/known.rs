//! What an end knows of a stream, as a row of numbers of which some are known. A session holds two rows for
//! each of its streams, its own and the other end's, so a row has room only for what its role can know;
//! plain records would be more than twice as large. The results document has the same numbers.

use crate::report::{
    Jitter3550, LossBursts, Percentiles, Reordering, SenderWaits, StreamDetail, ThreadUse,
};
use crate::test::Role;

/// A row for what any role can know: the receiver's numbers, the sender's, and those of both.
pub(crate) type WholeRow = Row<{ 2 * ROLE_NUMBERS + BOTH_NUMBERS }>;

/// A row for what one role can know.
pub(crate) type RoleRow = Row<{ ROLE_NUMBERS + BOTH_NUMBERS }>;

/// So many numbers, each at the place of its key in the results document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<const K: usize> {
    values: [u64; K],
    /// A bit for each that is known.
    known: u64,
}

impl<const K: usize> Row<K> {
    /// How many numbers there can be.
    pub(crate) const PLACES: usize = K;

    /// Nothing is known.
    pub(crate) const fn new() -> Self {
        Self { values: [0; K], known: 0 }
    }

    /// Whether nothing is known.
    pub(crate) const fn is_empty(&self) -> bool {
        self.known == 0
    }

    /// The number at a place.
    pub(crate) fn one(&self, place: usize) -> Option<u64> {
        self.group(place).map(|[value]| value)
    }

    /// Notes the numbers from a place on.
    pub(crate) fn put<const G: usize>(&mut self, first: usize, group: Option<[u64; G]>) {
        for (place, value) in (first..).zip(group.into_iter().flatten()) {
            self.values[place] = value;
            self.known |= 1 << place;
        }
    }

    /// So many numbers from a place on, if all of them are known.
    fn group<const G: usize>(&self, first: usize) -> Option<[u64; G]> {
        let all = ((1 << G) - 1) << first;
        let values = self.values[first..].first_chunk()?;
        (self.known & all == all).then_some(*values)
    }
}

impl WholeRow {
    /// All that is known.
    pub(crate) fn of(detail: &StreamDetail) -> Self {
        let mut row = Self::new();
        row.put(JITTER, detail.jitter.map(|jitter| [jitter.smoothed_ns, jitter.mean_ns]));
        row.put(VARIATION, detail.delay_variation.map(of_percentiles));
        row.put(DIFFERENCES, detail.delay_differences.map(of_percentiles));
        let of_reordering = |own: Reordering| [own.count, own.extent_sum, own.max_extent];
        row.put(REORDERING, detail.reordering.map(of_reordering));
        row.put(LOSS_BURSTS, detail.loss_bursts.map(|bursts| [bursts.count, bursts.longest]));
        row.put(SOCKET_DROPS, detail.socket_drops.map(|count| [count]));
        row.put(REFUSALS, detail.refusals.map(|count| [count]));
        row.put(GAPS, detail.gaps.map(of_percentiles));
        row.put(ROUND_TRIPS, detail.round_trips.map(of_percentiles));
        row.put(IDLE_ROUND_TRIP, detail.idle_round_trip_us.map(|us| [us.into()]));
        let of_waits = |own: SenderWaits| [own.busy_us, own.receive_window_us, own.send_buffer_us];
        row.put(WAITS, detail.waits.map(of_waits));
        row.put(RESENT, detail.resent_bytes.map(|bytes| [bytes]));
        row.put(DELIVERY, detail.delivery_bytes_per_sec.map(|rate| [rate]));
        row.put(WINDOW, detail.window_bytes.map(|bytes| [bytes]));
        row.put(BUFFER, detail.buffer_bytes.map(|bytes| [bytes]));
        row.put(THREAD, detail.thread.map(|thread| [thread.wall_ns, thread.cpu_ns]));
        row.put(QUEUED, detail.thread.and_then(|thread| thread.queued_ns).map(|ns| [ns]));
        row
    }

    /// All that is known. A group is known only as a whole, and what cannot be is brought to what can, since
    /// it may be a peer's.
    pub(crate) fn detail(&self) -> StreamDetail {
        StreamDetail {
            jitter: self
                .group(JITTER)
                .map(|[smoothed_ns, mean_ns]| Jitter3550 { smoothed_ns, mean_ns }),
            delay_variation: self.percentiles(VARIATION),
            delay_differences: self.percentiles(DIFFERENCES),
            reordering: self.group(REORDERING).map(|[count, extent_sum, max_extent]| Reordering {
                count,
                extent_sum,
                max_extent: max_extent.min(extent_sum),
            }),
            loss_bursts: self
                .group(LOSS_BURSTS)
                .map(|[count, longest]| LossBursts { count, longest }),
            socket_drops: self.one(SOCKET_DROPS),
            refusals: self.one(REFUSALS),
            gaps: self.percentiles(GAPS),
            round_trips: self.percentiles(ROUND_TRIPS),
            idle_round_trip_us: self.one(IDLE_ROUND_TRIP).and_then(|us| u32::try_from(us).ok()),
            waits: self.group(WAITS).map(|[busy_us, receive_window_us, send_buffer_us]| {
                SenderWaits {
                    busy_us,
                    receive_window_us: receive_window_us.min(busy_us),
                    send_buffer_us: send_buffer_us.min(busy_us),
                }
            }),
            resent_bytes: self.one(RESENT),
            delivery_bytes_per_sec: self.one(DELIVERY),
            window_bytes: self.one(WINDOW),
            buffer_bytes: self.one(BUFFER),
            thread: self.group(THREAD).map(|[wall_ns, cpu_ns]| ThreadUse {
                wall_ns,
                cpu_ns: cpu_ns.min(wall_ns),
                queued_ns: self.one(QUEUED).map(|queued_ns| queued_ns.min(wall_ns)),
            }),
        }
    }

    /// The part that this role can know.
    pub(crate) fn of_role(&self, role: Role) -> RoleRow {
        let mut part = RoleRow::new();
        for (place, place_in_part) in places(role) {
            part.put(place_in_part, self.one(place).map(|value| [value]));
        }
        part
    }

    /// The row that this is the part of.
    pub(crate) fn from_role(role: Role, part: &RoleRow) -> Self {
        let mut row = Self::new();
        for (place, place_in_part) in places(role) {
            row.put(place, part.one(place_in_part).map(|value| [value]));
        }
        row
    }

    fn percentiles(&self, first: usize) -> Option<Percentiles> {
        let [count, p50_ns, p90_ns, p99_ns, p999_ns, max_ns] = self.group(first)?;
        let p999_ns = p999_ns.min(max_ns);
        let p99_ns = p99_ns.min(p999_ns);
        let p90_ns = p90_ns.min(p99_ns);
        let p50_ns = p50_ns.min(p90_ns);
        (count > 0).then_some(Percentiles { count, p50_ns, p90_ns, p99_ns, p999_ns, max_ns })
    }
}

const fn of_percentiles(own: Percentiles) -> [u64; 6] {
    [own.count, own.p50_ns, own.p90_ns, own.p99_ns, own.p999_ns, own.max_ns]
}

/// The places of what a role can know, in the whole row and in that of the role.
fn places(role: Role) -> impl Iterator<Item = (usize, usize)> {
    let first = match role {
        Role::Receiver => JITTER,
        Role::Sender => REFUSALS,
    };
    (first..first + ROLE_NUMBERS).chain(BUFFER..BUFFER + BOTH_NUMBERS).zip(0..)
}

const JITTER: usize = 0;
const VARIATION: usize = JITTER + 2;
const DIFFERENCES: usize = VARIATION + 6;
const REORDERING: usize = DIFFERENCES + 6;
const LOSS_BURSTS: usize = REORDERING + 3;
const SOCKET_DROPS: usize = LOSS_BURSTS + 2;
const REFUSALS: usize = SOCKET_DROPS + 1;
const GAPS: usize = REFUSALS + 1;
const ROUND_TRIPS: usize = GAPS + 6;
const IDLE_ROUND_TRIP: usize = ROUND_TRIPS + 6;
const WAITS: usize = IDLE_ROUND_TRIP + 1;
const RESENT: usize = WAITS + 3;
const DELIVERY: usize = RESENT + 1;
const WINDOW: usize = DELIVERY + 1;
const BUFFER: usize = WINDOW + 1;
const THREAD: usize = BUFFER + 1;
const QUEUED: usize = THREAD + 2;

/// Numbers that only one role can know, as many for each.
const ROLE_NUMBERS: usize = 20;
/// Numbers that both can know.
const BOTH_NUMBERS: usize = 4;

const _: () = assert!(REFUSALS == ROLE_NUMBERS && BUFFER == 2 * ROLE_NUMBERS);
const _: () = assert!(QUEUED + 1 == BUFFER + BOTH_NUMBERS);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_has_its_own_numbers_and_those_of_both() {
        let mut whole = WholeRow::new();
        (0..WholeRow::PLACES).for_each(|place| whole.put(place, Some([place as u64 + 1])));
        for (role, others) in [(Role::Receiver, 20..40), (Role::Sender, 0..20)] {
            let row = WholeRow::from_role(role, &whole.of_role(role));
            for place in 0..WholeRow::PLACES {
                let expected = (!others.contains(&place)).then_some(place as u64 + 1);
                assert_eq!(row.one(place), expected, "{role:?} {place}");
            }
        }
    }
}
