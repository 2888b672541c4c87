//! The threads of UDP streams. Datagrams are stamped one by one when they leave and when they
//! arrive; a turn handles a batch of them between two looks at the orders.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use linerate_core::flow::{ReceiveFlow, SendFlow, Step, StreamPlan};
use linerate_core::session::StreamEvent;
use linerate_core::test::{MAX_UDP_BLOCK, Protocol};

use super::outcome::{Remedy, remedy};
use super::thread::Context;
use crate::sys::{self, Interest};

/// The receiver's memory of sequence numbers: it tells late datagrams from duplicates within
/// 65536 numbers.
type Receiver = ReceiveFlow<1024>;

/// Sends until stopped, then waits to be closed.
pub(super) fn send(mut context: Context, plan: &StreamPlan, payload: &Arc<[u8]>) {
    let mut datagram = payload[..plan.block_bytes as usize].to_vec();
    let mut flow = SendFlow::new(context.clock.now(), plan);
    while context.is_running() {
        let now = context.clock.now();
        context.publish_if_due(now, || flow.sample());
        let result = match flow.poll_step(now) {
            Step::Send { bytes } => {
                let count = bytes / datagram.len() as u64;
                send_batch(&context, &mut flow, &mut datagram, count)
            }
            Step::Wait { until } => {
                context.publish(flow.sample());
                context.wait(Interest::Nothing, Some(until));
                continue;
            }
            Step::Done => {
                context.publish(flow.sample());
                context.report(StreamEvent::LimitReached);
                context.wait_for_stop();
                break;
            }
        };
        let Err(error) = result else { continue };
        context.publish(flow.sample());
        if !overcome(&context, Interest::Write, &error) {
            context.report(StreamEvent::Closed);
            context.wait_for_stop();
        }
    }
    context.publish_final(flow.sample());
    context.wait_for_close();
}

/// Sends up to `count` datagrams, at most a batch.
fn send_batch(
    context: &Context,
    flow: &mut SendFlow,
    datagram: &mut [u8],
    count: u64,
) -> io::Result<()> {
    for _ in 0..count.min(BATCH) {
        let now = context.clock.now();
        flow.write_header(now, 0, datagram);
        context.socket.send_with_flags(datagram, sys::SEND_FLAGS)?;
        flow.handle_datagrams_sent(now, 1);
    }
    Ok(())
}

/// Receives until stopped, takes what has arrived by then, and goes on reading without counting
/// until closed.
pub(super) fn receive(mut context: Context, plan: &StreamPlan) {
    let mut flow = Box::new(Receiver::new(plan));
    let mut buffer = vec![0; MAX_UDP_BLOCK as usize + 1];
    while context.is_running() {
        let result = receive_batch(&context, &mut flow, &mut buffer);
        context.report_limit(|| flow.is_done().then(|| flow.sample()));
        let Err(error) = result else {
            let now = context.clock.now();
            context.publish_if_due(now, || flow.sample());
            continue;
        };
        context.publish(flow.sample());
        if !overcome(&context, Interest::Read, &error) {
            context.report(StreamEvent::Closed);
            context.wait_for_stop();
        }
    }
    drain(&context, &mut flow, &mut buffer);
    context.publish_final(flow.sample());
    discard(&context, &mut buffer);
}

fn receive_batch(context: &Context, flow: &mut Receiver, buffer: &mut [u8]) -> io::Result<()> {
    for _ in 0..BATCH {
        let len = (&*context.socket).read(buffer)?;
        flow.handle_datagram(context.clock.now(), &buffer[..len], len);
    }
    Ok(())
}

/// Takes what had arrived when the order to stop came: until the socket is empty, or as many bytes
/// as its buffer can have held, for a sender that does not stop.
fn drain(context: &Context, flow: &mut Receiver, buffer: &mut [u8]) {
    let deadline = context.clock.now() + DRAIN_TIMEOUT;
    let held = context.socket.recv_buffer_size().unwrap_or(0) as u64;
    let end = flow.tally().bytes + held;
    while !context.is_closed() && flow.tally().bytes < end && context.clock.now() < deadline {
        match receive_batch(context, flow, buffer) {
            Ok(()) => {}
            Err(error) if remedy(Protocol::Udp, &error) == Remedy::Again => {}
            Err(_) => return,
        }
    }
}

fn discard(context: &Context, buffer: &mut [u8]) {
    while !context.is_closed() {
        if let Err(error) = (&*context.socket).read(buffer)
            && !overcome(context, Interest::Read, &error)
        {
            context.wait_for_close();
        }
    }
}

/// Does what an error asks for; returns false if the stream cannot go on.
fn overcome(context: &Context, interest: Interest, error: &io::Error) -> bool {
    match remedy(Protocol::Udp, error) {
        Remedy::Again => {}
        Remedy::Wait => context.wait(interest, None),
        Remedy::Pause(pause) => context.pause(pause),
        Remedy::GiveUp => return false,
    }
    true
}

/// Most datagrams between two looks at the orders.
const BATCH: u64 = 32;
/// How long taking what has arrived may hold up the end of a test.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);
