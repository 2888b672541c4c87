//! One data stream of each kind, with the window that a host's receiver has.

use linerate_core::flow::{ReceiveFlow, SendFlow, Step, StreamPlan};
use linerate_core::protocol::datagram::Header;
use linerate_core::stats::BUCKETS;
use linerate_core::test::{Protocol, Role, StreamId};
use linerate_core::time::Instant;
use linerate_core::units::BitsPerSec;

use super::Caller;

/// Makes a receiver, and has nothing for it.
pub(super) fn receiver(caller: Caller) {
    caller.call("new", || Box::new(HostReceiver::new(&PLAN)));
}

/// Sends and receives a few datagrams.
pub(super) fn flows(caller: Caller) {
    let mut receive = Box::new(HostReceiver::new(&PLAN));
    let mut send = SendFlow::<BUCKETS>::new(Instant::ZERO, &PLAN);
    for (at_ns, sequence) in [(0, 1), (40, 2), (60, 9), (70, 5), (80, 5), (90, 1 << 31)] {
        let now = Instant::from_nanos(at_ns);
        let mut datagram = [0; 64];
        Header { sent_us: at_ns, sequence }.write(&mut datagram, false);
        caller.call("handle_datagram", || receive.handle_datagram(now, &datagram, 1460));
        caller.call("sample", || receive.sample());
        caller.call("poll_step", || {
            if let Step::Send { .. } = send.poll_step(now) {
                send.write_header(now, 0, &mut datagram);
                send.handle_datagrams_sent(now, 1);
            }
        });
    }
}

const PLAN: StreamPlan = StreamPlan {
    id: StreamId::from_index(0),
    role: Role::Receiver,
    protocol: Protocol::Udp,
    block_bytes: 1460,
    bitrate: Some(BitsPerSec(1_000_000)),
    burst: None,
    joins_arrivals: false,
    may_wait: false,
    limit_bytes: None,
    share_bytes: None,
    counters_64bit: false,
    omit_until: Some(Instant::from_nanos(50)),
};

/// As a host's stream has it.
type HostReceiver = ReceiveFlow<1024, BUCKETS>;
