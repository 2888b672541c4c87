//! The threads of TCP streams. They write and read until the socket would block, then wait for it
//! or for an order; one reading of the clock serves a whole turn.

use std::io;
use std::net::Shutdown;
use std::time::Duration;

use linerate_core::flow::{ReceiveFlow, Step, StreamPlan};
use linerate_core::session::StreamEvent;
use linerate_core::stats::BUCKETS;
use linerate_core::test::Protocol;
use linerate_core::time::Instant;
use socket2::Socket;

use super::handling::AtEnd;
use super::looks::Sender;
use super::outcome::{Remedy, remedy};
use super::sink::Sink;
use super::source::{SendError, Source};
use super::thread::Context;
use crate::errno;
use crate::sys::{self, Interest, MOST_BLOCKS};

/// The receiver has no numbers to remember.
type Receiver = ReceiveFlow<0, BUCKETS>;

/// How a turn at the socket ended.
enum Turn {
    /// There may be more to do at once.
    More,
    /// The socket is full or empty.
    Blocked,
    /// The kernel asks for patience.
    Pause(Duration),
    /// The connection is over, by this error if by any.
    Over(Option<io::Error>),
    /// The file that is sent or stored in failed.
    FileFailed(io::Error),
}

/// Sends until stopped, then waits to be closed.
pub(super) fn send(mut context: Context, plan: &StreamPlan, mut source: Source, at_end: AtEnd) {
    let mut flow = Box::new(Sender::new(context.clock.now(), plan));
    while context.is_running() {
        let now = context.clock.now();
        context.look_if_due(now, &mut *flow);
        context.publish_if_due(now, || flow.sample());
        let turn = match flow.poll_step(now) {
            Step::Send { bytes } => write_some(&context, &mut flow, now, &mut source, bytes),
            Step::Wait { until } => {
                context.wait_for_departure(until, || flow.sample());
                continue;
            }
            Step::Done => {
                context.publish(flow.sample());
                if let Some(event) = wait_for_acknowledgement(&context, &source) {
                    if at_end == AtEnd::TakeLeave {
                        take_leave(&context);
                    }
                    context.report(event);
                }
                context.wait_for_stop();
                break;
            }
        };
        match turn {
            Turn::More => {}
            Turn::Blocked => {
                context.publish(flow.sample());
                context.wait(Interest::Write, None);
            }
            Turn::Pause(pause) => {
                context.publish(flow.sample());
                context.pause(pause);
            }
            Turn::Over(error) => {
                context.publish(flow.sample());
                context.report_closed(error);
                context.wait_for_stop();
                break;
            }
            Turn::FileFailed(error) => {
                context.publish(flow.sample());
                context.report_file(error);
                context.wait_for_stop();
                break;
            }
        }
    }
    context.publish_final(&mut *flow, source.engine());
    context.wait_for_close();
}

/// Writes up to `bytes` in whole blocks; a block that the socket took in part is completed first.
fn write_some(
    context: &Context,
    flow: &mut Sender,
    now: Instant,
    source: &mut Source,
    bytes: u64,
) -> Turn {
    let mut left = bytes.min(TURN_BYTES.max(source.call_bytes() as u64));
    for _ in 0..TURN_CALLS {
        match source.send(&context.channel, flow.tally().bytes, left) {
            Ok(0) => {
                flow.handle_source_end();
                return Turn::More;
            }
            Ok(taken) => {
                flow.handle_sent(now, taken as u64);
                left -= taken as u64;
                if left == 0 {
                    return Turn::More;
                }
            }
            Err(SendError::Socket(error)) => return after(error),
            Err(SendError::File(error)) => return Turn::FileFailed(error),
        }
    }
    Turn::More
}

