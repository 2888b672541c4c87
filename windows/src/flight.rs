//! Operations that go on after the call that began them: several at a time, in the order in which they
//! began. What one works with belongs to the system until it has ended, however it ends. Knows nothing of
//! Winsock: a place for an operation is a [`Slot`], of which tests have their own.

use std::collections::VecDeque;
use std::io;

/// A place for one operation after the other. Dropping it ends what is under way, and keeps what that
/// works with until the system lets go of it.
pub(crate) trait Slot {
    /// What an operation works with.
    type Work;

    /// Begins an operation; the slot has none.
    ///
    /// # Errors
    /// Why nothing began, with what it would have worked with.
    fn start(&mut self, work: Self::Work) -> Result<(), (io::Error, Self::Work)>;

    /// Whether there is an operation that is over.
    fn has_ended(&self) -> bool;

    /// What became of the operation, once: how many bytes were moved, and what it worked with. `None` while
    /// it is under way.
    fn finish(&mut self) -> Option<Ended<Self::Work>>;

    /// Asks the system to end the operation early.
    fn cancel(&mut self);
}

/// An operation that is over.
#[derive(Debug)]
pub(crate) struct Ended<W> {
    pub(crate) work: W,
    pub(crate) result: io::Result<usize>,
}

/// The operations of one direction of a socket.
#[derive(Debug)]
pub(crate) struct Flight<S: Slot> {
    /// Those under way, the oldest first.
    busy: VecDeque<S>,
    free: Vec<S>,
}

impl<S: Slot> Flight<S> {
    /// As many at a time as there are slots.
    pub(crate) fn new(slots: impl IntoIterator<Item = S>) -> Self {
        let free: Vec<S> = slots.into_iter().collect();
        Self { busy: VecDeque::with_capacity(free.len()), free }
    }

    /// Nothing is under way.
    pub(crate) fn is_empty(&self) -> bool {
        self.busy.is_empty()
    }

    /// As much is under way as may be.
    pub(crate) fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    /// So many more can be.
    pub(crate) fn free(&self) -> usize {
        self.free.len()
    }

    /// The oldest operation is over.
    pub(crate) fn has_ended(&self) -> bool {
        self.busy.front().is_some_and(S::has_ended)
    }

    /// Begins an operation.
    ///
    /// # Errors
    /// Of kind `WouldBlock` when as much is under way as may be; else what the system says. What it would
    /// have worked with comes back.
    pub(crate) fn start(&mut self, work: S::Work) -> Result<(), (io::Error, S::Work)> {
        let Some(mut slot) = self.free.pop() else {
            return Err((io::ErrorKind::WouldBlock.into(), work));
        };
        let started = slot.start(work);
        match started {
            Ok(()) => self.busy.push_back(slot),
            Err(_) => self.free.push(slot),
        }
        started
    }

    /// What became of the oldest operation, if that is over; later ones may be over before.
    pub(crate) fn finish_oldest(&mut self) -> Option<Ended<S::Work>> {
        let ended = self.busy.front_mut()?.finish()?;
        self.free.extend(self.busy.pop_front());
        Some(ended)
    }
}

