//! Every row of the comparison, with what is wanted of it. The wanted ratios are those against iperf3
//! 3.21 or newer.

use super::side::Metric::{self, ClientCpu, ClientMb, CpuPerGb, Loss, Rate, ServerMb, Spread};

/// A kind of test.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) table: Table,
    /// Of both clients.
    pub(super) flags: &'static str,
    /// Of iperf3 alone, and of both towards each other.
    pub(super) peer_flags: &'static str,
    /// Of linerate alone.
    pub(super) own_flags: &'static str,
    /// When none are asked for.
    pub(super) seconds: u32,
    /// Whether each tool talks to the other as well, and is held against iperf3 with itself.
    pub(super) crosses: bool,
    pub(super) wanted: &'static [Wanted],
}

/// Rows of one table have the same columns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Table {
    Tcp,
    Udp,
    Paced,
    /// Departures are captured.
    Captured,
    Memory,
    /// No test, only a server that waits for one.
    Idle,
}

/// What a figure should be.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) metric: Metric,
    pub(super) bound: Bound,
}

/// What it is held against.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Bound {
    /// So many times iperf3's.
    AtLeast(f64),
    /// At most so many times iperf3's.
    AtMost(f64),
    /// At most so many times that of an iperf3 which still sends in bursts of a millisecond, and of
    /// one that sleeps until each departure; none is no bound.
    AtMostByAge { bursts: Option<f64>, sleeps: Option<f64> },
    /// Linerate's own figure, whatever iperf3's is.
    Own(f64),
}

const fn wanted(metric: Metric, bound: Bound) -> Wanted {
    Wanted { metric, bound }
}

const TCP: Row = Row {
    name: "",
    table: Table::Tcp,
    flags: "",
    peer_flags: "",
    own_flags: "",
    seconds: 3,
    crosses: false,
    wanted: &[],
};
const UDP: Row = Row { table: Table::Udp, ..TCP };
const PACED: Row = Row { table: Table::Paced, seconds: 10, ..TCP };
const CAPTURED: Row = Row { table: Table::Captured, seconds: 10, wanted: EVEN, ..TCP };

const ONE_STREAM: &[Wanted] = &[
    wanted(Rate, Bound::AtLeast(1.25)),
    wanted(CpuPerGb, Bound::AtMost(0.85)),
    wanted(ClientMb, Bound::Own(12.0)),
    wanted(ServerMb, Bound::Own(12.0)),
];
const NO_WORSE: &[Wanted] =
    &[wanted(Rate, Bound::AtLeast(1.0)), wanted(CpuPerGb, Bound::AtMost(1.0))];
const EVEN: &[Wanted] = &[
    wanted(Spread, Bound::AtMostByAge { bursts: Some(0.2), sleeps: Some(0.6) }),
    wanted(CpuPerGb, Bound::AtMostByAge { bursts: None, sleeps: Some(1.0) }),
];

const fn datagrams<const TIMES: u64>() -> &'static [Wanted] {
    const {
        &[
            wanted(Rate, Bound::AtLeast(TIMES as f64 / 100.0)),
            wanted(Loss, Bound::Own(1.0)),
            wanted(ClientMb, Bound::Own(12.0)),
            wanted(ServerMb, Bound::Own(12.0)),
        ]
    }
}

