//! What the hot path of a stream costs. Each piece of work is a thousand rounds, so that microseconds
//! of the table are nanoseconds a datagram or a batch. `--work NAME THOUSANDS` does one so often without
//! measuring, for callgrind; `--list-work` has the names.

use std::hint::black_box;

use divan::Bencher;
use divan::counter::ItemsCount;
use linerate_core::flow::{ReceiveFlow, SendFlow, Step, StreamPlan};
use linerate_core::protocol::datagram::Header;
use linerate_core::stats::BUCKETS;
use linerate_core::test::{Protocol, Role, StreamId};
use linerate_core::time::Instant;
use linerate_core::units::BitsPerSec;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["--list-work"] => WORK.iter().for_each(|(name, _)| println!("{name}")),
        ["--work", name, rounds] => {
            let (_, work) = WORK.iter().find(|(known, _)| *known == name).expect("known work");
            work(rounds.parse().expect("a number of rounds"));
        }
        _ => divan::main(),
    }
}

/// Does a piece of work so often.
type Work = fn(u32);

const WORK: [(&str, Work); 4] = [
    ("receive_in_order", |rounds| receive_often(rounds, &in_order())),
    ("receive_out_of_order", |rounds| receive_often(rounds, &out_of_order())),
    ("send_unlimited", |rounds| send_often(rounds, None)),
    ("send_paced", |rounds| send_often(rounds, Some(RATE))),
];

#[divan::bench]
fn receive_in_order(bencher: Bencher<'_, '_>) {
    receive_bench(bencher, &in_order());
}

#[divan::bench]
fn receive_out_of_order(bencher: Bencher<'_, '_>) {
    receive_bench(bencher, &out_of_order());
}

#[divan::bench]
fn send_unlimited(bencher: Bencher<'_, '_>) {
    send_bench(bencher, None);
}

#[divan::bench]
fn send_paced(bencher: Bencher<'_, '_>) {
    send_bench(bencher, Some(RATE));
}

fn receive_bench(bencher: Bencher<'_, '_>, datagrams: &[[u8; HEADER]]) {
    let bencher = bencher.counter(ItemsCount::new(ROUNDS));
    bencher.with_inputs(receiver).bench_local_refs(|flow| receive(flow, datagrams));
}

fn send_bench(bencher: Bencher<'_, '_>, rate: Option<BitsPerSec>) {
    let bencher = bencher.counter(ItemsCount::new(ROUNDS));
    bencher.with_inputs(|| sender(rate)).bench_local_refs(send);
}

/// Each time with a flow that has seen nothing, whose making is a few instructions a round.
fn receive_often(rounds: u32, datagrams: &[[u8; HEADER]]) {
    let fresh = receiver();
    let mut flow = fresh.clone();
    for _ in 0..rounds {
        flow.clone_from(&fresh);
        receive(&mut flow, black_box(datagrams));
    }
    black_box(flow.tally());
}

fn send_often(rounds: u32, rate: Option<BitsPerSec>) {
    for _ in 0..rounds {
        send(black_box(&mut sender(rate)));
    }
}

#[inline(never)]
fn receive(flow: &mut Receiver, datagrams: &[[u8; HEADER]]) {
    let mut now = Instant::ZERO;
    for datagram in datagrams {
        now = now.plus_nanos(GAP_NS);
        flow.handle_datagram(now, black_box(datagram), BLOCK as usize);
    }
    black_box(flow);
}

/// Batches of a fixed size, each as late as its data takes at the rate.
#[inline(never)]
fn send(flow: &mut Sender) {
    let mut now = Instant::ZERO;
    for _ in 0..ROUNDS {
        match black_box(flow.poll_step(now)) {
            Step::Send { bytes } => {
                let datagrams = (bytes / u64::from(BLOCK)).min(BATCH);
                flow.handle_datagrams_sent(now, black_box(datagrams));
                now = now.plus_nanos(BATCH * u64::from(BLOCK) * 8);
            }
            Step::Wait { until } => now = until,
            Step::Done => unreachable!("there is no limit"),
        }
    }
    black_box(flow);
}

fn receiver() -> Receiver {
    Receiver::new(&plan(Role::Receiver, None))
}

fn sender(rate: Option<BitsPerSec>) -> Sender {
    Sender::new(Instant::ZERO, &plan(Role::Sender, rate))
}

fn plan(role: Role, bitrate: Option<BitsPerSec>) -> StreamPlan {
    StreamPlan {
        id: StreamId::from_index(0),
        role,
        protocol: Protocol::Udp,
        block_bytes: BLOCK,
        bitrate,
        burst: None,
        joins_arrivals: false,
        may_wait: false,
        limit_bytes: None,
        share_bytes: None,
        counters_64bit: true,
        omit_until: None,
    }
}

fn in_order() -> Vec<[u8; HEADER]> {
    (1..=ROUNDS as u64).map(datagram).collect()
}

/// Every number once, spread over the whole: nearly each is late or leaves a gap. The step has no
/// factor in common with the count.
fn out_of_order() -> Vec<[u8; HEADER]> {
    let count = ROUNDS as u64;
    (0..count).map(|index| datagram(1 + index * 617 % count)).collect()
}

fn datagram(sequence: u64) -> [u8; HEADER] {
    let mut datagram = [0; HEADER];
    let sent_us = sequence * GAP_NS / 1000;
    Header { sent_us, sequence }.write(&mut datagram, true);
    datagram
}

type Receiver = ReceiveFlow<1024, BUCKETS>;
type Sender = SendFlow<BUCKETS>;

const ROUNDS: usize = 1000;
const HEADER: usize = 16;
const BLOCK: u32 = 1400;
const BATCH: u64 = 44;
const GAP_NS: u64 = 1250;
/// At which a batch is due after as many nanoseconds as it has bits.
const RATE: BitsPerSec = BitsPerSec(1_000_000_000);
