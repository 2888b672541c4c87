//! One end whose peer, adapter and network do anything at any time. Each run hands back what the end
//! said, so that runs which cut the peer's bytes differently can be compared.

use std::time::Duration;

use linerate_core::protocol::code::{ControlCode, ServerError};
use linerate_core::protocol::cookie::Cookie;
use linerate_core::protocol::extension::{Offer, OutgoingExtension};
use linerate_core::session::{
    Admission, ClientConfig, ClientSession, Command, Deadlines, Denial, Exchange, Phase, Policy,
    RateLimit, Server, ServerConfig, ServerSession, StreamEvent,
};
use linerate_core::test::StreamId;
use linerate_core::time::Instant;
use linerate_core::units::BitsPerSec;

use super::super::documents::{framed, written};
use super::super::input::{Chunks, Input};
use super::test::{self, N};
use super::watched::{Said, Watched};

/// A client, and a server that does not exist.
pub(super) fn client(input: &mut Input<'_>, chunks: Chunks) -> Said {
    let settings = test::settings(input);
    let (interval, deadlines) = times(input);
    let config = ClientConfig { deadlines, ..test::client(settings, interval) };
    let cookie = Cookie::from_random([7; Cookie::LEN - 1]);
    let session = ClientSession::<N>::new(Instant::ZERO, config, cookie).expect("few streams");
    let mut end = Watched::new(session);
    let mut now = Instant::ZERO;
    while !input.is_empty() {
        let choice = input.byte();
        match choice % 16 {
            0..4 => {
                let bytes = from_server(input, choice >> 4);
                end.give_control(now, &bytes, chunks);
            }
            4 => {
                if let Some(id) = end.owed.open.pop_front() {
                    end.input(|session| session.handle_stream(now, id, StreamEvent::Connected));
                }
            }
            _ => anything(&mut end, input, choice, &mut now),
        }
    }
    finish(end, now, |_, _| {})
}

/// A server, and a client that does not exist.
pub(super) fn server(input: &mut Input<'_>, chunks: Chunks) -> Said {
    let policy = policy(input.clone().byte() >> 4);
    let (interval, deadlines) = times(input);
    let config = ServerConfig { deadlines, policy, ..test::server(input, interval) };
    let mut end = Watched::new(ServerSession::<N, 64>::new(Instant::ZERO, config));
    let mut now = Instant::ZERO;
    while !input.is_empty() {
        let choice = input.byte();
        match choice % 16 {
            0..4 => {
                let bytes = from_client(input, choice >> 4);
                end.give_control(now, &bytes, chunks);
            }
            4 => accept(&mut end, now),
            5 => {
                let admission = match input.byte() {
                    0 => Admission::Busy,
                    1 => Admission::Deny(ServerError::new(i32::from(input.byte()))),
                    2 => Admission::NotAllowed(Denial::Tests { limit: input.u32() }),
                    _ => Admission::Accept,
                };
                end.give_prepared(now, admission);
            }
            _ if choice == DENIED => {
                let denial = Denial::ServerMeasured { measured: input.u64(), limit: 9 };
                end.input(|session| session.handle_denied(denial));
            }
            6 if end.owed.output => {
                let bytes = input.u16();
                end.give_output(now, (bytes != 0).then_some(bytes.into()));
            }
            _ => anything(&mut end, input, choice, &mut now),
        }
    }
    finish(end, now, |end, now| {
        if end.owed.prepare {
            end.give_prepared(now, Admission::Accept);
        }
        if end.owed.output {
            end.give_output(now, None);
        }
    })
}

/// What may happen to either end.
fn anything<E: Exchange<N>>(
    end: &mut Watched<E>,
    input: &mut Input<'_>,
    choice: u8,
    now: &mut Instant,
) {
    match choice % 16 {
        5..8 => end.give_samples(*now, input.u32().into()),
        8 | 9 => {
            if let Some((_, at)) = end.session.poll_timeout() {
                *now = at.max(*now);
            }
            end.fire(*now);
        }
        10 => {
            *now = now.plus_nanos(u64::from(input.u16()) << (4 * (choice >> 4 & 7)));
            end.fire(*now);
        }
        11 => {
            end.take_control(usize::from(input.byte()), b"\"server_output_text\":\"\"");
        }
        12 | 13 => {
            let id = StreamId::from_index(usize::from(input.byte() % 10));
            let event = match choice >> 4 {
                0..8 => StreamEvent::LimitReached,
                8..11 => StreamEvent::Closed,
                11 => StreamEvent::ShareReached,
                12 => StreamEvent::Failed { code: i32::from(choice) },
                13 => StreamEvent::FileFailed { code: i32::from(choice) },
                14 => StreamEvent::Refused,
                _ => StreamEvent::Connected,
            };
            end.input(|session| session.handle_stream(*now, id, event));
        }
        14 if choice >> 4 == 0 => {
            end.input(|session| session.handle_control_closed(*now));
        }
        14 => end.session.handle_congestion(
            ["cubic", "bbr", "a name of any length"][usize::from(choice >> 4) % 3],
        ),
        15 if choice >> 4 == 0 => {
            end.input(|session| session.handle_command(Command::Interrupt));
        }
        _ => {}
    }
}

fn accept<const T: usize>(end: &mut Watched<Server<N, T>>, now: Instant) {
    let waits = end.session.phase() == Phase::Streams;
    let accepted = end.input(|session| session.handle_stream_accepted(now));
    assert_eq!(accepted.is_some(), waits, "a stream is taken while streams are missing");
}

