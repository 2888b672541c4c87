//! Where a receiver of datagrams has them from: its own socket, or its mailbox at one that it shares.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use linerate_core::time::Instant;
use socket2::Socket;

use super::datagrams::{Incoming, Message};
use super::mailbox::Letter;
use super::sorter::Seat;
use crate::clock::Clock;
use crate::report::Engine;
use crate::sys::{Channel, Interest};

/// Datagrams on their way in.
#[derive(Debug)]
pub(super) enum Intake {
    /// From the stream's own socket.
    Socket(Incoming),
    /// From its mailbox.
    Mailbox(Mail),
}

/// What is taken out of a mailbox.
#[derive(Debug)]
pub(super) struct Mail {
    seat: Arc<Seat>,
    letters: Vec<Letter>,
    held: u64,
    /// In which the socket is emptied at the end.
    round: Option<u64>,
}

impl Intake {
    /// Takes what is there by one call and gives each message to `take`. Returns whether there may be
    /// more.
    pub(super) fn receive(
        &mut self,
        channel: &Channel,
        clock: Clock,
        take: impl FnMut(&Message<'_>),
    ) -> io::Result<bool> {
        match self {
            Self::Socket(incoming) => incoming.receive(channel, clock, take),
            Self::Mailbox(mail) => mail.receive(clock, take).map(|()| false),
        }
    }

    /// What to wait for until more has come; nothing if it is there.
    pub(super) fn awaits(&self) -> Option<Interest> {
        match self {
            Self::Socket(_) => Some(Interest::Read),
            // The thread is woken.
            Self::Mailbox(mail) => mail.seat.mailbox().awaits().then_some(Interest::Nothing),
        }
    }

    /// What may come while nobody looks, in the unit of [`Self::held`]: none where times would be lost.
    pub(super) fn room(&self, socket: &Socket) -> u64 {
        match self {
            Self::Socket(incoming) if !incoming.has_times() => 0,
            Self::Socket(_) => socket.recv_buffer_size().unwrap_or(0) as u64 / SPARED,
            Self::Mailbox(mail) => mail.seat.mailbox().most() as u64 / SPARED,
        }
    }

    /// What all that came took of the socket's buffer or the mailbox while it was there.
    pub(super) fn held(&self) -> u64 {
        match self {
            Self::Socket(incoming) => incoming.held_bytes(),
            Self::Mailbox(mail) => mail.held,
        }
    }

    /// Has all that has arrived by now lie ready.
    pub(super) fn gather(&mut self) {
        if let Self::Mailbox(mail) = self {
            mail.round = Some(mail.seat.gather());
        }
    }

    /// Waits a moment for that; returns whether it is so. Until then what comes has to be taken.
    pub(super) fn has_gathered(&self) -> bool {
        match self {
            Self::Socket(_) => true,
            Self::Mailbox(mail) => {
                mail.round.is_none_or(|round| mail.seat.has_gathered(round, MOMENT))
            }
        }
    }

    /// As many bytes lie ready at most.
    pub(super) fn ready_bytes(&self, socket: &Socket) -> u64 {
        match self {
            Self::Socket(_) => socket.recv_buffer_size().unwrap_or(0) as u64,
            Self::Mailbox(mail) => mail.seat.mailbox().bytes(),
        }
    }

    /// How the datagrams come; with `joins_arrivals` they may share their times.
    pub(super) fn engine(&self, joins_arrivals: bool) -> Engine {
        match self {
            Self::Socket(incoming) => incoming.engine(joins_arrivals),
            Self::Mailbox(mail) => mail.seat.engine(joins_arrivals),
        }
    }
}

impl Mail {
    pub(super) fn new(seat: Arc<Seat>) -> Self {
        Self { seat, letters: Vec::new(), held: 0, round: None }
    }

    fn receive(&mut self, clock: Clock, mut take: impl FnMut(&Message<'_>)) -> io::Result<()> {
        self.seat.mailbox().take(&mut self.letters);
        if self.letters.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let ahead_ns = clock.ahead_of(self.seat.clock());
        for letter in &self.letters {
            let arrived = letter.arrived.as_nanos().saturating_add_signed(ahead_ns);
            take(&Message {
                arrived: Instant::from_nanos(arrived),
                is_new_time: letter.is_new_time,
                bytes: letter.bytes(),
                len: letter.len as usize,
                datagram_bytes: (letter.len as usize).max(1),
                from: None,
                to: None,
            });
        }
        self.held += self.letters.len() as u64;
        Ok(())
    }
}

/// The part of a buffer that may fill while nobody looks is one in so many.
pub(super) const SPARED: u64 = 16;
/// In which no mailbox fills.
const MOMENT: Duration = Duration::from_millis(1);