/// Waits until the peer's kernel has everything, so that its count is complete when it hears of
/// the end, and says how that went; none if the order to stop came first. Bounded: a peer that
/// stopped reading must not hold up the test for ever.
fn wait_for_acknowledgement(context: &Context, source: &Source) -> Option<StreamEvent> {
    let deadline = context.clock.now() + ACKNOWLEDGEMENT_TIMEOUT;
    let mut pause = Duration::from_micros(100);
    while context.is_running() {
        match context.channel.take_error() {
            Ok(None) => {}
            Ok(Some(error)) if sys::is_of_the_file(&error) && source.is_file() => {
                return Some(StreamEvent::FileFailed { code: errno::number(&error) });
            }
            Ok(Some(_)) | Err(_) => return Some(StreamEvent::Closed),
        }
        let is_acknowledged = context.channel.unacknowledged_bytes().unwrap_or(0) == 0;
        if is_acknowledged || context.clock.now() >= deadline {
            return Some(StreamEvent::LimitReached);
        }
        context.pause(pause);
        pause = (pause * 2).min(Duration::from_millis(10));
    }
    None
}

/// Ends this direction of the connection, and waits until the peer has probably read to its end.
fn take_leave(context: &Context) {
    // A connection that is gone needs no end.
    let _ = context.channel.socket().shutdown(Shutdown::Write);
    let until = context.clock.now() + PEER_STORES;
    while context.is_running() && context.clock.now() < until {
        context.wait(Interest::Nothing, Some(until));
    }
}

/// Receives until stopped, takes what has arrived by then, and goes on reading without counting
/// until closed.
pub(super) fn receive(mut context: Context, plan: &StreamPlan, mut sink: Sink) {
    let mut flow = Box::new(Receiver::new(plan));
    let (mut over, mut file_failed) = (false, false);
    let mut patience = Patience::new(context.clock.now());
    while context.is_running() {
        let now = context.clock.now();
        context.look_if_due(now, &mut *flow);
        let turn = read_some(&context, &mut sink, u64::MAX, |bytes| flow.handle_bytes(now, bytes));
        context.report_share(flow.has_share(), || flow.sample());
        context.report_limit(|| flow.is_done().then(|| flow.sample()));
        match turn {
            Turn::More => context.publish_if_due(now, || flow.sample()),
            Turn::Blocked => {
                context.publish(flow.sample());
                let until = patience.after(context.channel.socket(), now, flow.tally().bytes);
                context.wait(Interest::Read, until);
            }
            Turn::Pause(pause) => context.pause(pause),
            Turn::Over(error) => {
                context.publish(flow.sample());
                context.report_closed(error);
                context.wait_for_stop();
                over = true;
            }
            Turn::FileFailed(error) => {
                context.publish(flow.sample());
                context.report_file(error);
                context.wait_for_stop();
                file_failed = true;
            }
        }
    }
    patience.end(context.channel.socket());
    if !over && !file_failed {
        over = drain(&context, &mut flow, &mut sink);
    }
    context.publish_final(&mut *flow, sink.engine());
    if !over {
        discard(&context, &mut sink);
    }
    context.wait_for_close();
}

/// A receiver of a fast stream waits until there is something to read for, and is not woken for each
/// segment, which would cost both ends more than the data.
#[derive(Debug)]
struct Patience {
    is_on: bool,
    is_refused: bool,
    since: Instant,
    bytes: u64,
}

impl Patience {
    fn new(now: Instant) -> Self {
        Self { is_on: false, is_refused: false, since: now, bytes: 0 }
    }

    /// Sees what came since the last wait, `bytes` in all at `now`, and says when the next has to end.
    fn after(&mut self, socket: &Socket, now: Instant, bytes: u64) -> Option<Instant> {
        let came = u128::from(bytes - self.bytes);
        let usual = (now - self.since).as_nanos() * FILL_BYTES as u128 / FILL_TIME.as_nanos();
        let is_fast = came >= usual.max(FILL_BYTES as u128);
        (self.since, self.bytes) = (now, bytes);
        if is_fast != self.is_on && !self.is_refused {
            let least = if is_fast { FILL_BYTES } else { 1 };
            self.is_refused = sys::set_least_readable(socket, least).is_err();
            self.is_on = is_fast && !self.is_refused;
        }
        self.is_on.then(|| now + 4 * FILL_TIME)
    }

