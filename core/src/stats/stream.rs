//! The account of one stream: the last two samples, what the omitted start took, and what the peer
//! said. Everything reported is a difference of these.

use super::known::{RoleRow, WholeRow};
use super::{Sample, Tally, TcpStats};
use crate::on_host::OnHost;
use crate::protocol::results::ResultsStream;
use crate::report::{
    Datagrams, SideSummary, Span, StreamDetail, StreamInterval, StreamSummary, TcpSummary,
};
use crate::test::{Role, StreamId};

/// Whether a stream still moves data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum StreamState {
    /// It does, or may.
    Flowing,
    /// It has moved all it should.
    LimitReached,
    /// It broke or was closed.
    Closed,
}

/// One stream's books.
#[derive(Debug, Clone)]
pub struct StreamAccount {
    id: StreamId,
    role: Role,
    pub(super) state: StreamState,
    /// At the end of the interval before the last.
    previous: Mark,
    /// At the end of the last interval.
    last: Tally,
    /// The kernel's view at that moment.
    tcp: OnHost<TcpStats>,
    /// The last one within the omitted start.
    omitted: Mark,
    /// The flow itself said where that was.
    omit_is_exact: bool,
    extremes: OnHost<TcpExtremes>,
    remote: Option<SideSummary>,
    /// What this end knows beyond its totals.
    known: OnHost<RoleRow>,
    /// What the peer told of that.
    told: OnHost<RoleRow>,
}

impl StreamAccount {
    pub(super) fn new(id: StreamId, role: Role) -> Self {
        Self {
            id,
            role,
            state: StreamState::Flowing,
            previous: Mark::default(),
            last: Tally::default(),
            tcp: OnHost::NONE,
            omitted: Mark::default(),
            omit_is_exact: false,
            extremes: OnHost::NONE,
            remote: None,
            known: OnHost::NONE,
            told: OnHost::NONE,
        }
    }

    /// The stream's number.
    pub const fn id(&self) -> StreamId {
        self.id
    }

    /// What this end does on it.
    pub const fn role(&self) -> Role {
        self.role
    }

    /// Whether it still moves data.
    pub const fn state(&self) -> StreamState {
        self.state
    }

    /// It moved all it should.
    pub(crate) fn has_all(&self) -> bool {
        self.state == StreamState::LimitReached
    }

    /// Ends an interval; while `omitting`, what has been counted so far is left out of the result.
    pub(super) fn cut(&mut self, mut sample: Sample, omitting: bool) {
        if omitting {
            self.omit_is_exact = sample.omitted.is_some();
            sample.tally = sample.omitted.unwrap_or(sample.tally);
            self.omitted = Mark::new(sample.tally, sample.tcp);
        } else if !self.omit_is_exact
            && let Some(omitted) = sample.omitted
        {
            self.omit_is_exact = true;
            self.omitted.tally = omitted;
            self.last = omitted;
        }
        self.previous = Mark::new(self.last, self.tcp.get());
        (self.last, self.tcp) = (sample.tally, OnHost::new(sample.tcp));
        if let Some(tcp) = &sample.tcp {
            let mut extremes = self.extremes.get().unwrap_or_default();
            extremes.record(tcp);
            self.extremes.set(|| extremes);
        }
    }

    pub(super) fn restart_extremes(&mut self) {
        self.extremes = OnHost::NONE;
    }

    /// Bytes since the omitted start, up to `tally`.
    pub(super) fn measured_bytes(&self, tally: &Tally) -> u64 {
        tally.bytes.saturating_sub(self.omitted.tally.bytes)
    }

    pub(super) fn interval(&self, span: Span, omitted: bool) -> StreamInterval {
        StreamInterval {
            id: self.id,
            role: self.role,
            span,
            omitted,
            bytes: self.last.bytes.saturating_sub(self.previous.tally.bytes),
            datagrams: self.datagrams(&self.previous.tally),
            tcp: self.sender_tcp().map(|tcp| TcpStats {
                retransmits: self.retransmits_since(&self.previous),
                ..*tcp
            }),
        }
    }

    pub(super) fn summary(&self, duration_ns: u64) -> StreamSummary {
        StreamSummary {
            id: self.id,
            role: self.role,
            local: SideSummary {
                bytes: self.measured_bytes(&self.last),
                duration_ns: Some(duration_ns),
                datagrams: self.datagrams(&self.omitted.tally),
                retransmits: self.retransmits(),
            },
            remote: self.remote,
            tcp: self
                .sender_tcp()
                .zip(self.extremes.as_ref())
                .and_then(|(tcp, all)| all.summary(tcp)),
        }
    }

