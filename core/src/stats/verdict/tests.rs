//! Each row of both tables, the hints, and what is made of several streams.

extern crate std;

use std::vec::Vec;

use super::*;
use crate::report::{Datagrams, LossBursts, Percentiles, SenderWaits, SideSummary, ThreadUse};
use crate::test::{Direction, StreamId};
use crate::time::NANOS_PER_SEC;
use crate::units::BitsPerSec;

/// A test of ten seconds that this end sends, and all that is known of it.
#[derive(Clone)]
struct Case {
    settings: TestSettings,
    congestion: Option<&'static str>,
    remote_cpu: Option<CpuUse>,
    streams: Vec<Ends>,
}

const SECONDS: u64 = 10;

impl Case {
    /// 100 Mbit/s over a path of 10 ms; nothing at the ends is short.
    fn tcp() -> Self {
        let local = StreamDetail {
            waits: Some(SenderWaits { busy_us: SECONDS * 1_000_000, ..Default::default() }),
            round_trips: Some(Percentiles { p50_ns: 11_000_000, ..Default::default() }),
            idle_round_trip_us: Some(10_000),
            resent_bytes: Some(0),
            window_bytes: Some(1_000_000),
            buffer_bytes: Some(1_000_000),
            thread: Some(thread(100)),
            ..StreamDetail::default()
        };
        Self::new(TestSettings::new(Protocol::Tcp), local, StreamDetail::default())
    }

    /// 100 Mbit/s, as asked for, of which nothing is lost.
    fn udp() -> Self {
        let mut settings = TestSettings::new(Protocol::Udp);
        settings.bitrate = Some(BitsPerSec(100_000_000));
        let local = StreamDetail {
            refusals: Some(0),
            thread: Some(thread(100)),
            ..StreamDetail::default()
        };
        let remote = StreamDetail {
            socket_drops: Some(0),
            loss_bursts: Some(LossBursts::default()),
            delay_variation: Some(waits_of_ms(1, 2)),
            ..StreamDetail::default()
        };
        Self::new(settings, local, remote)
    }

    fn new(settings: TestSettings, local: StreamDetail, remote: StreamDetail) -> Self {
        let side = SideSummary {
            bytes: SECONDS * 12_500_000,
            duration_ns: Some(SECONDS * NANOS_PER_SEC),
            datagrams: Datagrams { packets: PACKETS, lost: Some(0), ..Default::default() },
            retransmits: None,
        };
        let remote =
            StreamDetail { thread: Some(thread(100)), buffer_bytes: Some(500_000), ..remote };
        let summary = StreamSummary {
            id: StreamId::from_index(0),
            role: Role::Sender,
            local: side,
            remote: Some(side),
            tcp: None,
        };
        let streams = Vec::from([Ends { summary, local, remote: Some(remote) }]);
        Self { settings, congestion: Some("cubic"), remote_cpu: None, streams }
    }

    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn sender(&mut self) -> &mut StreamDetail {
        &mut self.streams[0].local
    }

    fn receiver(&mut self) -> &mut StreamDetail {
        self.streams[0].remote.as_mut().expect("it was told")
    }

    fn waits(&mut self) -> &mut SenderWaits {
        self.sender().waits.as_mut().expect("TCP tells them")
    }

    fn round_trips_us(&mut self, idle_us: u32, loaded_us: u32) {
        self.sender().idle_round_trip_us = Some(idle_us);
        let p50_ns = u64::from(loaded_us) * 1000;
        self.sender().round_trips = Some(Percentiles { p50_ns, ..Default::default() });
    }

    fn received(&mut self) -> &mut SideSummary {
        self.streams[0].summary.remote.as_mut().expect("it was told")
    }

    fn loses(&mut self, packets: u64) {
        self.received().datagrams.lost = Some(packets);
        self.receiver().loss_bursts = Some(LossBursts { count: packets, longest: 1 });
    }

    fn verdict_for(&self, role: Role) -> Option<Verdict> {
        let Self { settings, congestion, remote_cpu, streams } = self;
        let test = Test { settings, role, congestion: *congestion, remote_cpu: *remote_cpu };
        Verdict::of(&test, streams.iter().copied())
    }

    fn verdict(&self) -> Verdict {
        self.verdict_for(Role::Sender).expect("this end sends")
    }
}

