//! A byte stream on its way in: several buffers wait for it at a time, and are read in the order in which
//! they were given to the system.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;

use crate::flight::{Flight, Slot};

/// The receiving operations of a socket. Each has a buffer of its own.
#[derive(Debug)]
pub(crate) struct Incoming<S: Slot<Work = Vec<u8>>> {
    flight: Flight<S>,
    /// What came and was not asked for yet: buffers, and where in each it is.
    arrived: VecDeque<(Vec<u8>, Range<usize>)>,
    /// How it ended, after all that.
    over: Option<Over>,
    /// Buffers of which nobody has need.
    spare: Vec<Vec<u8>>,
}

/// The other end has closed the connection, or it broke by an error that is told once.
#[derive(Debug)]
struct Over {
    error: Option<io::Error>,
}

impl<S: Slot<Work = Vec<u8>>> Incoming<S> {
    /// As many operations at a time as there are slots.
    pub(crate) fn new(slots: impl IntoIterator<Item = S>) -> Self {
        let arrived = VecDeque::new();
        Self { flight: Flight::new(slots), arrived, over: None, spare: Vec::new() }
    }

    /// Puts at most `most` bytes into the beginning of the buffer, or gives one of the same length with
    /// them in its place, and returns how many; 0 when the other end has closed.
    ///
    /// # Errors
    /// Of kind `WouldBlock` when nothing is there yet; else why the connection is over, after all that came
    /// before, or why the system takes no buffer.
    pub(crate) fn receive(&mut self, buffer: &mut Vec<u8>, most: usize) -> io::Result<usize> {
        self.settle();
        if self.arrived.is_empty() && self.over.is_none() {
            self.begin(buffer.len())?;
            // What lay in the socket is there at once.
            self.settle();
        }
        let Some((bytes, left)) = self.arrived.front_mut() else { return self.end() };
        let len = left.len().min(most).min(buffer.len());
        if left.start == 0 && len == left.len() && bytes.len() == buffer.len() {
            std::mem::swap(buffer, bytes);
        } else {
            buffer[..len].copy_from_slice(&bytes[left.start..left.start + len]);
        }
        left.start += len;
        if left.start == left.end {
            self.spare.extend(self.arrived.pop_front().map(|(bytes, _)| bytes));
        }
        // What is there is worth more than the news that the system takes no further buffer, which comes
        // again.
        let _ = self.begin(buffer.len());
        Ok(len)
    }

    /// There is something to receive, be it the end, or nothing has begun.
    pub(crate) fn has_some(&mut self) -> bool {
        self.settle();
        !self.arrived.is_empty() || self.over.is_some() || self.flight.is_empty()
    }

    /// Bytes that have come and were not received.
    pub(crate) fn waiting(&mut self) -> u64 {
        self.settle();
        self.arrived.iter().map(|(_, left)| left.len() as u64).sum()
    }

    /// Nothing is there: not yet, or for good.
    fn end(&mut self) -> io::Result<usize> {
        match &mut self.over {
            None => Err(io::ErrorKind::WouldBlock.into()),
            Some(Over { error }) => error.take().map_or(Ok(0), Err),
        }
    }

    /// Gives the system as many buffers as it may have; it takes none at all only with an error.
    fn begin(&mut self, buffer_bytes: usize) -> io::Result<()> {
        // Buffers that nobody has emptied yet are some of them.
        while self.over.is_none() && self.arrived.len() < self.flight.free() {
            let buffer = self.spare.pop().filter(|spare| spare.len() == buffer_bytes);
            let buffer = buffer.unwrap_or_else(|| vec![0; buffer_bytes]);
            if let Err((error, buffer)) = self.flight.start(buffer) {
                self.spare.push(buffer);
                return if self.flight.is_empty() { Err(error) } else { Ok(()) };
            }
        }
        Ok(())
    }

