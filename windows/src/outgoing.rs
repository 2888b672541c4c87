//! Data on its way out, a byte stream or datagrams. A byte counts as sent when the system has an operation for it, as a byte
//! in a socket's buffer does elsewhere.

use std::io;

use crate::flight::{Flight, Slot};

/// What a sending operation works with.
pub(crate) trait Load {
    /// Bytes of it.
    fn len(&self) -> usize;
}

/// The sending operations of a socket.
#[derive(Debug)]
pub(crate) struct Outgoing<S: Slot> {
    flight: Flight<S>,
    /// Bytes of all that is under way, and of all that has ended.
    pending: u64,
    sent: u64,
    failed: Option<io::Error>,
    spare: Vec<S::Work>,
    /// One operation at a time.
    is_singly: bool,
}

impl<S: Slot<Work: Load>> Outgoing<S> {
    /// As many operations at a time as there are slots.
    pub(crate) fn new(slots: impl IntoIterator<Item = S>) -> Self {
        Self {
            flight: Flight::new(slots),
            pending: 0,
            sent: 0,
            failed: None,
            spare: Vec::new(),
            is_singly: false,
        }
    }

    /// Sends, and returns the bytes of it. `load` makes what to send, if there is room for it, of what was
    /// sent earlier.
    ///
    /// # Errors
    /// Of kind `WouldBlock` while as much is under way as may be; else why this or an earlier operation
    /// failed, which ends a byte stream.
    pub(crate) fn send(
        &mut self,
        load: impl FnOnce(Option<S::Work>) -> S::Work,
    ) -> io::Result<usize> {
        if let Some(error) = self.take_error() {
            return Err(error);
        }
        if !self.has_room() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let load = load(self.spare.pop());
        let len = load.len();
        match self.flight.start(load) {
            Ok(()) => {
                self.pending += len as u64;
                Ok(len)
            }
            Err((error, load)) => {
                self.spare.push(load);
                Err(error)
            }
        }
    }

    /// Bytes that the system has operations for and has not taken yet.
    pub(crate) fn pending(&mut self) -> u64 {
        self.settle();
        self.pending
    }

    /// Bytes of all that the system has taken.
    pub(crate) const fn sent(&self) -> u64 {
        self.sent
    }

    /// From now on, no operation begins before the last has ended.
    pub(crate) const fn send_singly(&mut self) {
        self.is_singly = true;
    }

    /// Another operation can begin.
    pub(crate) fn has_room(&mut self) -> bool {
        self.settle();
        if self.is_singly { self.flight.is_empty() } else { !self.flight.is_full() }
    }

    /// Why an earlier operation failed, once.
    pub(crate) fn take_error(&mut self) -> Option<io::Error> {
        self.settle();
        self.failed.take()
    }

    /// The last that was given back: by an operation that ended, or that did not begin.
    pub(crate) fn take_spare(&mut self) -> Option<S::Work> {
        self.spare.pop()
    }

    /// There is an error to tell.
    pub(crate) const fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Takes note of all that has ended.
    fn settle(&mut self) {
        while let Some(ended) = self.flight.finish_oldest() {
            let len = ended.work.len();
            self.pending -= len as u64;
            self.sent += len as u64;
            self.spare.push(ended.work);
            let failure = match ended.result {
                Ok(sent) if sent < len => Some(cut_short(sent, len)),
                Ok(_) => None,
                Err(error) => Some(error),
            };
            // The first tells why; what was begun after it only follows.
            self.failed = self.failed.take().or(failure);
        }
    }
}

