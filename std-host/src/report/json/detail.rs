//! What is known beyond iperf3's numbers, for the key `linerate` of the document and of its intervals.
//! All numbers are integers, units stand in the names, and what is not known is left out.

use linerate_core::report::{
    Evidence, Hint, Jitter3550, LossBursts, Percentiles, Reordering, SenderWaits, StreamDetail,
    ThreadUse, Verdict,
};
use linerate_core::test::{Role, StreamId};
use serde_json::Value;

use super::{Object, view};
use crate::report::{
    Datagrams, Interval, StreamDetails, StreamInterval, StreamSummary, TestEnd, TestStart, verdict,
};

/// The streams over the whole test.
pub(super) fn streams(start: &TestStart, end: &TestEnd) -> Vec<Value> {
    let side = |detail: &StreamDetail, role, datagrams: &Datagrams| {
        let mut counts = Object::default();
        if role == Role::Receiver && view::is_udp(&start.settings) {
            counts.put("packets", datagrams.packets);
            counts.put_known("lost", datagrams.lost);
            counts.0.extend(arrivals(datagrams).0);
        }
        self::detail(detail, counts)
    };
    let describe = |(stream, details): (&StreamSummary, StreamDetails)| {
        let mut object = identity(start, stream.id, stream.role);
        object.put_filled("local", side(&details.local, stream.role, &stream.local.datagrams));
        if let Some(remote) = &stream.remote {
            let detail = details.remote.unwrap_or_default();
            let remote = side(&detail, stream.role.opposite(), &remote.datagrams);
            object.put_filled("remote", remote);
        }
        object.put_known("lost_at_end", view::lost_at_end(start, end, stream));
        object.into()
    };
    view::with_details(end).map(describe).collect()
}

/// The streams of an interval as this end knows them; nothing if it knows no more than iperf3 does.
pub(super) fn interval(start: &TestStart, interval: &Interval) -> Option<Value> {
    let streams = interval.streams.iter().zip(&interval.details);
    let known = streams.filter(|(_, detail)| **detail != StreamDetail::default());
    let describe = |(stream, detail): (&StreamInterval, &StreamDetail)| {
        let mut object = identity(start, stream.id, stream.role);
        object.put("local", self::detail(detail, arrivals(&stream.datagrams)));
        object.into()
    };
    let streams: Vec<Value> = known.map(describe).collect();
    if streams.is_empty() {
        return None;
    }
    let mut object = Object::default();
    object.put("streams", streams);
    Some(object.into())
}

/// What limited each direction.
pub(super) fn verdicts(end: &TestEnd) -> Vec<Value> {
    let describe = |verdict: &Verdict| {
        let mut object = Object::default();
        object.put("role", role_name(verdict.role));
        object.put("limit", verdict::name(verdict.limit));
        object.put("one_sided", verdict.is_one_sided);
        object.put("evidence", evidence(&verdict.evidence));
        object.put_known("hint", verdict.hint.map(hint));
        object.put("text", verdict::words(verdict, None));
        object.into()
    };
    end.verdicts.iter().map(describe).collect()
}

fn identity(start: &TestStart, id: StreamId, role: Role) -> Object {
    let mut object = Object::default();
    object.put("id", id.number());
    object.put("socket", view::socket_of(start, id));
    object.put("role", role_name(role));
    object
}

const fn role_name(role: Role) -> &'static str {
    match role {
        Role::Sender => "sender",
        Role::Receiver => "receiver",
    }
}

/// Counts that only a receiver has, and iperf3 not at all or in one place.
fn arrivals(datagrams: &Datagrams) -> Object {
    let mut object = Object::default();
    object.put_known("out_of_order", datagrams.out_of_order);
    object.put_known("duplicates", datagrams.duplicates);
    object.put_known("too_late", datagrams.too_late);
    object
}

