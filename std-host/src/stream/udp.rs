//! The threads of UDP streams. Datagrams that leave by one call have one stamp; when they arrived is
//! the kernel's word where it has one. A turn handles a few calls between two looks at the orders.

use std::io;
use std::time::Duration;

use linerate_core::flow::{ReceiveFlow, Step, StreamPlan};
use linerate_core::session::StreamEvent;
use linerate_core::stats::BUCKETS;
use linerate_core::test::Protocol;
use linerate_core::time::Instant;

use super::datagrams::Outgoing;
use super::intake::Intake;
use super::looks::Sender;
use super::outcome::{Remedy, is_out_of_buffers, remedy};
use super::thread::Context;
use crate::sys::{self, Interest};

/// The receiver's memory of sequence numbers: it tells late datagrams from duplicates within
/// 65536 numbers.
type Receiver = ReceiveFlow<1024, BUCKETS>;

/// Sends until stopped, then waits to be closed.
pub(super) fn send(mut context: Context, plan: &StreamPlan, mut outgoing: Outgoing) {
    let mut flow = Box::new(Sender::new(context.clock.now(), plan));
    while context.is_running() {
        let now = context.clock.now();
        context.look_if_due(now, &mut *flow);
        context.publish_if_due(now, || flow.sample());
        let result = match flow.poll_step(now) {
            Step::Send { bytes } => {
                let count = bytes / u64::from(plan.block_bytes);
                send_batch(&context, &mut flow, &mut outgoing, count)
            }
            Step::Wait { until } => {
                context.wait_for_departure(until, || flow.sample());
                continue;
            }
            Step::Done => {
                context.publish(flow.sample());
                wait_for_departure(&context);
                context.report(StreamEvent::LimitReached);
                context.wait_for_stop();
                break;
            }
        };
        let Err(error) = result else { continue };
        sys::forget_errors(context.channel.socket());
        if is_out_of_buffers(&error) {
            flow.handle_refusal();
        }
        context.publish(flow.sample());
        if !overcome(&context, &error, || context.wait(Interest::Write, None)) {
            context.report_closed(Some(error));
            context.wait_for_stop();
        }
    }
    context.publish_final(&mut *flow, outgoing.engine());
    context.wait_for_close();
}

/// Waits until all that counts as sent has left, so that it does not come after the word of the end.
fn wait_for_departure(context: &Context) {
    let deadline = context.clock.now() + DEPARTURE_TIMEOUT;
    while context.is_running()
        && context.channel.pending_bytes() > 0
        && context.clock.now() < deadline
    {
        context.pause(Duration::from_millis(1));
    }
}

/// Sends up to `count` datagrams, at most a batch.
fn send_batch(
    context: &Context,
    flow: &mut Sender,
    outgoing: &mut Outgoing,
    count: u64,
) -> io::Result<()> {
    let mut left = count.min(BATCH.max(outgoing.most()));
    while left > 0 {
        let now = context.clock.now();
        let sent = outgoing.send(&context.channel, flow, now, left)?;
        flow.handle_datagrams_sent(now, sent);
        left -= sent;
    }
    Ok(())
}

/// Receives until stopped, takes what has arrived by then, and goes on reading without counting
/// until closed.
pub(super) fn receive(mut context: Context, plan: &StreamPlan, mut incoming: Intake) {
    let mut flow = Box::new(Receiver::new(plan));
    let room = if plan.may_wait { incoming.room(context.channel.socket()) } else { 0 };
    let mut rests = Rests::new(context.clock.now(), room);
    context.look_if_due(context.clock.now(), &mut *flow);
    while context.is_running() {
        let result = receive_batch(&context, &mut flow, &mut incoming);
        context.report_share(flow.has_share(), || flow.sample());
        context.report_limit(|| flow.is_done().then(|| flow.sample()));
        let now = context.clock.now();
        context.look_if_due(now, &mut *flow);
        match result {
            Ok(may_hold_more) => {
                context.publish_if_due(now, || flow.sample());
                match rests.after(now, incoming.held()) {
                    _ if may_hold_more => {}
                    Some(rest) => context.channel.rest(rest),
                    None => {
                        // The next wait may be long.
                        context.publish(flow.sample());
                        await_more(&context, &incoming);
                    }
                }
            }
            Err(error) => {
                context.publish(flow.sample());
                if !overcome(&context, &error, || await_more(&context, &incoming)) {
                    context.report_closed(Some(error));
                    context.wait_for_stop();
                }
            }
        }
    }
    drain(&context, &mut flow, &mut incoming);
    context.publish_final(&mut *flow, incoming.engine(plan.joins_arrivals));
    discard(&context, &mut incoming);
}