/// In the order in which they are measured.
pub(super) const ROWS: [Row; 17] = [
    Row { name: "tcp", crosses: true, wanted: ONE_STREAM, ..TCP },
    Row { name: "tcp reverse", flags: "-R", crosses: true, wanted: ONE_STREAM, ..TCP },
    Row { name: "tcp -P 2", flags: "-P 2", crosses: true, wanted: NO_WORSE, ..TCP },
    Row { name: "tcp -P 8", flags: "-P 8", crosses: true, wanted: NO_WORSE, ..TCP },
    Row {
        name: "tcp -Z --skip-rx-copy",
        flags: "-Z --skip-rx-copy",
        wanted: &[wanted(Rate, Bound::AtLeast(1.0))],
        ..TCP
    },
    Row {
        name: "udp 1400",
        flags: "-u -b 0 -l 1400",
        crosses: true,
        wanted: datagrams::<1000>(),
        ..UDP
    },
    Row {
        name: "udp 1400 (iperf3 --gsro)",
        flags: "-u -b 0 -l 1400",
        peer_flags: "--gsro",
        crosses: true,
        wanted: datagrams::<110>(),
        ..UDP
    },
    Row { name: "udp 64", flags: "-u -b 0 -l 64", wanted: datagrams::<1000>(), ..UDP },
    Row {
        name: "udp 64 (iperf3 --gsro)",
        flags: "-u -b 0 -l 64",
        peer_flags: "--gsro",
        wanted: datagrams::<95>(),
        ..UDP
    },
    Row {
        name: "udp 1400 -P 2 (iperf3 --gsro)",
        flags: "-u -b 0 -l 1400 -P 2",
        peer_flags: "--gsro",
        wanted: &[wanted(Rate, Bound::AtLeast(2.0))],
        ..UDP
    },
    Row {
        name: "paced 1G",
        flags: "-u -l 1400 -b 1G",
        crosses: true,
        wanted: &[wanted(Loss, Bound::Own(0.0)), wanted(CpuPerGb, Bound::AtMost(0.7))],
        ..PACED
    },
    Row {
        name: "paced 1 a second",
        flags: "-u -l 1400",
        peer_flags: "-b 11200",
        own_flags: "-b 1pps",
        wanted: &[wanted(ClientCpu, Bound::Own(1.0))],
        ..PACED
    },
    Row { name: "spread 10M", flags: "-u -l 1400 -b 10M", ..CAPTURED },
    Row { name: "spread 100M", flags: "-u -l 1400 -b 100M", ..CAPTURED },
    Row {
        name: "memory -P 1",
        table: Table::Memory,
        wanted: &[wanted(ClientMb, Bound::Own(12.0)), wanted(ServerMb, Bound::Own(12.0))],
        ..TCP
    },
    Row {
        name: "memory -P 128",
        table: Table::Memory,
        flags: "-P 128",
        wanted: &[wanted(ClientMb, Bound::Own(64.0)), wanted(ServerMb, Bound::Own(64.0))],
        ..TCP
    },
    Row {
        name: "memory idle server",
        table: Table::Idle,
        seconds: 2,
        wanted: &[wanted(ServerMb, Bound::Own(8.0))],
        ..TCP
    },
];

/// Of the Windows build under Wine, beside linerate for Linux with itself.
pub(super) const WINE_ROWS: [Row; 2] = [
    Row { name: "tcp", crosses: true, wanted: HALF, ..TCP },
    Row { name: "udp 1400", flags: "-u -b 0 -l 1400", crosses: true, wanted: HALF, ..UDP },
];

/// Wine asks its server at every call.
const HALF: &[Wanted] = &[wanted(Rate, Bound::AtLeast(0.5))];

/// Bytes of a datagram in the rows that are captured.
pub(super) const CAPTURED_BLOCK: u64 = 1400;

impl Table {
    /// What its rows show.
    pub(super) fn metrics(self) -> &'static [Metric] {
        match self {
            Self::Tcp => &[Rate, CpuPerGb, ClientMb, ServerMb],
            Self::Udp => &[Rate, Loss, CpuPerGb, ClientMb, ServerMb],
            Self::Paced => &[Rate, Loss, CpuPerGb, ClientCpu],
            Self::Captured => &[Rate, Loss, Spread, CpuPerGb],
            Self::Memory => &[ClientMb, ServerMb],
            Self::Idle => &[ServerMb],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wanted_of_a_row_is_shown() {
        for row in ROWS.iter().chain(&WINE_ROWS) {
            let shown = row.table.metrics();
            assert!(row.wanted.iter().all(|wanted| shown.contains(&wanted.metric)), "{}", row.name);
        }
    }

    #[test]
    fn names_tell_rows_apart() {
        let count = |name| ROWS.iter().filter(|row| row.name == name).count();
        assert!(ROWS.iter().all(|row| count(row.name) == 1));
    }
}
