//! Random commands and faults at random places: whatever happens, both sessions end once, in time,
//! without a panic, and count nothing that was not sent. A few hundred cases as usual, thousands with
//! `LINERATE_LONG=1`; a failure names its seed, and `LINERATE_SEED=…` repeats it alone.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use linerate_core::protocol::code::{ServerError, error_number};
use linerate_core::protocol::extension::Offer;
use linerate_core::session::{Admission, Deadlines, Ending, RateLimit, StreamEvent};
use linerate_core::test::{Direction, End, Limits, Protocol, TestSettings};
use linerate_core::time::NANOS_PER_SEC;
use linerate_core::units::BitsPerSec;
use linerate_tests::link::model::{Burst, LinkModel, Reorder};
use linerate_tests::virtual_time::control::{ControlFault, ControlFaultKind};
use linerate_tests::virtual_time::law;
use linerate_tests::virtual_time::pair::Pair;
use linerate_tests::virtual_time::random::{Random, seeds};
use linerate_tests::virtual_time::setup::{Fault, Setup};

#[test]
fn every_session_ends_once_and_in_time_whatever_happens() {
    let mut endings = Endings::default();
    for seed in seeds(1000, 20_000) {
        let case = || check_case(seed, &mut endings);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(case)) {
            eprintln!("repeat with LINERATE_SEED={seed}");
            resume_unwind(panic);
        }
    }
    println!("{endings:?}");
}

/// How the cases ended, to see that the faults hit and that not all of them do.
#[derive(Debug, Default)]
struct Endings {
    complete: u32,
    failed: u32,
    without_server: u32,
}

fn check_case(seed: u64, endings: &mut Endings) {
    let mut random = Random::new(seed);
    let setup = random_setup(&mut random, seed);
    let faults = random_faults(&mut random);
    let is_honest = faults.is_empty()
        && setup.control_fault.is_none()
        && setup.failing_stream.is_none()
        && setup.admission == Admission::Accept
        && setup.deadlines.silence_ns.is_none()
        && setup.policy.bitrate.is_none()
        && setup.policy.seconds.is_none();
    let limits = setup.settings.limits;
    let label = format!("seed {seed} {faults:?} {:?}", setup.control_fault);
    let mut pair = Pair::new(setup);
    let last_ns = faults.iter().map(|&(at_ns, _)| at_ns).max().unwrap_or(0);
    for (at_ns, fault) in faults {
        pair.schedule(at_ns, fault);
    }
    // A fault may be what makes a session begin or go on.
    let untimed_ns = if limits.seconds.is_none() { UNTIMED_NS } else { 0 };
    let longest_ns = pair.setup().longest_ns() + last_ns + untimed_ns;
    pair.run(longest_ns);
    law::check_any(&pair, &label);
    for end in [End::Client, End::Server] {
        check_ended(&pair, end, &label, endings);
    }
    if is_honest {
        law::check_complete(&pair, &label);
    }
}

fn check_ended(pair: &Pair, end: End, label: &str, endings: &mut Endings) {
    let Some(session) = pair.endpoint(end) else {
        endings.without_server += 1;
        return;
    };
    match pair.ending(end) {
        Some(Ending::Complete) => endings.complete += 1,
        Some(Ending::Failed(_)) => endings.failed += 1,
        None if may_wait_for_ever(pair, end) => {}
        None => panic!(
            "{label}: {end:?} did not end: {:?} {:?} {:?}",
            session.phase(),
            session.poll_timeout(),
            pair.log(end).events.last()
        ),
    }
}

/// A server of datagrams with no limit of time hears nothing when its client is cut off without a
/// sign: only its adapter can notice that no data comes.
fn may_wait_for_ever(pair: &Pair, end: End) -> bool {
    let setup = pair.setup();
    end == End::Server
        && setup.settings.limits.seconds.is_none()
        && setup.settings.protocol == Protocol::Udp
        && matches!(
            setup.control_fault,
            Some(ControlFault { from: End::Client, kind: ControlFaultKind::Stall, .. })
        )
}