/// What was begun later may have gone out already, so the rest cannot be sent in its place.
fn cut_short(sent: usize, len: usize) -> io::Error {
    io::Error::new(io::ErrorKind::WriteZero, format!("only {sent} of {len} bytes were sent"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flight::tests::{Script, Scripted};

    #[derive(Debug, PartialEq)]
    struct Bytes(usize);

    impl Load for Bytes {
        fn len(&self) -> usize {
            self.0
        }
    }

    fn out(script: &Script, slots: usize) -> Outgoing<Scripted<Bytes>> {
        Outgoing::new(script.slots(slots))
    }

    #[test]
    fn bytes_count_when_they_are_handed_over() {
        let script = Script::default();
        let mut out = out(&script, 2);
        assert_eq!(out.send(|_| Bytes(10)).unwrap(), 10);
        assert_eq!(out.send(|_| Bytes(20)).unwrap(), 20);
        assert_eq!(out.pending(), 30);
        assert!(!out.has_room());
        let blocked = out.send(|_| unreachable!("there is no room")).unwrap_err();
        assert_eq!(blocked.kind(), io::ErrorKind::WouldBlock);
        script.end(0, Ok(10));
        assert!(out.has_room());
        assert_eq!((out.pending(), out.sent()), (20, 10));
        assert_eq!(out.send(|spare| spare.unwrap()).unwrap(), 10, "what was sent serves again");
    }

    #[test]
    fn room_is_where_the_oldest_was_whatever_ended_before_it() {
        let script = Script::default();
        let mut out = out(&script, 2);
        out.send(|_| Bytes(1)).unwrap();
        out.send(|_| Bytes(2)).unwrap();
        script.end(1, Ok(2));
        assert!(!out.has_room());
        assert_eq!(out.pending(), 3);
        script.end(0, Ok(1));
        assert_eq!(out.pending(), 0);
    }

    #[test]
    fn the_first_failure_is_told_once() {
        let script = Script::default();
        let mut out = out(&script, 3);
        for len in 1..=3 {
            out.send(|_| Bytes(len)).unwrap();
        }
        script.end(0, Ok(1));
        script.end(1, Err(io::ErrorKind::ConnectionReset));
        script.end(2, Err(io::ErrorKind::ConnectionAborted));
        assert!(out.has_room() && out.has_failed(), "for the bad news");
        let error = out.send(|_| unreachable!("the connection is gone")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        assert_eq!(out.pending(), 0);
        assert_eq!(out.send(|_| Bytes(4)).unwrap(), 4);
    }

    #[test]
    fn what_failed_last_can_be_asked_for() {
        let script = Script::default();
        let mut out = out(&script, 2);
        out.send(|_| Bytes(1)).unwrap();
        assert!(out.take_error().is_none());
        script.end(0, Err(io::ErrorKind::ConnectionReset));
        assert_eq!(out.take_error().unwrap().kind(), io::ErrorKind::ConnectionReset);
        assert_eq!((out.pending(), out.take_error().is_none()), (0, true));
    }

    #[test]
    fn what_goes_singly_waits_for_the_one_before() {
        let script = Script::default();
        let mut out = out(&script, 4);
        out.send_singly();
        out.send(|_| Bytes(1)).unwrap();
        assert!(!out.has_room());
        assert_eq!(out.send(|_| Bytes(2)).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        script.end(0, Ok(1));
        assert_eq!(out.send(|_| Bytes(2)).unwrap(), 2);
    }

    #[test]
    fn what_did_not_begin_is_given_back() {
        let script = Script::default();
        let mut out = out(&script, 1);
        script.refuse(io::ErrorKind::InvalidInput);
        out.send(|_| Bytes(7)).unwrap_err();
        assert_eq!(out.take_spare(), Some(Bytes(7)));
    }

    #[test]
    fn an_operation_that_sent_a_part_has_failed() {
        let script = Script::default();
        let mut out = out(&script, 1);
        out.send(|_| Bytes(10)).unwrap();
        script.end(0, Ok(4));
        let error = out.send(|_| Bytes(10)).unwrap_err();
        assert_eq!(error.to_string(), "only 4 of 10 bytes were sent");
    }

    #[test]
    fn what_did_not_begin_is_not_pending() {
        let script = Script::default();
        let mut out = out(&script, 1);
        script.refuse(io::ErrorKind::OutOfMemory);
        assert_eq!(out.send(|_| Bytes(10)).unwrap_err().kind(), io::ErrorKind::OutOfMemory);
        assert_eq!(out.pending(), 0);
        assert_eq!(out.send(|spare| spare.unwrap()).unwrap(), 10);
    }
}