const PACKETS: u64 = 100_000;

/// A thread that ran so many thousandths of the time.
fn thread(share: u64) -> ThreadUse {
    let wall_ns = SECONDS * NANOS_PER_SEC;
    ThreadUse { wall_ns, cpu_ns: wall_ns / 1000 * share, queued_ns: Some(0) }
}

fn waits_of_ms(p50_ms: u64, p90_ms: u64) -> Percentiles {
    let (p50_ns, p90_ns) = (p50_ms * 1_000_000, p90_ms * 1_000_000);
    Percentiles { p50_ns, p90_ns, ..Percentiles::default() }
}

type Row = (&'static str, fn(&mut Case), Limit);

fn check(base: &Case, rows: &[Row]) {
    for (name, change, limit) in rows {
        let case = base.clone().with(change);
        let verdict = case.verdict();
        assert_eq!(verdict.limit, *limit, "{name}: {verdict:#?}");
    }
}

#[test]
fn what_limits_bytes() {
    let rows: [Row; 27] = [
        ("nothing at the ends", |_| {}, Limit::PathRate),
        (
            "96 of 100 Mbit/s were asked for and came",
            |case| case.settings.bitrate = Some(BitsPerSec(104_000_000)),
            Limit::RequestedRate,
        ),
        (
            "more was asked for than came",
            |case| case.settings.bitrate = Some(BitsPerSec(120_000_000)),
            Limit::PathRate,
        ),
        (
            "the kernel's pacing was asked for",
            |case| case.settings.fq_rate = Some(BitsPerSec(100_000_000)),
            Limit::RequestedRate,
        ),
        (
            "the kernel's pacing was asked for and had no effect",
            |case| case.settings.fq_rate = Some(BitsPerSec(10_000_000)),
            Limit::PathRate,
        ),
        (
            "what was asked for is in the sender's buffer",
            |case| {
                case.settings.bitrate = Some(BitsPerSec(100_000_000));
                case.received().bytes /= 2;
            },
            Limit::PathRate,
        ),
        (
            "a short test",
            |case| case.streams[0].summary.local.duration_ns = Some(90_000_000),
            Limit::Unclear,
        ),
        (
            "a busy receiver closes its window",
            |case| {
                case.receiver().thread = Some(thread(900));
                case.waits().receive_window_us = SECONDS * 800_000;
            },
            Limit::ReceiverCpu,
        ),
        (
            "a receiver that waits for a CPU",
            |case| {
                let wall_ns = SECONDS * NANOS_PER_SEC;
                let queued_ns = Some(wall_ns / 10 * 8);
                case.receiver().thread =
                    Some(ThreadUse { wall_ns, cpu_ns: wall_ns / 10, queued_ns });
            },
            Limit::ReceiverCpu,
        ),
        (
            "the sender is busier than a busy receiver",
            |case| {
                case.receiver().thread = Some(thread(900));
                case.sender().thread = Some(thread(950));
            },
            Limit::SenderCpu,
        ),
        (
            "a sender that has nothing to send because it lacks the CPU",
            |case| {
                case.sender().thread = Some(thread(600));
                case.waits().busy_us = SECONDS * 300_000;
            },
            Limit::SenderCpu,
        ),
        (
            "a sender that has nothing to send and is idle",
            |case| case.waits().busy_us = SECONDS * 300_000,
            Limit::Application,
        ),
        (
            "a sender that has nothing to send but what was asked for, which it was late with",
            |case| {
                case.settings.bitrate = Some(BitsPerSec(120_000_000));
                case.waits().busy_us = SECONDS * 300_000;
            },
            Limit::RequestedRate,
        ),
        (
            "waits for room in the send buffer",
            |case| case.waits().send_buffer_us = SECONDS * 310_000,
            Limit::SendBuffer,
        ),
        (
            // 100 Mbit/s in 11 ms are 137.5 KB.
            "a send buffer that is full without a wait that is accounted",
            |case| case.sender().buffer_bytes = Some(150_000),
            Limit::SendBuffer,
        ),
        (
            "waits for the window",
            |case| case.waits().receive_window_us = SECONDS * 310_000,
            Limit::ReceiveWindow,
        ),
        (
            "some waits for a window that is full",
            |case| {
                case.waits().receive_window_us = SECONDS * 110_000;
                case.sender().window_bytes = Some(150_000);
            },
            Limit::ReceiveWindow,
        ),
        (
            "waits for a large window whose reader is rather busy",
            |case| {
                case.waits().receive_window_us = SECONDS * 310_000;
                case.receiver().thread = Some(thread(600));
            },
            Limit::ReceiverCpu,
        ),
        (
            "waits for a window that a reader who is rather busy lets close",
            |case| {
                case.waits().receive_window_us = SECONDS * 310_000;
                case.sender().window_bytes = Some(5000);
                case.receiver().thread = Some(thread(600));
            },
            Limit::ReceiverCpu,
        ),
        (
            "a queue, whatever the window",
            |case| {
                case.round_trips_us(10_000, 30_000);
                case.waits().receive_window_us = SECONDS * 800_000;
            },
            Limit::PathRate,
        ),
        (
            "losses of a full queue",
            |case| {
                case.round_trips_us(10_000, 30_000);
                case.sender().resent_bytes = Some(SECONDS * 125_000);
            },
            Limit::PathRate,
        ),
        (
            "losses of a queue that holds less than a round trip takes",
            |case| {
                case.round_trips_us(40_000, 55_000);
                case.sender().buffer_bytes = Some(4_000_000);
                case.sender().window_bytes = Some(4_000_000);
                case.sender().resent_bytes = Some(SECONDS * 125_000);
            },
            Limit::PathRate,
        ),
        (
            "nothing was measured",
            |case| {
                case.settings.bitrate = Some(BitsPerSec(1_000_000));
                case.streams[0].summary.local.duration_ns = Some(0);
            },
            Limit::Unclear,
        ),
        (
            "losses without a queue",
            |case| case.sender().resent_bytes = Some(SECONDS * 125_000),
            Limit::PathLoss,
        ),
        (
            "losses that the sender does not heed",
            |case| {
                case.sender().resent_bytes = Some(SECONDS * 125_000);
                case.congestion = Some("bbr");
            },
            Limit::PathRate,
        ),
        (
            "a thread that is rather busy, and no sign of the path",
            |case| case.receiver().thread = Some(thread(750)),
            Limit::ReceiverCpu,
        ),
        (
            "few round trips",
            |case| {
                case.round_trips_us(600_000, 600_000);
                case.sender().buffer_bytes = Some(20_000_000);
            },
            Limit::Unclear,
        ),
    ];
    check(&Case::tcp(), &rows);
}

#[test]
fn what_limits_datagrams() {
    let rows: [Row; 18] = [
        ("what was asked for", |_| {}, Limit::RequestedRate),
        ("a few are lost", |case| case.loses(PACKETS / 1001), Limit::RequestedRate),
        ("they are lost by chance", |case| case.loses(PACKETS / 100), Limit::PathLoss),
        (
            "they are lost and delayed by chance",
            |case| {
                case.loses(PACKETS / 100);
                case.receiver().delay_variation = Some(waits_of_ms(5, 9));
            },
            Limit::PathLoss,
        ),
        (
            "they are lost in a queue that is full",
            |case| {
                case.loses(PACKETS / 100);
                case.receiver().delay_variation = Some(waits_of_ms(19, 20));
            },
            Limit::PathRate,
        ),
        (
            "all come, but in twice the time",
            |case| case.received().duration_ns = Some(2 * SECONDS * NANOS_PER_SEC),
            Limit::PathRate,
        ),
        (
            "most are missing behind the last that came",
            |case| {
                case.received().datagrams.packets = PACKETS / 4;
                case.received().bytes /= 4;
            },
            Limit::PathRate,
        ),
        (
            "none came",
            |case| {
                case.received().datagrams.packets = 0;
                case.received().bytes = 0;
            },
            Limit::PathLoss,
        ),
        ("too many are lost", |case| case.loses(PACKETS / 10), Limit::PathRate),
        (
            "the socket drops them",
            |case| {
                case.loses(PACKETS / 10);
                case.receiver().socket_drops = Some(PACKETS / 15);
            },
            Limit::ReceiveBuffer,
        ),
        (
            "the socket of a busy receiver drops them",
            |case| {
                case.loses(PACKETS / 10);
                case.receiver().socket_drops = Some(PACKETS / 10);
                case.receiver().thread = Some(thread(900));
            },
            Limit::ReceiverCpu,
        ),
        (
            "the socket drops joined ones",
            |case| {
                case.settings.offload.gro = true;
                case.loses(PACKETS / 10);
                case.receiver().socket_drops = Some(PACKETS / 400);
                case.receiver().loss_bursts =
                    Some(LossBursts { count: PACKETS / 500, longest: 90 });
            },
            Limit::ReceiveBuffer,
        ),
        (
            "the socket drops some, the path most",
            |case| {
                case.loses(PACKETS / 100);
                case.receiver().socket_drops = Some(PACKETS / 400);
            },
            Limit::PathLoss,
        ),
        (
            "a busy receiver does not tell what its socket drops",
            |case| {
                case.loses(PACKETS / 100);
                case.receiver().socket_drops = None;
                case.receiver().thread = Some(thread(900));
            },
            Limit::ReceiverCpu,
        ),
        (
            "a busy sender",
            |case| {
                case.settings.bitrate = None;
                case.sender().thread = Some(thread(990));
            },
            Limit::SenderCpu,
        ),
        (
            "a sender that its host refuses",
            |case| {
                case.settings.bitrate = None;
                case.sender().thread = Some(thread(600));
                case.sender().refusals = Some(PACKETS);
            },
            Limit::PathRate,
        ),
        ("a sender that its device holds up", |case| case.settings.bitrate = None, Limit::PathRate),
        (
            "a sender of which nothing is known",
            |case| {
                case.settings.bitrate = None;
                case.sender().thread = None;
            },
            Limit::Unclear,
        ),
    ];
    check(&Case::udp(), &rows);
}

#[test]
fn hints_have_numbers() {
    let hint = |case: Case| case.verdict().hint;
    // 100 Mbit/s in 11 ms are 137.5 KB.
    let window = |window_bytes: u64| {
        hint(Case::tcp().with(|case| {
            case.waits().receive_window_us = SECONDS * 500_000;
            case.sender().window_bytes = Some(window_bytes);
        }))
    };
    assert_eq!(window(130_000), Some(Hint::LargerWindow { bytes: 275_000 }));
    assert_eq!(window(200_000), Some(Hint::LargerWindow { bytes: 400_000 }));
    assert_eq!(window(60_000), None, "it is not small, it is not read");
    assert_eq!(window(300_000), None, "nor is it full");
    let buffer = Case::tcp().with(|case| case.sender().buffer_bytes = Some(100_000));
    assert_eq!(hint(buffer), Some(Hint::LargerWindow { bytes: 275_000 }));
    let dropped = Case::udp().with(|case| {
        case.loses(PACKETS / 10);
        case.receiver().socket_drops = Some(PACKETS / 10);
    });
    assert_eq!(hint(dropped), Some(Hint::LargerReceiveBuffer { bytes: 1_000_000 }));
    let full = Case::udp().with(|case| {
        case.loses(PACKETS / 2);
        case.received().bytes /= 2;
    });
    assert_eq!(hint(full.clone()), Some(Hint::LowerRate { rate: 50_000_000 }));
    let four = full.with(|case| case.streams = [case.streams[0]; 4].into());
    assert_eq!(hint(four), Some(Hint::LowerRate { rate: 50_000_000 }), "the option is a stream's");
    assert_eq!(hint(Case::udp()), Some(Hint::HigherRate));
    assert_eq!(hint(Case::tcp()), None);
    let lossy = Case::tcp().with(|case| case.sender().resent_bytes = Some(5_000_000));
    assert_eq!(hint(lossy), Some(Hint::OtherCongestionControl));
    let busy = Case::tcp().with(|case| case.sender().thread = Some(thread(900)));
    assert_eq!(hint(busy.clone()), Some(Hint::MoreStreams));
    let queued = |zero_copy| {
        busy.clone().with(|case| {
            (case.settings.zero_copy, case.settings.skip_rx_copy) = (zero_copy, true);
            let queued_ns = Some(SECONDS * NANOS_PER_SEC / 2);
            case.sender().thread = Some(ThreadUse { queued_ns, ..thread(450) });
        })
    };
    assert_eq!(hint(queued(false)), Some(Hint::FewerCopies), "more streams had no CPU either");
    assert_eq!(hint(queued(true)), None);
    let small = busy.with(|case| case.settings.block_bytes = 100);
    assert_eq!(hint(small), Some(Hint::LargerBlocks));
}

#[test]
fn streams_count_by_their_bytes() {
    let mut case = Case::tcp();
    let mut other = case.streams[0];
    other.summary.local.bytes /= 4;
    other.summary.remote = Some(other.summary.local);
    other.local.thread = Some(thread(900));
    other.local.window_bytes = Some(1000);
    other.local.idle_round_trip_us = Some(9000);
    other.local.round_trips = Some(Percentiles { p50_ns: 20_000_000, ..Default::default() });
    case.streams.push(other);
    let evidence = case.verdict().evidence;
    assert_eq!(evidence.rate, 125_000_000, "of both");
    // (4 * 100 + 1 * 900) / 5
    assert_eq!(evidence.sender_cpu_share, Some(260));
    assert_eq!(evidence.window_bytes, Some(1000), "the smaller");
    assert_eq!(evidence.idle_round_trip_us, Some(9000), "the shorter");
    assert_eq!(evidence.loaded_round_trip_us, Some(20_000), "the longer");
}

#[test]
fn each_direction_has_its_own_verdict() {
    let mut case = Case::tcp().with(|case| case.settings.direction = Direction::Bidirectional);
    assert_eq!(case.verdict_for(Role::Receiver), None);
    let mut back = case.streams[0];
    back.summary.role = Role::Receiver;
    back.local = StreamDetail { thread: Some(thread(990)), ..StreamDetail::default() };
    back.remote = None;
    case.streams.push(back);
    let received = case.verdict_for(Role::Receiver).expect("it has a stream");
    assert_eq!((received.limit, received.is_one_sided), (Limit::ReceiverCpu, true));
    let sent = case.verdict();
    assert_eq!((sent.limit, sent.is_one_sided), (Limit::PathRate, false));
}

#[test]
fn the_process_of_a_stock_peer_stands_for_its_thread() {
    let case = Case::tcp().with(|case| {
        case.streams[0].remote = None;
        let total_micropercent = 97_000_000;
        case.remote_cpu = Some(CpuUse { total_micropercent, ..CpuUse::default() });
    });
    let verdict = case.verdict();
    assert_eq!(verdict.evidence.receiver_cpu_share, Some(970));
    assert_eq!((verdict.limit, verdict.is_one_sided), (Limit::ReceiverCpu, true));
}

#[test]
fn nonsense_of_a_peer_is_only_nonsense() {
    for base in [Case::tcp(), Case::udp()] {
        let case = base.with(|case| {
            let most = u64::MAX;
            let percentiles =
                Some(Percentiles { p50_ns: most, p90_ns: most, ..Default::default() });
            let detail = StreamDetail {
                waits: Some(SenderWaits {
                    busy_us: most,
                    receive_window_us: most,
                    send_buffer_us: most,
                }),
                thread: Some(ThreadUse { wall_ns: 0, cpu_ns: most, queued_ns: Some(most) }),
                loss_bursts: Some(LossBursts { count: most, longest: most }),
                delay_variation: percentiles,
                round_trips: percentiles,
                idle_round_trip_us: Some(u32::MAX),
                socket_drops: Some(most),
                refusals: Some(most),
                resent_bytes: Some(most),
                window_bytes: Some(most),
                buffer_bytes: Some(most),
                ..StreamDetail::default()
            };
            let datagrams = Datagrams { packets: most, lost: Some(most), ..Datagrams::default() };
            let side =
                SideSummary { bytes: most, duration_ns: Some(0), datagrams, retransmits: None };
            case.settings.bitrate = Some(BitsPerSec(most));
            case.streams[0].remote = Some(detail);
            case.streams[0].summary.remote = Some(side);
            case.streams.push(case.streams[0]);
            let mut back = case.streams[0];
            back.summary.role = Role::Receiver;
            case.streams.extend([back, back]);
        });
        for role in [Role::Sender, Role::Receiver] {
            assert!(case.verdict_for(role).is_some(), "{role:?}");
        }
    }
}