fn random_setup(random: &mut Random, seed: u64) -> Setup {
    let mut settings = TestSettings::new(random.pick(&[Protocol::Tcp, Protocol::Udp]));
    settings.direction =
        random.pick(&[Direction::Forward, Direction::Reverse, Direction::Bidirectional]);
    settings.parallel = 1 + random.below(4) as u16;
    settings.omit_secs = random.below(2) as u32;
    settings.server_output = random.happens(200_000);
    settings.counters_64bit = random.happens(300_000);
    settings.bitrate = Some(BitsPerSec(random.pick(&[200_000, 1_000_000, 4_000_000])));
    settings.block_bytes = match settings.protocol {
        Protocol::Tcp | Protocol::Sctp => random.pick(&[10_000, 65_536]),
        Protocol::Udp => random.pick(&[1000, 1460]),
    };
    settings.limits = random.pick(&[
        Limits { seconds: Some(1), ..Limits::default() },
        Limits { seconds: Some(2), ..Limits::default() },
        Limits { bytes: Some(70_001), ..Limits::default() },
        Limits { blocks: Some(33), ..Limits::default() },
        Limits { seconds: Some(2), bytes: Some(150_000), blocks: None },
    ]);
    let mut setup = Setup::new(settings);
    setup.seed = seed;
    setup.interval = random.pick(&[
        None,
        Some(Duration::ZERO),
        Some(Duration::from_millis(100)),
        Some(Duration::from_millis(500)),
        Some(Duration::from_secs(1)),
    ]);
    setup.offer = random.pick(&[None, Some(Offer::OWN)]);
    setup.answer = random.pick(&[None, Some(Offer::OWN)]);
    setup.deadlines = DEADLINES;
    setup.data = random_network(random);
    setup.control_latency_ns = random.pick(&[0, 1_000_000, 40_000_000]);
    setup.control_chunk_bytes = random.pick(&[1, 10, 1000]);
    // A server asks for up to three samples before it answers the end of a test, and the client waits
    // three seconds for that here.
    setup.sample_delay_ns = random.pick(&[0, 0, 0, 2_000_000, 150_000_000, 600_000_000]);
    if random.happens(500_000) {
        setup.server_output = Some("\"server_output_text\":\"as measured\\n\"".to_owned());
    }
    if setup.offer.is_some() && setup.answer.is_some() && random.happens(300_000) {
        setup.greetings = Some(LinkModel {
            loss_ppm: random.pick(&[0, 100_000, 400_000]),
            duplicate_ppm: random.pick(&[0, 200_000]),
            ..random_network(random)
        });
    }
    if random.happens(350_000) {
        setup.control_fault = Some(ControlFault {
            from: random.pick(&ENDS),
            after_bytes: random.below(900),
            kind: random.pick(&[ControlFaultKind::Cut, ControlFaultKind::Stall]),
        });
    }
    if random.happens(80_000) {
        setup.failing_stream = Some(random.below(settings.stream_count() as u64) as usize);
    }
    if random.happens(80_000) {
        let denied = ServerError::new(error_number::TOTAL_RATE);
        setup.admission = random.pick(&[Admission::Busy, Admission::Deny(denied)]);
    }
    if random.happens(150_000) {
        let silence_ns = random.pick(&[NANOS_PER_SEC / 10, NANOS_PER_SEC]);
        setup.deadlines.silence_ns = Some(silence_ns);
    }
    if random.happens(150_000) {
        let span_ns = random.pick(&[0, NANOS_PER_SEC / 2, 5 * NANOS_PER_SEC]);
        let rate = BitsPerSec(random.pick(&[500_000, 8_000_000]));
        setup.policy.bitrate = Some(RateLimit { rate, span_ns });
        setup.policy.seconds = random.pick(&[None, Some(2)]);
    }
    setup
}

fn random_network(random: &mut Random) -> LinkModel {
    let bursty = random.happens(250_000);
    let reorders = random.happens(250_000);
    LinkModel {
        latency_ns: random.pick(&[100_000, 10_000_000, 60_000_000]),
        jitter_ns: random.pick(&[0, 3_000_000]),
        loss_ppm: random.pick(&[0, 0, 20_000, 200_000]),
        burst: bursty.then_some(Burst { begin_ppm: 10_000, end_ppm: 200_000 }),
        duplicate_ppm: random.pick(&[0, 0, 50_000]),
        reorder: reorders.then_some(Reorder { ppm: 50_000, by_ns: 15_000_000 }),
        clock_offset_ns: random.pick(&[0, -3 * 1_000_000_000, 5_000_000_123]),
        ..LinkModel::default()
    }
}

fn random_faults(random: &mut Random) -> Vec<(u64, Fault)> {
    let count = random.pick(&[0, 0, 1, 1, 2, 4]);
    (0..count)
        .map(|_| {
            // While the exchange begins, and anywhere in a test.
            let within_ns = random.pick(&[300_000_000, 4 * NANOS_PER_SEC]);
            (random.below(within_ns), random_fault(random))
        })
        .collect()
}

fn random_fault(random: &mut Random) -> Fault {
    let end = random.pick(&ENDS);
    match random.below(7) {
        0 => Fault::Interrupt(end),
        1 => Fault::Vanish(end),
        4 => Fault::CloseStreams(end),
        5 => Fault::Block(end, random.below(4 * NANOS_PER_SEC)),
        2 => {
            let count = 1 + random.below(20);
            let bytes = (0..count).map(|_| match random.happens(700_000) {
                true => random.pick(&CODES),
                false => random.next() as u8,
            });
            Fault::Garbage(end, bytes.collect())
        }
        _ => {
            let event = random.pick(&[
                StreamEvent::Connected,
                StreamEvent::Failed { code: 104 },
                StreamEvent::FileFailed { code: 28 },
                StreamEvent::LimitReached,
                StreamEvent::Closed,
                StreamEvent::Closed,
            ]);
            Fault::Stream(end, random.below(4) as usize, event)
        }
    }
}

const ENDS: [End; 2] = [End::Client, End::Server];

/// Every code of the protocol, and some that are none.
const CODES: [u8; 15] = [0, 1, 2, 3, 4, 9, 10, 11, 12, 13, 14, 16, 0x4c, 0xfe, 0xff];

const DEADLINES: Deadlines = Deadlines {
    greeting_ns: 5 * NANOS_PER_SEC,
    step_ns: 3 * NANOS_PER_SEC,
    streams_ns: 4 * NANOS_PER_SEC,
    greet_ns: 4 * NANOS_PER_SEC,
    grace_ns: 6 * NANOS_PER_SEC,
    linger_ns: 2 * NANOS_PER_SEC,
    silence_ns: None,
};

/// By when a test without a limit of time has moved what it should, at the lowest rate and the
/// highest loss.
const UNTIMED_NS: u64 = 200 * NANOS_PER_SEC;
