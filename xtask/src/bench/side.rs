//! Who talks to whom, and what is measured of it.

use std::collections::BTreeMap;

use super::capture::streams;
use super::numbers::{gaps, spread};
use super::run::{Ran, Usage};

/// One of the two tools.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Who {
    Peer,
    Own,
}

/// Client and server of a test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Side {
    pub(super) client: Who,
    pub(super) server: Who,
}

impl Side {
    pub(super) const PEERS: Self = Self { client: Who::Peer, server: Who::Peer };
    pub(super) const OWN: Self = Self { client: Who::Own, server: Who::Own };
    pub(super) const TO_PEER: Self = Self { client: Who::Own, server: Who::Peer };
    pub(super) const FROM_PEER: Self = Self { client: Who::Peer, server: Who::Own };

    /// For tables; the client comes first. Under Wine the tools are linerate for Linux and for Windows.
    pub(super) fn name(self, is_wine: bool) -> &'static str {
        match (self, is_wine) {
            (Self::PEERS, false) => "iperf3",
            (Self::OWN, false) | (Self::PEERS, true) => "linerate",
            (Self::TO_PEER, false) => "linerate to iperf3",
            (_, false) => "iperf3 to linerate",
            (Self::OWN, true) => "linerate.exe",
            (Self::TO_PEER, true) => "linerate.exe to linerate",
            (_, true) => "linerate to linerate.exe",
        }
    }
}

/// What is measured, in the order of the columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Metric {
    /// Bits a second, as received.
    Rate,
    /// Percent, as the receiver says.
    Loss,
    /// Standard deviation of the gaps between departures, in microseconds.
    Spread,
    /// CPU seconds of both ends for a gigabyte that arrived.
    CpuPerGb,
    /// CPU time of the client for the time of the test, in percent of a core.
    ClientCpu,
    /// Peak of memory, in megabytes.
    ClientMb,
    /// The same of the server.
    ServerMb,
}

/// The figures of one test.
pub(super) type Figures = BTreeMap<Metric, f64>;

/// What a test of `seconds` comes to; `block` is the size of a captured datagram.
pub(super) fn figures(ran: &Ran, seconds: u32, block: u64) -> Figures {
    let cpu = (ran.client.cpu + ran.server.cpu).as_secs_f64();
    let mut figures = Figures::from([
        (Metric::Rate, ran.received.bits_per_second()),
        (Metric::CpuPerGb, cpu / (ran.received.bytes / 1e9)),
        (Metric::ClientCpu, 100.0 * ran.client.cpu.as_secs_f64() / f64::from(seconds)),
        (Metric::ClientMb, megabytes(ran.client)),
        (Metric::ServerMb, megabytes(ran.server)),
    ]);
    figures.extend(ran.received.lost_percent.map(|percent| (Metric::Loss, percent)));
    let first = streams(&ran.departures, block).into_iter().next();
    figures.extend(first.map(|stream| (Metric::Spread, spread(&gaps(&stream)) / 1e3)));
    figures
}

fn megabytes(usage: Usage) -> f64 {
    usage.peak_bytes as f64 / 1e6
}
