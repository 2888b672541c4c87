//! One element of the document's `intervals`: each stream, and each direction's sum.

use linerate_core::test::Role;
use serde_json::Value;

use super::{Object, detail, number, view};
use crate::report::quantity::{bits_per_second, percentage, seconds};
use crate::report::{Interval, StreamInterval, TcpStats, TestStart};

/// `plain` leaves out what is linerate's own.
pub(super) fn object(interval: &Interval, start: &TestStart, plain: bool) -> Value {
    let streams = interval.streams.iter();
    let streams: Vec<Value> = streams.map(|stream| stream_object(stream, start)).collect();
    let mut object = Object::default();
    object.put("streams", streams);
    let keys = ["sum", "sum_bidir_reverse"];
    let roles = view::directions(&start.settings, start.connection.end);
    for (key, &role) in keys.into_iter().zip(roles) {
        let streams: Vec<_> =
            interval.streams.iter().filter(|stream| stream.role == role).collect();
        if let Some(sum) = view::interval_sum(&streams) {
            object.put(key, sum_object(&sum, start));
        }
    }
    if !plain {
        object.put_known("linerate", detail::interval(start, interval));
    }
    object.into()
}

fn stream_object(stream: &StreamInterval, start: &TestStart) -> Value {
    let mut object = Object::default();
    object.put("socket", view::socket_of(start, stream.id));
    put_transfer(&mut object, stream);
    if view::is_udp(&start.settings) {
        put_datagrams(&mut object, stream);
    } else if let Some(tcp) = &stream.tcp {
        put_tcp(&mut object, tcp);
    }
    put_flags(&mut object, stream);
    object.into()
}

fn sum_object(sum: &StreamInterval, start: &TestStart) -> Value {
    let mut object = Object::default();
    put_transfer(&mut object, sum);
    if view::is_udp(&start.settings) {
        put_datagrams(&mut object, sum);
    } else if let Some(tcp) = &sum.tcp {
        object.put("retransmits", or_minus_one(tcp.retransmits));
    }
    put_flags(&mut object, sum);
    object.into()
}

fn put_transfer(object: &mut Object, stream: &StreamInterval) {
    let span = stream.span;
    object.put("start", number(seconds(span.start_ns)));
    object.put("end", number(seconds(span.end_ns)));
    object.put("seconds", number(seconds(span.nanos())));
    object.put("bytes", stream.bytes);
    object.put("bits_per_second", number(bits_per_second(stream.bytes, span.nanos())));
}

fn put_datagrams(object: &mut Object, stream: &StreamInterval) {
    let datagrams = &stream.datagrams;
    match stream.role {
        Role::Sender => object.put("packets", datagrams.packets),
        Role::Receiver => {
            let lost = datagrams.lost.unwrap_or(0);
            object.put("jitter_ms", number(seconds(datagrams.jitter_ns) * 1000.0));
            object.put("lost_packets", lost);
            object.put("packets", datagrams.packets);
            object.put("lost_percent", number(percentage(lost, datagrams.packets)));
        }
    }
}

fn put_tcp(object: &mut Object, tcp: &TcpStats) {
    object.put("retransmits", or_minus_one(tcp.retransmits));
    object.put("snd_cwnd", or_minus_one(tcp.cwnd_bytes));
    object.put("snd_wnd", or_minus_one(tcp.snd_wnd_bytes));
    object.put("rtt", or_minus_one(tcp.rtt_us));
    object.put("rttvar", or_minus_one(tcp.rttvar_us));
    object.put("pmtu", or_minus_one(tcp.pmtu_bytes));
    object.put("reorder", or_minus_one(tcp.reordering));
}

fn put_flags(object: &mut Object, stream: &StreamInterval) {
    object.put("omitted", stream.omitted);
    object.put("sender", stream.role == Role::Sender);
}

/// iperf3's way of saying that the system does not tell.
fn or_minus_one(value: Option<impl Into<Value>>) -> Value {
    value.map_or(Value::from(-1), Into::into)
}