/// From now on only time passes and the adapter does its duty: every session has an end.
fn finish<E: Exchange<N>>(
    mut end: Watched<E>,
    mut now: Instant,
    answer: impl Fn(&mut Watched<E>, Instant),
) -> Said {
    for step in 0.. {
        while end.owed.samples > 0 {
            end.give_samples(now, now.as_nanos() / 1000);
        }
        // The last sample may be what asks for the output.
        answer(&mut end, now);
        if end.finished.is_some() {
            break;
        }
        assert!(step < MOST_STEPS, "it goes on for ever: {:?}", end.session.phase());
        match end.session.poll_timeout() {
            // An endless test has intervals without end, and one of a day has many.
            Some((_, at)) if step < STEPS_IN_TIME => now = at.max(now).plus_nanos(1),
            Some(_) if step < STEPS_IN_DAYS => now = now.plus_nanos(DAYS_NS),
            // A deadline may lie at the end of time.
            Some(_) if step < STEPS_TO_INTERRUPT => now = Instant::from_nanos(u64::MAX),
            _ => {
                let limits = end.session.settings().limits;
                let may_wait = end.session.phase() == Phase::Running && limits.seconds.is_none();
                assert!(may_wait, "{:?} has no end of its own", end.session.phase());
                end.input(|session| session.handle_command(Command::Interrupt));
                continue;
            }
        }
        end.fire(now);
    }
    let rest = end.take_control(MOST_BYTES, b"\"server_output_text\":\"\"");
    assert!(rest.len() < MOST_BYTES, "what is left to send has an end");
    end.said
}

/// The choice that ends a test for what its adapter sees; others of its kind do anything.
const DENIED: u8 = 0x57;
const STEPS_IN_TIME: u32 = 20;
const STEPS_IN_DAYS: u32 = 28;
const STEPS_TO_INTERRUPT: u32 = 32;
const MOST_STEPS: u32 = 40;
/// Longer than the longest test with its omitted start.
const DAYS_NS: u64 = 200_000 * 1_000_000_000;
const MOST_BYTES: usize = 1 << 16;

/// What a server allows, from the bits that `times` leaves alone.
fn policy(choice: u8) -> Policy {
    let span_ns = if choice & 8 == 0 { 0 } else { 500_000_000 };
    let rate = RateLimit { rate: BitsPerSec(1_000_000), span_ns };
    Policy {
        bitrate: (choice & 1 != 0).then_some(rate),
        seconds: (choice & 2 != 0).then_some(3),
        has_file: choice & 4 != 0,
        bytes: (choice & 3 == 3).then_some(100_000),
        streams: (choice & 5 == 5).then_some(2),
        refuses_udp: choice & 6 == 6,
        server_bitrate: (choice & 9 == 9).then_some(rate),
    }
}

/// Length of the report intervals, also ones that no command line would take; and deadlines.
fn times(input: &mut Input<'_>) -> (Option<Duration>, Deadlines) {
    let choice = input.byte();
    let interval = match choice & 3 {
        0 => None,
        1 => Some(Duration::from_secs(1)),
        2 => Some(Duration::from_millis(1)),
        _ => Some(Duration::from_nanos(1)),
    };
    let all = |ns| Deadlines {
        greeting_ns: ns,
        step_ns: ns,
        streams_ns: ns,
        greet_ns: ns,
        grace_ns: ns,
        linger_ns: ns,
        silence_ns: Some(ns),
    };
    let deadlines = match choice >> 2 & 3 {
        1 => all(0),
        2 => all(u64::MAX),
        _ => Deadlines::default(),
    };
    (interval, deadlines)
}

/// Any bytes, or what a server may say, in or out of turn.
fn from_server(input: &mut Input<'_>, kind: u8) -> Vec<u8> {
    use ControlCode as C;
    let one = |code: C| vec![code.byte()];
    match kind {
        0 => one(C::ParamExchange),
        1 => one(C::CreateStreams),
        2 => [C::TestStart, C::TestRunning].map(C::byte).to_vec(),
        3 => one(C::TestRunning),
        4 => one(C::ExchangeResults),
        5 => test::results(input),
        6 => one(C::DisplayResults),
        7 => {
            let answer = framed(&written(&OutgoingExtension(Offer::OWN), b""));
            [one(C::ExtensionAccepted), answer].concat()
        }
        8 => [one(C::ServerError), input.bytes(ServerError::LEN).to_vec()].concat(),
        9 => one(C::AccessDenied),
        10 => one(C::ServerTerminate),
        11 => [test::results(input), one(C::DisplayResults)].concat(),
        12 => [one(C::AccessDenied), explanation(input)].concat(),
        13 => {
            let numbers = input.bytes(ServerError::LEN).to_vec();
            [one(C::ServerError), numbers, explanation(input)].concat()
        }
        _ => any_bytes(input),
    }
}

/// Words to a refusal, maybe more than there may be.
fn explanation(input: &mut Input<'_>) -> Vec<u8> {
    let len = input.u16() % 300;
    framed(input.bytes(len.into()))
}

/// Any bytes, or what a client may say, in or out of turn.
fn from_client(input: &mut Input<'_>, kind: u8) -> Vec<u8> {
    use ControlCode as C;
    match kind {
        0..4 => test::parameters(&test::settings(input)),
        4 | 5 => vec![C::TestEnd.byte()],
        6 | 7 => test::results(input),
        8 => vec![C::IperfDone.byte()],
        9 => vec![C::ClientTerminate.byte()],
        10 => vec![C::TestStart.byte()],
        11 => [vec![C::TestEnd.byte()], test::results(input)].concat(),
        _ => any_bytes(input),
    }
}

fn any_bytes(input: &mut Input<'_>) -> Vec<u8> {
    let len = input.u16() % 1024;
    input.bytes(len.into()).to_vec()
}