    /// Takes what all operations brought that have ended.
    fn settle(&mut self) {
        while self.over.is_none()
            && let Some(ended) = self.flight.finish_oldest()
        {
            match ended.result {
                Ok(0) => self.over = Some(Over { error: None }),
                Ok(len) => {
                    let len = len.min(ended.work.len());
                    self.arrived.push_back((ended.work, 0..len));
                }
                Err(error) => self.over = Some(Over { error: Some(error) }),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flight::tests::{Script, Scripted};

    fn incoming(script: &Script, slots: usize) -> Incoming<Scripted<Vec<u8>>> {
        Incoming::new(script.slots(slots))
    }

    fn blocks(incoming: &mut Incoming<Scripted<Vec<u8>>>, buffer: &mut Vec<u8>) -> bool {
        let result = incoming.receive(buffer, usize::MAX);
        result.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    #[test]
    fn buffers_are_read_in_the_order_in_which_they_were_given() {
        let script = Script::default();
        let (mut incoming, mut buffer) = (incoming(&script, 3), vec![0; 8]);
        assert!(blocks(&mut incoming, &mut buffer));
        assert_eq!(script.begun(), 3);
        script.end(2, Ok(3));
        script.end(1, Ok(2));
        assert!(blocks(&mut incoming, &mut buffer), "the first is under way");
        assert!(!incoming.has_some());
        script.end(0, Ok(1));
        assert!(incoming.has_some());
        for expected in 1..=3 {
            assert_eq!(incoming.receive(&mut buffer, usize::MAX).unwrap(), expected);
            assert_eq!(buffer.len(), 8);
        }
        assert!(blocks(&mut incoming, &mut buffer));
        assert_eq!(script.begun(), 6, "each was given again");
    }

    #[test]
    fn what_lay_in_the_socket_comes_with_the_first_call() {
        let script = Script::default();
        let (mut incoming, mut buffer) = (incoming(&script, 2), vec![0; 8]);
        script.end_at_once(5);
        assert_eq!(incoming.receive(&mut buffer, 8).unwrap(), 5);
        assert!(blocks(&mut incoming, &mut buffer));
    }

    #[test]
    fn a_sender_that_is_faster_fills_no_more_buffers_than_there_are() {
        let script = Script::default();
        let (mut incoming, mut buffer) = (incoming(&script, 2), vec![0; 8]);
        assert!(blocks(&mut incoming, &mut buffer));
        for received in 1..100 {
            (0..script.begun()).for_each(|index| script.end(index, Ok(8)));
            assert_eq!(incoming.receive(&mut buffer, 8).unwrap(), 8);
            assert!(script.begun() <= received + 2, "{}", script.begun());
            assert!(incoming.waiting() <= 16);
        }
    }

    #[test]
    fn what_is_more_than_wanted_waits() {
        let script = Script::default();
        let (mut incoming, mut buffer) = (incoming(&script, 1), vec![0; 8]);
        assert!(blocks(&mut incoming, &mut buffer));
        script.end(0, Ok(7));
        assert_eq!(incoming.waiting(), 7);
        let taken = [3, 3, 3].map(|most| incoming.receive(&mut buffer, most).ok());
        assert_eq!(taken, [Some(3), Some(3), Some(1)]);
        assert!(blocks(&mut incoming, &mut buffer));
    }

    #[test]
    fn the_end_comes_after_all_that_came_before_it_and_stays() {
        let script = Script::default();
        let (mut incoming, mut buffer) = (incoming(&script, 3), vec![0; 8]);
        assert!(blocks(&mut incoming, &mut buffer));
        script.end(1, Ok(0));
        script.end(0, Ok(5));
        script.end(2, Ok(0));
        let received = [(); 3].map(|()| incoming.receive(&mut buffer, 8).unwrap());
        assert_eq!(received, [5, 0, 0]);
    }

    #[test]
    fn a_failure_is_told_once_and_after_the_bytes_before_it() {
        let script = Script::default();
        let (mut incoming, mut buffer) = (incoming(&script, 2), vec![0; 8]);
        assert!(blocks(&mut incoming, &mut buffer));
        script.end(1, Err(io::ErrorKind::ConnectionReset));
        script.end(0, Ok(8));
        assert_eq!(incoming.receive(&mut buffer, 8).unwrap(), 8);
        let error = incoming.receive(&mut buffer, 8).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        assert_eq!(incoming.receive(&mut buffer, 8).unwrap(), 0);
    }

    #[test]
    fn a_system_that_takes_fewer_buffers_gets_fewer() {
        let script = Script::default();
        let (mut incoming, mut buffer) = (incoming(&script, 2), vec![0; 8]);
        assert!(blocks(&mut incoming, &mut buffer));
        script.end(0, Ok(8));
        script.refuse(io::ErrorKind::OutOfMemory);
        assert_eq!(incoming.receive(&mut buffer, 8).unwrap(), 8, "one is under way still");
        script.end(1, Ok(8));
        assert_eq!(incoming.receive(&mut buffer, 8).unwrap(), 8);
    }

    #[test]
    fn a_system_that_takes_no_buffer_at_all_says_why() {
        let script = Script::default();
        let (mut incoming, mut buffer) = (incoming(&script, 2), vec![0; 8]);
        script.refuse(io::ErrorKind::NotConnected);
        let error = incoming.receive(&mut buffer, 8).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotConnected);
    }
}
