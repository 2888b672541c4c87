//! Writes the lines of a command, each place by a thread of its own: a reader who does not read and a disk
//! that is slow or full stall no test. What waits is bounded; of what is more, whole texts are left out, and
//! that is said. Report and error stream keep their order, unless one of them is stuck.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use linerate::report::log::Severity;

/// A text to write.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) text: String,
    pub(super) severity: Severity,
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self { text, severity: Severity::Information }
    }
}

/// What takes texts.
pub(super) enum Output {
    /// As bytes.
    Bytes(Box<dyn Write + Send>),
    /// Each as an event, by how grave it is.
    #[allow(dead_code, reason = "only Windows has such a log")]
    Events(Report),
}

/// Writes an event.
type Report = Box<dyn FnMut(Severity, &str) -> io::Result<()> + Send>;

impl Output {
    pub(super) fn bytes(out: impl Write + Send + 'static) -> Self {
        Self::Bytes(Box::new(out))
    }
}

/// Where a text goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The standard output, or the log file.
    Report,
    /// The error stream.
    Errors,
}

/// What is to be said of a place.
#[derive(Debug)]
pub(super) enum Trouble<'a> {
    /// It takes nothing more.
    Begins(&'a io::Error),
    /// It takes texts again; so many were left out.
    Over(u64),
}

