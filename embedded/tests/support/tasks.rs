//! An executor for virtual time. A task is polled when somebody woke it and never else, so that a
//! wake-up which was not asked for stops everything; the clock goes on when nobody is awake.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

use super::clock;

/// All tasks of a world, in the order in which they get their turns.
#[derive(Default)]
pub(crate) struct Tasks {
    tasks: Vec<Task>,
    /// Turns since the clock went on.
    turns: usize,
}

/// Wakes its task.
#[derive(Debug, Clone)]
pub(crate) struct Bell(Arc<Flag>);

struct Task {
    future: Pin<Box<dyn Future<Output = ()>>>,
    flag: Arc<Flag>,
    waker: Waker,
}

#[derive(Debug)]
struct Flag(AtomicBool);

impl Tasks {
    /// Adds a task, which is awake.
    pub(crate) fn spawn(&mut self, future: impl Future<Output = ()> + 'static) -> Bell {
        let flag = Arc::new(Flag(AtomicBool::new(true)));
        let waker = Waker::from(Arc::clone(&flag));
        self.tasks.push(Task { future: Box::pin(future), flag: Arc::clone(&flag), waker });
        Bell(flag)
    }

    /// Gives a turn to everybody who is awake; where nobody is, lets the clock go on. `false` if nobody
    /// will ever be awake again.
    ///
    /// # Panics
    /// If somebody never sleeps.
    pub(crate) fn step(&mut self) -> bool {
        let mut is_anybody_awake = false;
        self.tasks.retain_mut(|Task { future, flag, waker }| {
            if !flag.0.swap(false, Ordering::Relaxed) {
                return true;
            }
            is_anybody_awake = true;
            self.turns += 1;
            future.as_mut().poll(&mut Context::from_waker(waker)).is_pending()
        });
        assert!(self.turns < MOST_TURNS, "somebody never sleeps");
        if !is_anybody_awake {
            self.turns = 0;
        }
        is_anybody_awake || clock::advance()
    }
}

impl Bell {
    pub(crate) fn ring(&self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Without the clock going on. One moment has a few frames for each of a few tasks.
const MOST_TURNS: usize = 1000;
