//! Data of TCP streams: as much as the socket's buffer takes or holds, and no more, so that a turn is
//! as long as a buffer.

use linerate_core::flow::Step;
use linerate_core::session::StreamEvent;
use linerate_core::time::Instant;
use smoltcp::socket::tcp::Socket;

use super::stream::{Flow, Receiver, Sender, Turn};

/// Moves what can be moved now.
pub(super) fn turn(now: Instant, socket: &mut Socket<'_>, flow: &mut Flow) -> Turn {
    match flow {
        Flow::Idle => Turn::default(),
        Flow::Send(flow) => send(now, socket, flow),
        Flow::Receive(flow) => receive(now, socket, flow),
    }
}

/// Takes what has arrived.
pub(super) fn receive(now: Instant, socket: &mut Socket<'_>, flow: &mut Receiver) -> Turn {
    while socket.can_recv() {
        let Ok(bytes) = socket.recv(|bytes| (bytes.len(), bytes.len())) else { break };
        flow.handle_bytes(now, bytes as u64);
    }
    Turn { event: (!socket.may_recv()).then_some(StreamEvent::Closed), wait_until: None }
}

fn send(now: Instant, socket: &mut Socket<'_>, flow: &mut Sender) -> Turn {
    loop {
        let most = match flow.poll_step(now) {
            Step::Send { bytes } => usize::try_from(bytes).unwrap_or(usize::MAX),
            Step::Wait { until } => return Turn { wait_until: Some(until), event: None },
            Step::Done => {
                let is_acknowledged = socket.send_queue() == 0;
                let event = is_acknowledged.then_some(StreamEvent::LimitReached);
                return Turn { event, wait_until: None };
            }
        };
        // The payload is what the buffer holds already.
        let taken = socket.send(|buffer| {
            let bytes = buffer.len().min(most);
            (bytes, bytes)
        });
        match taken {
            Ok(0) => return Turn::default(),
            Ok(bytes) => flow.handle_sent(now, bytes as u64),
            Err(_) => return Turn { event: Some(StreamEvent::Closed), wait_until: None },
        }
    }
}