/// Makes a line for the error stream of a trouble.
type Tell = Box<dyn Fn(Place, Trouble<'_>) -> Text + Send + Sync>;

/// The two places and their threads, which begin with the first text: a daemon splits before.
pub(super) struct Writer {
    shared: Arc<Shared>,
    begun: Once,
}

impl Writer {
    pub(super) fn new(
        report: Output,
        errors: Output,
        tell: impl Fn(Place, Trouble<'_>) -> Text + Send + Sync + 'static,
    ) -> Self {
        let of = [Queue::new(report), Queue::new(errors)];
        let queues = Mutex::new(Queues { next: 0, of });
        let shared = Shared { queues, moved: Condvar::new(), tell: Box::new(tell) };
        Self { shared: Arc::new(shared), begun: Once::new() }
    }

    /// Has a text written, without waiting for it.
    pub(super) fn put(&self, place: Place, text: impl Into<Text>) {
        self.begun.call_once(|| {
            self.shared.begin(Place::Report);
            self.shared.begin(Place::Errors);
        });
        self.shared.put(place, text.into());
    }

    /// Waits until all is written, so long at most.
    pub(super) fn flush(&self, patience: Option<Duration>) {
        let Shared { moved, .. } = &*self.shared;
        let queues = self.shared.lock();
        // The guard is not needed afterwards, nor whether it was taken in time.
        match patience {
            None => drop(moved.wait_while(queues, |queues| queues.are_busy())),
            Some(most) => drop(moved.wait_timeout_while(queues, most, |q| q.are_busy())),
        }
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").finish_non_exhaustive()
    }
}

struct Shared {
    queues: Mutex<Queues>,
    moved: Condvar,
    tell: Tell,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(self: &Arc<Self>, place: Place) {
        let Some(sink) = self.lock().of[place as usize].sink.take() else { return };
        let shared = self.clone();
        let thread = thread::Builder::new().name("output".into());
        if thread.spawn(move || shared.write_all(place, sink)).is_err() {
            // There is nobody to write what would wait here.
            self.lock().of[place as usize].room_bytes = 0;
        }
    }

    fn put(&self, place: Place, text: Text) {
        let is_first_loss = self.lock().put(place, text);
        self.moved.notify_all();
        if is_first_loss {
            let unread = io::Error::other("nobody reads it");
            self.say(place, Trouble::Begins(&unread));
        }
    }

    fn say(&self, place: Place, trouble: Trouble<'_>) {
        // There is nowhere else to say that this stream is gone.
        if place == Place::Report || matches!(trouble, Trouble::Over(_)) {
            self.put(Place::Errors, (self.tell)(place, trouble));
        }
    }

    /// What the thread of a place does as long as the process lives.
    fn write_all(&self, place: Place, mut sink: Sink) {
        loop {
            let text = self.next(place);
            let written = sink.write(&text);
            let bytes = text.text.len();
            let (is_first_loss, over) = self.lock().on_written(place, bytes, written.is_ok());
            match &written {
                Err(error) if is_first_loss => self.say(place, Trouble::Begins(error)),
                _ if over > 0 => self.say(place, Trouble::Over(over)),
                _ => {}
            }
            self.lock().of[place as usize].writing = None;
            self.moved.notify_all();
        }
    }

    /// Waits for the next text of a place and for its turn.
    fn next(&self, place: Place) -> Text {
        let mut queues = self.lock();
        loop {
            if let Some(text) = queues.take(place) {
                return text;
            }
            queues = if queues.of[place as usize].waiting.is_empty() {
                self.moved.wait(queues).unwrap_or_else(PoisonError::into_inner)
            } else {
                let waited = self.moved.wait_timeout(queues, STUCK);
                waited.unwrap_or_else(PoisonError::into_inner).0
            };
        }
    }
}

/// What waits, in the order in which it came.
struct Queues {
    next: u64,
    of: [Queue; 2],
}

struct Queue {
    /// Until its thread has it.
    sink: Option<Sink>,
    waiting: VecDeque<(u64, Text)>,
    bytes: usize,
    room_bytes: usize,
    /// The number of the text that is being written, and since when.
    writing: Option<(u64, Instant)>,
    left_out: u64,
}

impl Queue {
    fn new(out: Output) -> Self {
        Self {
            sink: Some(Sink { out, is_torn: false }),
            waiting: VecDeque::new(),
            bytes: 0,
            room_bytes: MOST_BYTES,
            writing: None,
            left_out: 0,
        }
    }

    fn oldest(&self) -> Option<u64> {
        let writing = self.writing.map(|(number, _)| number);
        writing.or_else(|| self.waiting.front().map(|(number, _)| *number))
    }

    fn is_stuck(&self) -> bool {
        self.writing.is_some_and(|(_, since)| since.elapsed() >= STUCK)
    }
}

impl Queues {
    fn are_busy(&self) -> bool {
        self.of.iter().any(|queue| queue.oldest().is_some())
    }

    /// Takes a text in, if there is room. Whether it is the first that is left out.
    fn put(&mut self, place: Place, text: Text) -> bool {
        let queue = &mut self.of[place as usize];
        // One that is larger than all room is written, too.
        if queue.bytes >= queue.room_bytes {
            queue.left_out += 1;
            return queue.left_out == 1;
        }
        queue.bytes += text.text.len();
        queue.waiting.push_back((self.next, text));
        self.next += 1;
        false
    }

    /// The next text of a place, once all that came before it is written or stuck.
    fn take(&mut self, place: Place) -> Option<Text> {
        let other = &self.of[1 - place as usize];
        let (before, is_stuck) = (other.oldest(), other.is_stuck());
        let queue = &mut self.of[place as usize];
        let number = queue.waiting.front()?.0;
        if before.is_some_and(|before| before < number) && !is_stuck {
            return None;
        }
        let (_, text) = queue.waiting.pop_front()?;
        queue.writing = Some((number, Instant::now()));
        Some(text)
    }

    /// Whether the first text was left out, and how many were, if that is over.
    fn on_written(&mut self, place: Place, bytes: usize, is_written: bool) -> (bool, u64) {
        let queue = &mut self.of[place as usize];
        queue.bytes -= bytes;
        if !is_written {
            queue.left_out += 1;
            return (queue.left_out == 1, 0);
        }
        // Who reads slowly is not told of every text between two others.
        let is_over = queue.waiting.is_empty();
        (false, if is_over { std::mem::take(&mut queue.left_out) } else { 0 })
    }
}

/// A place, as what is written to it sees it.
struct Sink {
    out: Output,
    /// Its last line broke off.
    is_torn: bool,
}

impl Sink {
    /// Writes a whole text, beginning on a line of its own. A reader who has gone wants nothing more,
    /// which is no error.
    fn write(&mut self, text: &Text) -> io::Result<()> {
        let written = match &mut self.out {
            Output::Bytes(out) => write_text(out, &mut self.is_torn, &text.text),
            Output::Events(report) => report(text.severity, text.text.trim_end()),
        };
        match written {
            Err(error) if has_no_reader(&error) => Ok(()),
            other => other,
        }
    }
}

/// Whoever read it has gone, which is no error.
pub(super) fn has_no_reader(error: &io::Error) -> bool {
    const PIPE_NOT_CONNECTED: i32 = 233; // Windows has several numbers for it.
    let is_of_windows = cfg!(windows) && error.raw_os_error() == Some(PIPE_NOT_CONNECTED);
    error.kind() == ErrorKind::BrokenPipe || is_of_windows
}

fn write_text(out: &mut impl Write, is_torn: &mut bool, text: &str) -> io::Result<()> {
    if *is_torn {
        write_bytes(out, is_torn, b"\n")?;
    }
    write_bytes(out, is_torn, text.as_bytes())?;
    patiently(|| out.flush())
}

fn write_bytes(out: &mut impl Write, is_torn: &mut bool, mut rest: &[u8]) -> io::Result<()> {
    while !rest.is_empty() {
        match patiently(|| out.write(rest))? {
            0 => return Err(ErrorKind::WriteZero.into()),
            written => {
                *is_torn = rest[written - 1] != b'\n';
                rest = &rest[written..];
            }
        }
    }
    *is_torn = false;
    Ok(())
}

/// Tries again what another process made non-blocking, as those do that share a terminal or a pipe.
fn patiently<T>(mut work: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match work() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(PAUSE),
            other => return other,
        }
    }
}