    /// This end's line of the results document.
    pub(super) fn results(&self, duration_ns: u64) -> ResultsStream {
        let (last, omitted) = (&self.last, &self.omitted.tally);
        let receives = self.role == Role::Receiver;
        let if_receiving = |value| if receives { value } else { 0 };
        ResultsStream {
            number: self.id.number(),
            bytes: self.measured_bytes(&self.last),
            retransmits: self.retransmits(),
            jitter_ns: if_receiving(last.jitter_ns),
            lost: if_receiving(last.lost),
            omitted_lost: Some(if_receiving(omitted.lost.min(last.lost))),
            packets: last.packets,
            omitted_packets: Some(omitted.packets),
            out_of_order: receives.then(|| last.out_of_order.saturating_sub(omitted.out_of_order)),
            duplicates: receives.then(|| last.duplicates.saturating_sub(omitted.duplicates)),
            too_late: receives.then(|| last.too_late.saturating_sub(omitted.too_late)),
            start_ns: Some(0),
            end_ns: Some(duration_ns),
        }
    }

    /// Takes the peer's line of its results; `omits` says that the test had an omitted start.
    pub(super) fn apply_remote(&mut self, peer: &ResultsStream, omits: bool) {
        let lost = match peer.omitted_lost {
            Some(omitted) => Some(peer.lost.saturating_sub(omitted)),
            // Peers up to 3.13 do not say how much of the loss fell into the omitted start.
            None if omits && peer.lost > 0 => None,
            None => Some(peer.lost),
        };
        let receives = self.role == Role::Sender;
        self.remote = Some(SideSummary {
            bytes: peer.bytes,
            duration_ns: match (peer.start_ns, peer.end_ns) {
                (Some(start), Some(end)) if end >= start => Some(end - start),
                _ => None,
            },
            datagrams: Datagrams {
                packets: peer.packets.saturating_sub(peer.omitted_packets.unwrap_or(0)),
                lost: if receives { lost } else { Some(0) },
                out_of_order: peer.out_of_order.filter(|_| receives),
                duplicates: peer.duplicates.filter(|_| receives),
                too_late: peer.too_late.filter(|_| receives),
                jitter_ns: if receives { peer.jitter_ns } else { 0 },
            },
            retransmits: if receives { None } else { peer.retransmits },
        });
    }

    /// What this end knows beyond its totals.
    pub(super) fn detail(&self) -> StreamDetail {
        let known = self.known.as_ref().map(|known| WholeRow::from_role(self.role, known).detail());
        known.unwrap_or_default()
    }

    /// What the peer knows beyond its totals, if it told anything of the sort.
    pub(super) fn remote_detail(&self) -> Option<StreamDetail> {
        let told = self.told.as_ref().filter(|told| !told.is_empty())?;
        Some(WholeRow::from_role(self.role.opposite(), told).detail())
    }

    pub(super) fn set_detail(&mut self, detail: &StreamDetail) {
        let role = self.role;
        self.known.set(|| WholeRow::of(detail).of_role(role));
    }

    /// Takes what the peer knows beyond its line; what only this end can know is left out.
    pub(super) fn apply_remote_detail(&mut self, peer: &StreamDetail) {
        let role = self.role.opposite();
        self.told.set(|| WholeRow::of(peer).of_role(role));
    }

    fn retransmits(&self) -> Option<u64> {
        self.sender_tcp()?;
        self.retransmits_since(&self.omitted)
    }

    fn retransmits_since(&self, mark: &Mark) -> Option<u64> {
        Some(self.tcp.get()?.retransmits?.saturating_sub(mark.retransmits.unwrap_or(0)))
    }

    fn sender_tcp(&self) -> Option<&TcpStats> {
        self.tcp.as_ref().filter(|_| self.role == Role::Sender)
    }

    /// Counts from `since` up to the last sample. A late datagram repairs an earlier interval's
    /// loss, so an interval's own loss is held at zero.
    fn datagrams(&self, since: &Tally) -> Datagrams {
        let last = &self.last;
        let receives = self.role == Role::Receiver;
        let grown = |to: u64, from: u64| to.saturating_sub(from);
        Datagrams {
            packets: grown(last.packets, since.packets),
            lost: Some(if receives { grown(last.lost, since.lost) } else { 0 }),
            out_of_order: receives.then(|| grown(last.out_of_order, since.out_of_order)),
            duplicates: receives.then(|| grown(last.duplicates, since.duplicates)),
            too_late: receives.then(|| grown(last.too_late, since.too_late)),
            jitter_ns: last.jitter_ns,
        }
    }
}