fn detail(detail: &StreamDetail, datagrams: Object) -> Object {
    let mut object = Object::default();
    object.put_filled("datagrams", datagrams);
    object.put_known("jitter", detail.jitter.map(jitter));
    object.put_known("delay_variation", detail.delay_variation.map(percentiles));
    object.put_known("delay_differences", detail.delay_differences.map(percentiles));
    object.put_known("reordering", detail.reordering.map(reordering));
    object.put_known("loss_bursts", detail.loss_bursts.map(loss_bursts));
    object.put_known("socket_drops", detail.socket_drops);
    object.put_known("refusals", detail.refusals);
    object.put_known("gaps", detail.gaps.map(percentiles));
    object.put_known("round_trips", detail.round_trips.map(percentiles));
    object.put_known("idle_round_trip_us", detail.idle_round_trip_us);
    object.put_known("waits", detail.waits.map(waits));
    object.put_known("resent_bytes", detail.resent_bytes);
    object.put_known("delivery_bytes_per_second", detail.delivery_bytes_per_sec);
    object.put_known("window_bytes", detail.window_bytes);
    object.put_known("buffer_bytes", detail.buffer_bytes);
    object.put_known("thread", detail.thread.map(thread));
    object
}

fn percentiles(percentiles: Percentiles) -> Object {
    let Percentiles { count, p50_ns, p90_ns, p99_ns, p999_ns, max_ns } = percentiles;
    let mut object = Object::default();
    object.put("count", count);
    object.put("p50_ns", p50_ns);
    object.put("p90_ns", p90_ns);
    object.put("p99_ns", p99_ns);
    object.put("p999_ns", p999_ns);
    object.put("max_ns", max_ns);
    object
}

fn jitter(jitter: Jitter3550) -> Object {
    let mut object = Object::default();
    object.put("smoothed_ns", jitter.smoothed_ns);
    object.put("mean_ns", jitter.mean_ns);
    object
}

fn reordering(reordering: Reordering) -> Object {
    let mut object = Object::default();
    object.put("count", reordering.count);
    object.put("extent_sum", reordering.extent_sum);
    object.put("max_extent", reordering.max_extent);
    object
}

fn loss_bursts(bursts: LossBursts) -> Object {
    let mut object = Object::default();
    object.put("count", bursts.count);
    object.put("longest", bursts.longest);
    object
}

fn waits(waits: SenderWaits) -> Object {
    let mut object = Object::default();
    object.put("busy_us", waits.busy_us);
    object.put("receive_window_us", waits.receive_window_us);
    object.put("send_buffer_us", waits.send_buffer_us);
    object
}

fn thread(thread: ThreadUse) -> Object {
    let mut object = Object::default();
    object.put("wall_ns", thread.wall_ns);
    object.put("cpu_ns", thread.cpu_ns);
    object.put_known("queued_ns", thread.queued_ns);
    object
}

fn evidence(evidence: &Evidence) -> Object {
    let mut object = Object::default();
    object.put("bits_per_second", evidence.rate);
    object.put_known("requested_bits_per_second", evidence.requested_rate);
    object.put_known("receive_window_permille", evidence.receive_window_share);
    object.put_known("send_buffer_permille", evidence.send_buffer_share);
    object.put_known("busy_permille", evidence.busy_share);
    object.put_known("sender_cpu_permille", evidence.sender_cpu_share);
    object.put_known("receiver_cpu_permille", evidence.receiver_cpu_share);
    object.put_known("resent_ppm", evidence.resent_millionths);
    object.put_known("lost_ppm", evidence.lost_millionths);
    object.put_known("socket_drops", evidence.socket_drops);
    object.put_known("refusals", evidence.refusals);
    object.put_known("idle_round_trip_us", evidence.idle_round_trip_us);
    object.put_known("loaded_round_trip_us", evidence.loaded_round_trip_us);
    object.put_known("window_bytes", evidence.window_bytes);
    object.put_known("send_buffer_bytes", evidence.send_buffer_bytes);
    object.put_known("receive_buffer_bytes", evidence.receive_buffer_bytes);
    object
}

fn hint(hint: Hint) -> Object {
    let mut object = Object::default();
    match hint {
        Hint::LargerWindow { bytes } => {
            object.put("try", "larger_window");
            object.put("bytes", bytes);
        }
        Hint::LargerReceiveBuffer { bytes } => {
            object.put("try", "larger_receive_buffer");
            object.put("bytes", bytes);
        }
        Hint::MoreStreams => object.put("try", "more_streams"),
        Hint::FewerCopies => object.put("try", "fewer_copies"),
        Hint::LargerBlocks => object.put("try", "larger_blocks"),
        Hint::HigherRate => object.put("try", "higher_rate"),
        Hint::LowerRate { rate } => {
            object.put("try", "lower_rate");
            object.put("bits_per_second", rate);
        }
        Hint::OtherCongestionControl => object.put("try", "other_congestion_control"),
    }
    object
}
