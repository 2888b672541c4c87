//! All that can go wrong at one end: something happens at every step of a test, and documents that
//! nobody should send.

use linerate_core::session::{Admission, Command, Exchange, Phase, StreamEvent};
use linerate_core::test::{End, StreamId};
use linerate_core::time::Instant;

use super::Caller;
use super::documents::hostile;
use super::exchange::{Driven, Pair, small};

/// Lets everything go wrong at `end`, whose calls are made by `caller`.
pub fn faults<const N: usize, const T: usize>(end: End, caller: Caller) {
    for rounds in 0..ROUNDS {
        for fault in 0..FAULTS {
            let mut pair = Pair::<N, T>::new(small(), end, Caller::DIRECT);
            pair.run(rounds);
            pair.measure(end, caller);
            match end {
                End::Client => happen(&mut pair.client, pair.now, fault),
                End::Server => happen(&mut pair.server, pair.now, fault),
            }
        }
    }
    documents::<N, T>(end, caller);
}

/// A test of one stream takes about a dozen.
const ROUNDS: usize = 24;
const FAULTS: usize = 6;

fn happen<E: Exchange<N> + Send + Sync, const N: usize>(
    end: &mut Driven<E, N>,
    now: Instant,
    fault: usize,
) {
    let id = StreamId::from_index(0);
    match fault {
        0 => end.give_control(now, &[0xee]),
        1 => end.give_control(now, &[0, 0, 0, 0, 0xff, 0xff]),
        2 => end.input("handle_control_closed", |session| session.handle_control_closed(now)),
        3 => end.input("handle_command", |session| session.handle_command(Command::Interrupt)),
        4 => end.stream(now, id, StreamEvent::Failed { code: 111 }),
        _ => end.fire(Instant::from_nanos(u64::MAX)),
    }
    end.finish(now);
}

fn documents<const N: usize, const T: usize>(end: End, caller: Caller) {
    let (targets, phases): (&[_], &[_]) = match end {
        End::Client => (&["results"], &[Phase::Results]),
        End::Server => (&["parameters", "results"], &[Phase::Parameters, Phase::Results]),
    };
    for (target, &phase) in targets.iter().zip(phases) {
        for document in hostile(target) {
            let mut pair = Pair::<N, T>::new(small(), end, Caller::DIRECT);
            pair.run_to(end, phase);
            pair.measure(end, caller);
            let now = pair.now;
            match end {
                End::Client => pair.client.give_control(now, &document),
                End::Server => {
                    pair.server.give_control(now, &document);
                    if pair.server.session.phase() == Phase::Preparing {
                        pair.server.input("handle_prepared", |server| {
                            server.handle_prepared(now, Admission::Busy);
                        });
                    }
                }
            }
        }
    }
}