/// What has to be known of an earlier moment to tell what happened since. A session holds two for
/// each of its streams, so there is nothing else in it.
#[derive(Debug, Clone, Copy, Default)]
struct Mark {
    tally: Tally,
    retransmits: Option<u64>,
}

impl Mark {
    fn new(tally: Tally, tcp: Option<TcpStats>) -> Self {
        Self { tally, retransmits: tcp.and_then(|tcp| tcp.retransmits) }
    }
}

/// Extremes of the kernel's view over the samples of the measured part.
#[derive(Debug, Clone, Copy, Default)]
struct TcpExtremes {
    max_cwnd_bytes: u64,
    max_snd_wnd_bytes: u64,
    max_rtt_us: u32,
    min_rtt_us: Option<u32>,
    rtt_sum_us: u64,
    rtt_count: u64,
}

impl TcpExtremes {
    fn record(&mut self, tcp: &TcpStats) {
        self.max_cwnd_bytes = self.max_cwnd_bytes.max(tcp.cwnd_bytes.unwrap_or(0));
        self.max_snd_wnd_bytes = self.max_snd_wnd_bytes.max(tcp.snd_wnd_bytes.unwrap_or(0));
        if let Some(rtt_us) = tcp.rtt_us {
            self.max_rtt_us = self.max_rtt_us.max(rtt_us);
            self.min_rtt_us = Some(self.min_rtt_us.map_or(rtt_us, |min| min.min(rtt_us)));
            self.rtt_sum_us += u64::from(rtt_us);
            self.rtt_count += 1;
        }
    }

    fn summary(&self, last: &TcpStats) -> Option<TcpSummary> {
        Some(TcpSummary {
            max_cwnd_bytes: self.max_cwnd_bytes,
            max_snd_wnd_bytes: self.max_snd_wnd_bytes,
            max_rtt_us: self.max_rtt_us,
            min_rtt_us: self.min_rtt_us?,
            mean_rtt_us: (self.rtt_sum_us / self.rtt_count) as u32,
            reordering: last.reordering,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(bytes: u64, omitted: Option<u64>) -> Sample {
        let tally = |bytes| Tally { bytes, ..Tally::default() };
        Sample { tally: tally(bytes), omitted: omitted.map(tally), ..Sample::default() }
    }

    fn bytes(stream: &StreamAccount) -> (u64, u64) {
        let interval = stream.interval(Span::default(), false).bytes;
        (interval, stream.summary(1).local.bytes)
    }

    #[test]
    fn the_flow_says_where_the_omitted_start_ended() {
        // 90 bytes in the omitted start, then 10; the sampler looks when 97 have gone, and may
        // know of the border then or later.
        for known_at_once in [true, false] {
            let mut stream = StreamAccount::new(StreamId::from_index(0), Role::Sender);
            stream.cut(sample(97, known_at_once.then_some(90)), true);
            stream.cut(sample(100, Some(90)), false);
            assert_eq!(bytes(&stream), (10, 10), "{known_at_once}");
        }
    }

    #[test]
    fn a_peer_knows_what_its_role_can() {
        let all = StreamDetail {
            socket_drops: Some(1),
            refusals: Some(2),
            window_bytes: Some(3),
            buffer_bytes: Some(4),
            ..StreamDetail::default()
        };
        let cases = [
            (Role::Sender, StreamDetail { refusals: None, window_bytes: None, ..all }),
            (Role::Receiver, StreamDetail { socket_drops: None, ..all }),
        ];
        for (own, known) in cases {
            let mut stream = StreamAccount::new(StreamId::from_index(0), own);
            stream.apply_remote_detail(&all);
            assert_eq!(stream.remote_detail(), Some(known));
            let peer = ResultsStream {
                duplicates: Some(5),
                too_late: Some(6),
                ..ResultsStream::default()
            };
            stream.apply_remote(&peer, false);
            let told = stream.summary(1).remote.map(|side| side.datagrams).expect("applied");
            let receives = own == Role::Sender;
            assert_eq!(
                (told.duplicates, told.too_late),
                (receives.then_some(5), receives.then_some(6))
            );
        }
    }

    #[test]
    fn a_flow_without_a_clock_is_cut_where_it_was_sampled() {
        let mut stream = StreamAccount::new(StreamId::from_index(0), Role::Receiver);
        stream.cut(sample(97, None), true);
        stream.cut(sample(100, None), false);
        assert_eq!(bytes(&stream), (3, 3));
    }
}