    /// Waits are for any byte again.
    fn end(&mut self, socket: &Socket) {
        if std::mem::take(&mut self.is_on) {
            // It worked the other way, and at worst a socket that is closed soon wakes late.
            let _ = sys::set_least_readable(socket, 1);
        }
    }
}

/// Takes what had arrived when the order to stop came. Returns whether the connection is over.
fn drain(context: &Context, flow: &mut Receiver, sink: &mut Sink) -> bool {
    let deadline = context.clock.now() + DRAIN_TIMEOUT;
    let mut left = context.channel.unread_bytes().unwrap_or(u64::MAX);
    while left > 0 && !context.is_closed() && context.clock.now() < deadline {
        let now = context.clock.now();
        let turn = read_some(context, sink, left, |bytes| {
            left -= bytes;
            flow.handle_bytes(now, bytes)
        });
        match turn {
            Turn::More => {}
            Turn::Blocked | Turn::Pause(_) => return false,
            Turn::FileFailed(error) => {
                context.report_file(error);
                return false;
            }
            Turn::Over(_) => return true,
        }
    }
    false
}

/// Keeps the peer's writes from blocking: a server of iperf3 up to 3.15 in the middle of one
/// hears nothing else.
fn discard(context: &Context, sink: &mut Sink) {
    while !context.is_closed() {
        match read_some(context, sink, u64::MAX, |_| 0) {
            Turn::More => {}
            Turn::Blocked => context.wait(Interest::Read, None),
            Turn::Pause(pause) => context.pause(pause),
            Turn::Over(_) | Turn::FileFailed(_) => return,
        }
    }
}

/// Reads up to `most` bytes in a few calls; `count` says how many of those that came are data of the
/// test, which are kept.
fn read_some(
    context: &Context,
    sink: &mut Sink,
    most: u64,
    mut count: impl FnMut(u64) -> u64,
) -> Turn {
    let mut left = most;
    for _ in 0..TURN_CALLS {
        match sink.receive(&context.channel, left) {
            Ok(0) => return Turn::Over(None),
            Ok(taken) => {
                let counted = count(taken as u64);
                if let Err(error) = sink.keep(counted) {
                    return Turn::FileFailed(error);
                }
                left -= taken as u64;
                if left == 0 {
                    return Turn::More;
                }
            }
            Err(error) => return after(error),
        }
    }
    Turn::More
}

fn after(error: io::Error) -> Turn {
    match remedy(Protocol::Tcp, &error) {
        Remedy::Again => Turn::More,
        Remedy::Wait => Turn::Blocked,
        Remedy::Pause(pause) => Turn::Pause(pause),
        Remedy::GiveUp => Turn::Over(Some(error)),
    }
}

/// Blocks that one call writes. Large ones go several at a time, which halves the calls' share of the
/// work; small ones one by one, since somebody who asks for them wants to see what they cost.
pub(super) fn blocks_a_call(block_bytes: usize) -> usize {
    if block_bytes < LARGE_BLOCK { 1 } else { (CALL_BYTES / block_bytes).clamp(1, MOST_BLOCKS) }
}

/// Small blocks are written one by one, as iperf3 does, but read together.
pub(super) fn buffer_bytes(block_bytes: u32) -> usize {
    (block_bytes as usize).clamp(256 << 10, 1 << 20)
}

/// What nobody asks for to see the cost of a call: the default, and more.
const LARGE_BLOCK: usize = 128 << 10;
/// Bytes of a call with large blocks.
const CALL_BYTES: usize = 1 << 20;
/// What a receiver of a stream of 2 Gbit/s or more waits for, and how long that takes.
const FILL_BYTES: usize = 128 << 10;
const FILL_TIME: Duration = Duration::from_micros(500);
/// Most system calls between two looks at the clock and the orders.
const TURN_CALLS: usize = 16;
/// Most bytes of a turn, unless one block is larger.
const TURN_BYTES: u64 = 128 << 10;
/// How long what was sent may take to be acknowledged after a limit.
const ACKNOWLEDGEMENT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a peer may take to store what its kernel has received: a few megabytes.
const PEER_STORES: Duration = Duration::from_millis(100);
/// How long taking what has arrived may hold up the end of a test.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);
