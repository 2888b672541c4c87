//! The document's `end`: both sides of each stream, each direction's sums, and what the test cost.
//! A side that neither this end measured nor the peer told shows zeros in this end's own time, so
//! that no key is ever missing.

use linerate_core::test::{End, Role};
use serde_json::Value;

use super::{Object, number, view};
use crate::report::quantity::{bits_per_second, file_percentage, percentage, seconds};
use crate::report::view::Side;
use crate::report::{CpuUse, DiskFile, StreamSummary, TestEnd, TestStart};

pub(super) fn object(start: &TestStart, end: &TestEnd) -> Value {
    let is_udp = view::is_udp(&start.settings);
    let describe = |stream: &StreamSummary| {
        let socket = view::socket_of(start, stream.id);
        if is_udp {
            udp_stream(stream, socket)
        } else {
            tcp_stream(stream, socket, start.connection.end, end.file.as_ref())
        }
    };
    let mut object = Object::default();
    object.put("streams", end.streams.iter().map(describe).collect::<Vec<_>>());
    let suffixes = ["", "_bidir_reverse"];
    let roles = view::directions(&start.settings, start.connection.end);
    for (suffix, &role) in suffixes.into_iter().zip(roles) {
        let both = Both::sum(end.streams.iter().filter(|stream| stream.role == role));
        if let Some(both) = both {
            if is_udp {
                put_udp_sums(&mut object, suffix, &both, role);
            } else {
                put_tcp_sums(&mut object, suffix, &both, role);
            }
        }
    }
    object.put("cpu_utilization_percent", cpu(end));
    if !is_udp {
        put_congestion(&mut object, end, roles);
    }
    object.into()
}

/// Both sides of a stream or of a direction.
struct Both {
    sent: Side,
    received: Side,
}

impl Both {
    fn of(stream: &StreamSummary) -> Self {
        Self {
            sent: view::side(stream, Role::Sender),
            received: view::side(stream, Role::Receiver),
        }
    }

    fn sum<'a>(streams: impl Iterator<Item = &'a StreamSummary>) -> Option<Self> {
        let streams: Vec<Self> = streams.map(Self::of).collect();
        Some(Self {
            sent: view::side_sum(streams.iter().map(|both| &both.sent))?,
            received: view::side_sum(streams.iter().map(|both| &both.received))?,
        })
    }

    /// Datagrams that should have arrived: what the sender says, or the highest number that came.
    fn packets(&self) -> u64 {
        if self.sent.is_known {
            self.sent.datagrams.packets
        } else {
            self.received.datagrams.packets
        }
    }

    fn lost(&self) -> u64 {
        self.received.datagrams.lost.unwrap_or(0)
    }

    fn lost_percent(&self) -> Value {
        number(percentage(self.lost(), self.packets()))
    }

    fn jitter_ms(&self) -> Value {
        number(seconds(self.received.datagrams.jitter_ns) * 1000.0)
    }
}

fn tcp_stream(stream: &StreamSummary, socket: i32, end: End, file: Option<&DiskFile>) -> Value {
    let both = Both::of(stream);
    let is_sender = stream.role == Role::Sender;

    let mut sender = Object::default();
    sender.put("socket", socket);
    put_transfer(&mut sender, &both.sent);
    if let Some(retransmits) = both.sent.retransmits {
        sender.put("retransmits", retransmits);
        // A receiver was told nothing but that. A client's readers find the keys nevertheless, as
        // zeros; a server's never had them.
        if is_sender || end == End::Client {
            let tcp = stream.tcp.unwrap_or_default();
            sender.put("reorder", tcp.reordering.unwrap_or(0));
            sender.put("max_snd_cwnd", tcp.max_cwnd_bytes);
            sender.put("max_snd_wnd", tcp.max_snd_wnd_bytes);
            sender.put("max_rtt", tcp.max_rtt_us);
            sender.put("min_rtt", tcp.min_rtt_us);
            sender.put("mean_rtt", tcp.mean_rtt_us);
        }
    }
    sender.put("sender", is_sender);

    let mut receiver = Object::default();
    receiver.put("socket", socket);
    put_transfer(&mut receiver, &both.received);
    receiver.put("sender", is_sender);

    let mut object = Object::default();
    object.put("sender", sender);
    if let Some(file) = file.filter(|file| file.role == stream.role) {
        object.put("diskfile", diskfile(&both, file));
    }
    object.put("receiver", receiver);
    object.into()
}