/// How long a receiver that has emptied its socket leaves it alone: to be woken for each datagram costs
/// more than all that is done with it. Nothing is lost by it where the kernel tells when each came, and
/// where the socket's buffer has room for far more.
#[derive(Debug)]
pub(super) struct Rests {
    /// What may come in a rest, in bytes of the socket's buffer; none where there are no rests.
    room: u64,
    since: Instant,
    held: u64,
}

impl Rests {
    pub(super) fn new(now: Instant, room: u64) -> Self {
        Self { room, since: now, held: 0 }
    }

    /// The rest that may follow at `now`, when the buffer has held so much in all.
    pub(super) fn after(&mut self, now: Instant, held: u64) -> Option<Duration> {
        let came = held - self.held;
        let nanos = (now - self.since).as_nanos() as u64;
        (self.since, self.held) = (now, held);
        let rest = Duration::from_nanos(nanos.saturating_mul(self.room).checked_div(came)?);
        Some(rest.min(LONGEST_REST)).filter(|&rest| rest >= SHORTEST_REST)
    }
}

/// Takes what is there in a few calls. Returns whether there may be more.
fn receive_batch(
    context: &Context,
    flow: &mut Receiver,
    incoming: &mut Intake,
) -> io::Result<bool> {
    for _ in 0..TURN_CALLS {
        let may_hold_more = incoming.receive(&context.channel, context.clock, |message| {
            if message.is_new_time {
                flow.handle_clock_step();
            }
            if message.bytes.len() == message.len {
                flow.handle_row(message.arrived, message.bytes, message.datagram_bytes);
            } else {
                flow.handle_datagram(message.arrived, message.bytes, message.len);
            }
        })?;
        if !may_hold_more {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Takes what had arrived when the order to stop came: until the socket is empty, or as many bytes
/// as its buffer can have held, for a sender that does not stop.
fn drain(context: &Context, flow: &mut Receiver, incoming: &mut Intake) {
    let deadline = context.clock.now() + DRAIN_TIMEOUT;
    let may_go_on = || !context.is_closed() && context.clock.now() < deadline;
    incoming.gather();
    while may_go_on() && !incoming.has_gathered() {
        // Nothing is there, or it fails again below.
        let _ = receive_batch(context, flow, incoming);
    }
    let end = flow.tally().bytes + incoming.ready_bytes(context.channel.socket());
    while may_go_on() && flow.tally().bytes < end {
        match receive_batch(context, flow, incoming) {
            Ok(_) => {}
            Err(error) if remedy(Protocol::Udp, &error) == Remedy::Again => {}
            Err(_) => return,
        }
    }
}

fn discard(context: &Context, incoming: &mut Intake) {
    while !context.is_closed() {
        if let Err(error) = incoming.receive(&context.channel, context.clock, |_| {})
            && !overcome(context, &error, || await_more(context, incoming))
        {
            context.wait_for_close();
        }
    }
}

/// Waits until more has come.
fn await_more(context: &Context, incoming: &Intake) {
    if let Some(interest) = incoming.awaits() {
        context.wait(interest, None);
    }
}

/// Does what an error asks for, which may be to `wait`; returns false if the stream cannot go on.
fn overcome(context: &Context, error: &io::Error, wait: impl FnOnce()) -> bool {
    match remedy(Protocol::Udp, error) {
        Remedy::Again => {}
        Remedy::Wait => wait(),
        Remedy::Pause(pause) => context.pause(pause),
        Remedy::GiveUp => return false,
    }
    true
}

/// Most datagrams that leave between two looks at the orders, unless one call sends more.
const BATCH: u64 = 32;
/// Most calls that receive between two such looks.
const TURN_CALLS: usize = 8;
/// Rests of a receiver.
const SHORTEST_REST: Duration = Duration::from_micros(100);
const LONGEST_REST: Duration = Duration::from_millis(2);
/// How long what is to leave may hold up the end of a test.
const DEPARTURE_TIMEOUT: Duration = Duration::from_secs(1);
/// How long taking what has arrived may hold up the end of a test.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);
