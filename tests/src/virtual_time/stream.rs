//! One data stream between the two ends: the flows of its sender and its receiver, the network
//! between them, and what really happened to each block, told by nobody but the network.

use std::ops::Range;

use linerate_core::flow::{ReceiveFlow, SendFlow, Step, StreamPlan};
use linerate_core::report::StreamDetail;
use linerate_core::stats::{BUCKETS, DetailMeter, Sample, TcpStats};
use linerate_core::test::{End, Protocol, StreamId};
use linerate_core::time::Instant;

use super::pipe::Pipe;
use crate::link::model::{Link, LinkCounts, LinkModel};
use crate::link::trace::Trace;

/// One data stream.
pub struct Stream {
    /// Its number.
    pub id: StreamId,
    /// Who sends.
    pub sender: End,
    /// What carried the data, and what it did.
    pub truth: Truth,
    network: Network,
    window_bytes: u64,
    in_flight: u64,
    send: Option<Sending>,
    receive: Option<Receiving>,
    /// What arrived before the receiver was started waits in its socket.
    early: Vec<Payload>,
    /// What the receiver knew of each stretch between two samples, and the arrivals until its end.
    pub parts: Vec<(usize, StreamDetail)>,
    /// The sender's next step is in the queue of events.
    pub is_step_queued: bool,
}

struct Sending {
    flow: SendFlow<BUCKETS>,
    plan: StreamPlan,
    stopped: bool,
    limit_told: bool,
}

struct Receiving {
    flow: Box<ReceiveFlow<WINDOW_WORDS, BUCKETS>>,
    meter: Box<DetailMeter<BUCKETS>>,
    omit_until: Option<Instant>,
    /// What of its limit has not come yet, as the network knows it.
    limit_left: Option<u64>,
    limit_told: bool,
    share_told: bool,
    counting: bool,
}

enum Network {
    Datagrams(Link),
    Bytes(Pipe),
}

/// What goes over the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Payload {
    /// So many bytes of a TCP stream.
    Bytes(u64),
    /// The beginning of a datagram, its length, and its place in the order of sending, which only
    /// the network knows.
    Datagram {
        /// At least the header.
        head: [u8; 16],
        /// Bytes in all.
        len: usize,
        /// Counted from one.
        place: u64,
        /// When it left, on the network's clock.
        sent: Instant,
    },
}

/// What the network knows of a stream.
#[derive(Debug, Clone)]
pub struct Truth {
    /// Bytes that the sender handed over.
    pub sent_bytes: u64,
    /// Datagrams that the sender handed over, and those that the receiver took while it counted.
    pub trace: Trace,
    /// How many of them came before the end of the omitted start.
    pub omitted: usize,
    /// Bytes that the receiver took while it counted.
    pub taken_bytes: u64,
}

impl Truth {
    /// The arrivals after the omitted start.
    pub fn measured(&self) -> Range<usize> {
        self.omitted..self.trace.arrivals()
    }
}

/// What a sender did in one step.
pub enum Stepped {
    /// This left, and arrives then; ask again at once.
    Sent(Payload, Vec<Instant>),
    /// Ask again at this time, on the sender's clock or the network's.
    Wait(Until),
    /// Ask again when something is acknowledged.
    Blocked,
    /// The limit is reached and everything is handed over: to be told once.
    LimitReached,
    /// Nothing to do any more.
    Idle,
}

/// A time and whose it is.
pub enum Until {
    /// On the sender's clock.
    Sender(Instant),
    /// On the network's.
    Network(Instant),
}

impl Stream {
    /// A stream that is not running yet.
    pub fn new(
        id: StreamId,
        sender: End,
        protocol: Protocol,
        model: LinkModel,
        window_bytes: u64,
        seed: u64,
    ) -> Self {
        Self {
            id,
            sender,
            truth: Truth {
                sent_bytes: 0,
                trace: Trace::with_window(64 * WINDOW_WORDS as u64),
                omitted: 0,
                taken_bytes: 0,
            },
            network: match protocol {
                Protocol::Udp => Network::Datagrams(Link::new(model, seed)),
                Protocol::Tcp | Protocol::Sctp => Network::Bytes(Pipe::new(model, seed)),
            },
            window_bytes,
            in_flight: 0,
            send: None,
            receive: None,
            early: Vec::new(),
            parts: Vec::new(),
            is_step_queued: false,
        }
    }

    /// `end` starts its flow at `now`, which is `own` on its clock.
    pub fn start(&mut self, end: End, now: Instant, own: Instant, plan: StreamPlan) {
        if end == self.sender {
            let flow = SendFlow::new(own, &plan);
            self.send = Some(Sending { flow, plan, stopped: false, limit_told: false });
        } else {
            let flow = Box::new(ReceiveFlow::new(&plan));
            self.receive = Some(Receiving {
                flow,
                meter: Box::default(),
                omit_until: plan.omit_until,
                limit_left: plan.limit_bytes,
                limit_told: false,
                share_told: false,
                counting: true,
            });
            for payload in std::mem::take(&mut self.early) {
                self.arrive(now, own, payload);
            }
        }
    }

    /// `end` stops: a sender writes nothing more, a receiver counts nothing more.
    pub fn stop(&mut self, end: End) {
        if end == self.sender {
            if let Some(sending) = &mut self.send {
                sending.stopped = true;
            }
        } else if let Some(receiving) = &mut self.receive {
            receiving.counting = false;
        }
    }