/// What may wait for a place before more is left out.
const MOST_BYTES: usize = 16 << 20;
/// A text that takes longer is not waited for by those after it that go elsewhere.
const STUCK: Duration = Duration::from_millis(200);
const PAUSE: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Takes bytes as its list says, and everything once that is at its end.
    struct Scripted(VecDeque<io::Result<usize>>, mpsc::Sender<Vec<u8>>);

    impl Write for Scripted {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let most = self.0.pop_front().unwrap_or(Ok(usize::MAX))?.min(bytes.len());
            let _ = self.1.send(bytes[..most].to_vec());
            Ok(most)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Takes nothing until it is told to.
    struct Stuck(mpsc::Receiver<()>, mpsc::Sender<Vec<u8>>);

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            let _ = self.1.send(bytes.to_vec());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn tell(place: Place, trouble: Trouble<'_>) -> Text {
        format!("{place:?} {trouble:?}\n").into()
    }

    fn writer(report: impl Write + Send + 'static, errors: impl Write + Send + 'static) -> Writer {
        Writer::new(Output::bytes(report), Output::bytes(errors), tell)
    }

    fn all(written: &mpsc::Receiver<Vec<u8>>) -> String {
        String::from_utf8(written.try_iter().flatten().collect()).expect("only texts")
    }

    fn put(writer: &Writer, place: Place, text: &str) {
        writer.put(place, String::from(text));
    }

    #[test]
    fn a_full_disk_is_said_once_and_the_next_line_begins_anew() {
        let full = || Err(ErrorKind::StorageFull.into());
        let script = VecDeque::from([Ok(3), full(), full(), Ok(usize::MAX)]);
        let ((out, report), (err, errors)) = (mpsc::channel(), mpsc::channel());
        let writer = writer(Scripted(script, out), Scripted(VecDeque::new(), err));
        for text in ["first\n", "second\n", "third\n", "fourth\n"] {
            put(&writer, Place::Report, text);
        }
        writer.flush(None);
        assert_eq!(all(&report), "fir\nthird\nfourth\n");
        let said = all(&errors);
        let (begins, over) = said.trim_end().split_once('\n').expect("two lines");
        assert!(begins.starts_with("Report Begins") && over == "Report Over(2)", "{said}");
    }

    #[test]
    fn one_that_is_stuck_holds_up_nobody_and_has_a_bound() {
        let ((out, report), (err, errors)) = (mpsc::channel(), mpsc::channel());
        let (go, may_go) = mpsc::channel();
        let writer = writer(Stuck(may_go, out), Scripted(VecDeque::new(), err));
        let large = "x".repeat(MOST_BYTES / 2) + "\n";
        for _ in 0..4 {
            put(&writer, Place::Report, &large);
        }
        put(&writer, Place::Errors, "it goes on\n");
        let said: Vec<_> = (0..2).map(|_| errors.recv().expect("it is not stuck")).collect();
        let said = String::from_utf8(said.concat()).expect("only texts");
        assert!(said.starts_with("Report Begins") && said.ends_with("it goes on\n"), "{said}");
        assert!(said.contains("nobody reads it"), "{said}");
        writer.flush(Some(Duration::from_millis(1)));
        assert_eq!(report.try_iter().count(), 0);
        drop(go);
        writer.flush(None);
        assert_eq!(report.try_iter().count(), 2, "the others were left out");
        assert_eq!(all(&errors), "Report Over(2)\n");
    }

    #[test]
    fn report_and_errors_keep_their_order() {
        let (out, written) = mpsc::channel();
        let sink = || Scripted(VecDeque::new(), out.clone());
        let writer = writer(sink(), sink());
        let mut expected = String::new();
        for number in 0..500 {
            let place = if number % 3 == 0 { Place::Errors } else { Place::Report };
            let line = format!("{number}\n");
            put(&writer, place, &line);
            expected += &line;
        }
        writer.flush(None);
        assert_eq!(all(&written), expected);
    }

    #[test]
    fn a_reader_who_has_gone_or_is_slow_is_no_error() {
        let kinds = [ErrorKind::WouldBlock, ErrorKind::Interrupted, ErrorKind::BrokenPipe];
        let script = kinds.map(|kind| Err(kind.into())).into();
        let ((out, report), (err, errors)) = (mpsc::channel(), mpsc::channel());
        let writer = writer(Scripted(script, out), Scripted(VecDeque::new(), err));
        put(&writer, Place::Report, "nobody\n");
        put(&writer, Place::Report, "somebody\n");
        writer.flush(None);
        assert_eq!((all(&report).as_str(), all(&errors).as_str()), ("somebody\n", ""));
    }

    #[test]
    fn an_event_has_its_text_and_how_grave_it_is() {
        let ((out, _report), (event, events)) = (mpsc::channel(), mpsc::channel());
        let mut left = 1;
        let log = Output::Events(Box::new(move |severity, text: &str| {
            let _ = event.send((severity, text.to_owned()));
            left -= 1;
            if left == 0 { Err(ErrorKind::Other.into()) } else { Ok(()) }
        }));
        let report = Output::bytes(Scripted(VecDeque::new(), out));
        let writer = Writer::new(report, log, tell);
        let text = |text: &str, severity| Text { text: text.into(), severity };
        writer.put(Place::Errors, text("it does not work\n", Severity::Error));
        writer.put(Place::Errors, text("it goes on\n", Severity::Information));
        writer.flush(None);
        let events: Vec<_> = events.try_iter().collect();
        let told = |text: &str, severity| (severity, text.to_owned());
        let over = "Errors Over(1)";
        assert_eq!(
            events,
            [
                told("it does not work", Severity::Error),
                told("it goes on", Severity::Information),
                told(over, Severity::Information),
            ]
        );
    }
}