impl<S: Slot> Drop for Flight<S> {
    fn drop(&mut self) {
        // All are asked before the first is waited for.
        self.busy.iter_mut().for_each(S::cancel);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;

    /// A system that ends operations when a test says so.
    #[derive(Debug, Default, Clone)]
    pub(crate) struct Script(Rc<RefCell<Story>>);

    #[derive(Debug, Default)]
    struct Story {
        /// What each operation became, in the order in which they began.
        ends: Vec<Option<Result<usize, io::ErrorKind>>>,
        refusal: Option<io::ErrorKind>,
        /// What the next operation becomes at once.
        at_once: Option<usize>,
        cancelled: Vec<usize>,
        dropped: Vec<usize>,
    }

    impl Script {
        /// So many slots of this system.
        pub(crate) fn slots<W>(&self, count: usize) -> Vec<Scripted<W>> {
            let slot = || Scripted { script: self.clone(), under_way: None };
            std::iter::repeat_with(slot).take(count).collect()
        }

        /// Ends the operation that began as the `index`th.
        pub(crate) fn end(&self, index: usize, result: Result<usize, io::ErrorKind>) {
            self.0.borrow_mut().ends[index] = Some(result);
        }

        /// Ends the next operation when it begins.
        pub(crate) fn end_at_once(&self, bytes: usize) {
            self.0.borrow_mut().at_once = Some(bytes);
        }

        /// Refuses to begin the next operation.
        pub(crate) fn refuse(&self, kind: io::ErrorKind) {
            self.0.borrow_mut().refusal = Some(kind);
        }

        /// How many began.
        pub(crate) fn begun(&self) -> usize {
            self.0.borrow().ends.len()
        }
    }

    /// A slot of that system.
    #[derive(Debug)]
    pub(crate) struct Scripted<W> {
        script: Script,
        under_way: Option<(usize, W)>,
    }

    impl<W> Slot for Scripted<W> {
        type Work = W;

        fn start(&mut self, work: W) -> Result<(), (io::Error, W)> {
            assert!(self.under_way.is_none(), "one at a time");
            let mut story = self.script.0.borrow_mut();
            if let Some(kind) = story.refusal.take() {
                return Err((kind.into(), work));
            }
            self.under_way = Some((story.ends.len(), work));
            let end = story.at_once.take().map(Ok);
            story.ends.push(end);
            Ok(())
        }

        fn has_ended(&self) -> bool {
            let ends = &self.script.0.borrow().ends;
            self.under_way.as_ref().is_some_and(|&(index, _)| ends[index].is_some())
        }

        fn finish(&mut self) -> Option<Ended<W>> {
            let index = self.under_way.as_ref()?.0;
            let result = self.script.0.borrow().ends[index]?.map_err(io::Error::from);
            let (_, work) = self.under_way.take()?;
            Some(Ended { work, result })
        }

        fn cancel(&mut self) {
            let index = self.under_way.as_ref().expect("only what is under way").0;
            self.script.0.borrow_mut().cancelled.push(index);
        }
    }

    impl<W> Drop for Scripted<W> {
        fn drop(&mut self) {
            self.script
                .0
                .borrow_mut()
                .dropped
                .extend(self.under_way.take().map(|(index, _)| index));
        }
    }

    #[test]
    fn operations_end_in_the_order_in_which_they_began() {
        let script = Script::default();
        let mut flight = Flight::new(script.slots(3));
        for work in ["a", "b", "c"] {
            flight.start(work).unwrap();
        }
        script.end(1, Ok(2));
        assert!(!flight.has_ended() && flight.finish_oldest().is_none(), "the first is under way");
        script.end(0, Ok(1));
        assert!(flight.has_ended());
        let mut next = || flight.finish_oldest().map(|ended| (ended.work, ended.result.unwrap()));
        assert_eq!([next(), next(), next()], [Some(("a", 1)), Some(("b", 2)), None]);
    }

    #[test]
    fn no_more_begin_than_there_are_slots() {
        let script = Script::default();
        let mut flight = Flight::new(script.slots(2));
        flight.start(1).unwrap();
        flight.start(2).unwrap();
        let (error, work) = flight.start(3).unwrap_err();
        assert_eq!((error.kind(), work), (io::ErrorKind::WouldBlock, 3));
        script.end(0, Ok(0));
        flight.finish_oldest().unwrap();
        flight.start(3).unwrap();
        assert!(flight.is_full());
    }

    #[test]
    fn what_was_refused_comes_back_and_leaves_its_slot_free() {
        let script = Script::default();
        let mut flight = Flight::new(script.slots(1));
        script.refuse(io::ErrorKind::OutOfMemory);
        let (error, work) = flight.start("work").unwrap_err();
        assert_eq!((error.kind(), work), (io::ErrorKind::OutOfMemory, "work"));
        assert!(flight.is_empty());
        flight.start("again").unwrap();
    }

    #[test]
    fn all_are_cancelled_before_the_first_is_given_up() {
        let script = Script::default();
        let mut flight = Flight::new(script.slots(3));
        flight.start(()).unwrap();
        flight.start(()).unwrap();
        drop(flight);
        let story = script.0.borrow();
        assert_eq!((&story.cancelled, &story.dropped), (&vec![0, 1], &vec![0, 1]));
    }
}