    /// What `end` has counted.
    pub fn sample(&self, end: End) -> Sample {
        if end != self.sender {
            let sample = self.receive.as_ref().map(|receiving| receiving.flow.sample());
            return sample.unwrap_or_default();
        }
        let sample = self.send.as_ref().map(|sending| sending.flow.sample()).unwrap_or_default();
        let tcp = match &self.network {
            Network::Datagrams(_) => None,
            Network::Bytes(pipe) => Some(TcpStats {
                retransmits: Some(pipe.retransmits()),
                cwnd_bytes: Some(self.window_bytes),
                rtt_us: Some((2 * pipe.latency_ns() / 1000) as u32),
                ..TcpStats::default()
            }),
        };
        Sample { tcp, ..sample }
    }

    /// What the receiver knows beyond its tally, once it runs.
    pub fn detail(&self) -> Option<StreamDetail> {
        Some(self.receive.as_ref()?.flow.detail().whole())
    }

    /// Ends a stretch of the receiver's details.
    pub fn cut_detail(&mut self) {
        if let Some(receiving) = &mut self.receive {
            let part = receiving.meter.cut(receiving.flow.detail());
            self.parts.push((self.truth.trace.arrivals(), part));
        }
    }

    /// One step of the sender at `now`, which is `own` on its clock.
    pub fn step(&mut self, now: Instant, own: Instant) -> Stepped {
        let Some(sending) = self.send.as_mut().filter(|sending| !sending.stopped) else {
            return Stepped::Idle;
        };
        let bytes = match sending.flow.poll_step(own) {
            Step::Wait { until } => return Stepped::Wait(Until::Sender(until)),
            Step::Done if sending.limit_told => return Stepped::Idle,
            Step::Done if self.in_flight > 0 => return Stepped::Blocked,
            Step::Done => {
                sending.limit_told = true;
                return Stepped::LimitReached;
            }
            Step::Send { bytes } => bytes.min(u64::from(sending.plan.block_bytes)),
        };
        match &mut self.network {
            Network::Bytes(pipe) => {
                if self.in_flight >= self.window_bytes {
                    return Stepped::Blocked;
                }
                let bytes = bytes.min(self.window_bytes - self.in_flight);
                sending.flow.handle_sent(own, bytes);
                self.in_flight += bytes;
                self.truth.sent_bytes += bytes;
                Stepped::Sent(Payload::Bytes(bytes), vec![pipe.send(now, bytes)])
            }
            Network::Datagrams(link) => {
                if sending.plan.bitrate.is_none() && link.busy_until() > now {
                    return Stepped::Wait(Until::Network(link.busy_until()));
                }
                let mut head = [0; 16];
                sending.flow.write_header(own, 0, &mut head);
                sending.flow.handle_datagrams_sent(own, 1);
                self.truth.sent_bytes += bytes;
                let place = self.truth.trace.send();
                let arrivals = link.send(now, bytes).collect();
                Stepped::Sent(
                    Payload::Datagram { head, len: bytes as usize, place, sent: now },
                    arrivals,
                )
            }
        }
    }

    /// Something arrives at the receiver at `now`, which is `own` on its clock.
    pub fn arrive(&mut self, now: Instant, own: Instant, payload: Payload) {
        let Some(receiving) = &mut self.receive else {
            self.early.push(payload);
            return;
        };
        if !receiving.counting {
            return;
        }
        let is_omitted = receiving.omit_until.is_some_and(|until| own < until);
        let room = receiving.limit_left.filter(|_| !is_omitted).unwrap_or(u64::MAX);
        let mut take = |bytes: u64| {
            let taken = bytes.min(room);
            if let Some(left) = receiving.limit_left.as_mut().filter(|_| !is_omitted) {
                *left -= taken;
            }
            taken
        };
        match payload {
            Payload::Bytes(bytes) => {
                self.truth.taken_bytes += take(bytes);
                receiving.flow.handle_bytes(own, bytes);
            }
            Payload::Datagram { head, len, .. } if take(len as u64) == 0 => {
                receiving.flow.handle_datagram(own, &head, len);
            }
            Payload::Datagram { head, len, place, sent } => {
                receiving.flow.handle_datagram(own, &head, len);
                self.truth.trace.arrive(place, now.nanos_since(sent));
                self.truth.omitted += usize::from(is_omitted);
                self.truth.taken_bytes += len as u64;
            }
        }
    }

    /// Whether the receiver has all it should, told once.
    pub fn take_limit_reached(&mut self) -> bool {
        let done = self.receive.as_mut().filter(|receiving| receiving.flow.is_done());
        done.is_some_and(|receiving| !std::mem::replace(&mut receiving.limit_told, true))
    }

    /// Whether the receiver has its share, told once.
    pub fn take_share_reached(&mut self) -> bool {
        let there = self.receive.as_mut().filter(|receiving| receiving.flow.has_share());
        there.is_some_and(|receiving| !std::mem::replace(&mut receiving.share_told, true))
    }

    /// The sender learns that `bytes` are there.
    pub fn acknowledge(&mut self, bytes: u64) {
        self.in_flight = self.in_flight.saturating_sub(bytes);
    }

    /// What the link under a stream of datagrams did.
    pub const fn link_counts(&self) -> Option<LinkCounts> {
        match &self.network {
            Network::Datagrams(link) => Some(link.counts()),
            Network::Bytes(_) => None,
        }
    }
}

/// Reordering is told from duplicates within 4096 datagrams.
const WINDOW_WORDS: usize = 64;
