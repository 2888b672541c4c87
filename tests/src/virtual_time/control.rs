//! The control connection: a reliable pipe each way, and what can go wrong with it. A fault sits at a
//! byte, so that any place of the exchange can be hit.

use linerate_core::test::End;
use linerate_core::time::Instant;

use super::pipe::Pipe;
use crate::link::model::LinkModel;

/// What goes wrong with one direction, once so many bytes went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControlFault {
    /// Whose bytes.
    pub from: End,
    /// How many of them still arrive.
    pub after_bytes: u64,
    /// What then happens.
    pub kind: ControlFaultKind,
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlFaultKind {
    /// The connection breaks; both ends notice.
    Cut,
    /// Nothing more arrives in this direction, and nobody notices.
    Stall,
}

/// What is to be delivered, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// These bytes.
    Bytes(Vec<u8>),
    /// The end of the stream.
    Closed,
}

/// Both directions.
#[derive(Debug)]
pub struct Control {
    to_server: Half,
    to_client: Half,
}

#[derive(Debug)]
struct Half {
    pipe: Pipe,
    sent: u64,
    fault: Option<(u64, ControlFaultKind)>,
    is_closed: bool,
}

impl Control {
    /// A fresh connection.
    pub fn new(latency_ns: u64, seed: u64, fault: Option<ControlFault>) -> Self {
        let half = |from| Half {
            pipe: Pipe::new(LinkModel { latency_ns, ..LinkModel::default() }, seed),
            sent: 0,
            fault: fault.filter(|f| f.from == from).map(|f| (f.after_bytes, f.kind)),
            is_closed: false,
        };
        Self { to_server: half(End::Client), to_client: half(End::Server) }
    }

    /// Sends bytes of `from`; returns what arrives where and when.
    pub fn send(&mut self, now: Instant, from: End, bytes: &[u8]) -> Vec<(Instant, End, Delivery)> {
        let half = self.half(from);
        if half.is_closed {
            return Vec::new();
        }
        let room = half.fault.map_or(u64::MAX, |(at, _)| at.saturating_sub(half.sent));
        let passing = bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX));
        half.sent += bytes.len() as u64;
        let arrival = half.pipe.send(now, passing as u64);
        let mut deliveries = Vec::new();
        if passing > 0 {
            deliveries.push((arrival, other(from), Delivery::Bytes(bytes[..passing].to_vec())));
        }
        if passing < bytes.len() {
            half.is_closed = true;
            if matches!(half.fault, Some((_, ControlFaultKind::Cut))) {
                self.half(other(from)).is_closed = true;
                deliveries.push((arrival, other(from), Delivery::Closed));
                deliveries.push((arrival, from, Delivery::Closed));
            }
        }
        deliveries
    }

    /// `from` closes the connection: the other end learns it after what was sent before.
    pub fn close(&mut self, now: Instant, from: End) -> Vec<(Instant, End, Delivery)> {
        let half = self.half(from);
        if std::mem::replace(&mut half.is_closed, true) {
            return Vec::new();
        }
        vec![(half.pipe.send(now, 0), other(from), Delivery::Closed)]
    }

    fn half(&mut self, from: End) -> &mut Half {
        match from {
            End::Client => &mut self.to_server,
            End::Server => &mut self.to_client,
        }
    }
}

/// The end that `end` talks to.
pub const fn other(end: End) -> End {
    match end {
        End::Client => End::Server,
        End::Server => End::Client,
    }
}