fn diskfile(both: &Both, file: &DiskFile) -> Value {
    let share = |bytes| file_percentage(bytes, file.size_bytes);
    let mut object = Object::default();
    object.put("sent", both.sent.bytes);
    object.put("received", both.received.bytes);
    object.put("size", file.size_bytes);
    object.put("percent_sent", share(both.sent.bytes));
    object.put("percent_received", share(both.received.bytes));
    object.put("filename", file.name.as_str());
    object.into()
}

fn udp_stream(stream: &StreamSummary, socket: i32) -> Value {
    let both = Both::of(stream);
    let mut udp = Object::default();
    udp.put("socket", socket);
    put_transfer(&mut udp, &both.sent);
    udp.put("jitter_ms", both.jitter_ms());
    udp.put("lost_packets", both.lost());
    udp.put("packets", both.packets());
    udp.put("lost_percent", both.lost_percent());
    udp.put("out_of_order", both.received.datagrams.out_of_order.unwrap_or(0));
    udp.put("sender", stream.role == Role::Sender);
    let mut object = Object::default();
    object.put("udp", udp);
    object.into()
}

fn put_tcp_sums(object: &mut Object, suffix: &str, both: &Both, role: Role) {
    let mut sent = Object::default();
    put_transfer(&mut sent, &both.sent);
    if let Some(retransmits) = both.sent.retransmits {
        sent.put("retransmits", retransmits);
    }
    sent.put("sender", role == Role::Sender);
    let mut received = Object::default();
    put_transfer(&mut received, &both.received);
    received.put("sender", role == Role::Sender);
    object.put(&format!("sum_sent{suffix}"), sent);
    object.put(&format!("sum_received{suffix}"), received);
}

/// In the historical `sum` the sender's bytes stand beside the receiver's time.
fn put_udp_sums(object: &mut Object, suffix: &str, both: &Both, role: Role) {
    let Both { sent, received } = both;
    let mut sum = Object::default();
    put_times(&mut sum, received);
    put_bytes(&mut sum, sent);
    put_loss(&mut sum, both, both.packets());
    sum.put("sender", role == Role::Sender);

    let mut sum_sent = Object::default();
    put_transfer(&mut sum_sent, sent);
    sum_sent.put("jitter_ms", 0);
    sum_sent.put("lost_packets", 0);
    sum_sent.put("packets", sent.datagrams.packets);
    sum_sent.put("lost_percent", 0);
    sum_sent.put("sender", true);

    let mut sum_received = Object::default();
    put_transfer(&mut sum_received, received);
    put_loss(&mut sum_received, both, received.datagrams.packets);
    sum_received.put("sender", false);

    object.put(&format!("sum{suffix}"), sum);
    object.put(&format!("sum_sent{suffix}"), sum_sent);
    object.put(&format!("sum_received{suffix}"), sum_received);
}

fn put_loss(object: &mut Object, both: &Both, packets: u64) {
    object.put("jitter_ms", both.jitter_ms());
    object.put("lost_packets", both.lost());
    object.put("packets", packets);
    object.put("lost_percent", both.lost_percent());
}

fn put_transfer(object: &mut Object, side: &Side) {
    put_times(object, side);
    put_bytes(object, side);
}

fn put_times(object: &mut Object, side: &Side) {
    object.put("start", 0);
    object.put("end", number(seconds(side.duration_ns)));
    object.put("seconds", number(seconds(side.duration_ns)));
}

fn put_bytes(object: &mut Object, side: &Side) {
    object.put("bytes", side.bytes);
    object.put("bits_per_second", number(bits_per_second(side.bytes, side.duration_ns)));
}

fn cpu(end: &TestEnd) -> Value {
    let percent = |micropercent: u64| number(micropercent as f64 / 1e6);
    let mut object = Object::default();
    for (whose, cpu) in [("host", end.local_cpu), ("remote", end.remote_cpu.unwrap_or_default())] {
        let CpuUse { total_micropercent, user_micropercent, system_micropercent } = cpu;
        object.put(&format!("{whose}_total"), percent(total_micropercent));
        object.put(&format!("{whose}_user"), percent(user_micropercent));
        object.put(&format!("{whose}_system"), percent(system_micropercent));
    }
    object.into()
}

/// With data both ways each end is a sender too; then this end's algorithm stands as the sender's.
fn put_congestion(object: &mut Object, end: &TestEnd, roles: &[Role]) {
    let (sender, receiver) = if roles.contains(&Role::Sender) {
        (&end.local_congestion, &end.remote_congestion)
    } else {
        (&end.remote_congestion, &end.local_congestion)
    };
    if let Some(name) = sender {
        object.put("sender_tcp_congestion", name.as_str());
    }
    if let Some(name) = receiver {
        object.put("receiver_tcp_congestion", name.as_str());
    }
}
