//! A socket of the data plane: everything on it is an overlapped operation, several of which are under way
//! at a time. One thread uses it; another can end its waits.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::windows::io::{AsSocket, BorrowedSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::backlog::Backlog;
use crate::calls::{Envelope, Late, Letter, MOST_BLOCKS, Out, Room, send_letter};
use crate::event::{Event, Interest, Timer, Wake, wait_for};
use crate::flight::Flight;
use crate::incoming::Incoming;
use crate::operation::Operation;
use crate::options::{
    can_cut, ideal_backlog, raw, set_blocking, set_segment_size, socket_error, unread_bytes,
};
use crate::outgoing::Outgoing;

/// A connected or bound socket and what is under way on it. Dropping it ends that, before the socket can
/// be closed.
#[derive(Debug)]
pub struct Channel<S: AsSocket> {
    out: RefCell<Outgoing<Operation<Out>>>,
    backlog: RefCell<Backlog>,
    bytes_in: RefCell<Incoming<Operation<Vec<u8>>>>,
    messages_in: RefCell<Flight<Operation<Room>>>,
    can_send: Arc<Event>,
    can_receive: Arc<Event>,
    timer: Timer,
    way: Way,
    // Closed, if by this, after the operations are gone.
    socket: S,
}

/// Where messages go.
#[derive(Debug)]
enum Way {
    /// To the peer that the socket is connected to.
    Connected,
    /// Nowhere: others send.
    Nowhere,
    /// To a peer of an unconnected socket.
    Along(Route, RefCell<Arc<Envelope>>),
}

/// How messages leave an unconnected socket. Both addresses are of its family.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    /// Where to.
    pub to: SocketAddr,
    /// The local address that they come from; none leaves it to the system.
    pub from: Option<SocketAddr>,
}

impl Route {
    fn envelope(&self, segment_bytes: Option<u16>) -> Envelope {
        Envelope::new(self.to, self.from, segment_bytes)
    }

    /// Sends one datagram, at once.
    ///
    /// # Errors
    /// What the system says.
    pub fn send(&self, socket: BorrowedSocket<'_>, bytes: &[u8]) -> io::Result<()> {
        send_letter(socket, &self.envelope(None), bytes)
    }
}

/// What came as one message.
#[derive(Debug, Clone, Copy)]
pub struct Message {
    /// Bytes of it that were written to its slot.
    pub len: usize,
    /// Bytes of each of the datagrams that it was joined from, but for the last.
    pub segment: usize,
    /// Its sender, where the system tells.
    pub from: Option<SocketAddr>,
    /// The local address it was sent to, if the socket was asked to tell; the port is 0.
    pub to: Option<SocketAddr>,
}

impl<S: AsSocket> Channel<S> {
    /// Nothing is under way on it yet.
    ///
    /// # Errors
    /// When the system gives no events or timer.
    pub fn new(socket: S) -> io::Result<Self> {
        Self::with(socket, Way::Connected)
    }

    /// The same on a UDP socket that is not connected, and that other channels may have too. What it sends
    /// goes along the route; without one it sends nothing.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn unconnected(socket: S, route: Option<Route>) -> io::Result<Self> {
        let along = |route: Route| Way::Along(route, RefCell::new(route.envelope(None).into()));
        Self::with(socket, route.map_or(Way::Nowhere, along))
    }

    fn with(socket: S, way: Way) -> io::Result<Self> {
        set_blocking(socket.as_socket())?;
        let (can_send, can_receive) = (Arc::new(Event::new()?), Arc::new(Event::new()?));
        let handle = raw(socket.as_socket());
        let out = (0..MOST_OUT).map(|_| Operation::new(handle, can_send.clone()));
        let bytes_in = (0..MOST_IN).map(|_| Operation::new(handle, can_receive.clone()));
        let messages_in = (0..MOST_ROOMS).map(|_| Operation::new(handle, can_receive.clone()));
        Ok(Self {
            out: RefCell::new(Outgoing::new(out)),
            backlog: RefCell::new(Backlog::new(Instant::now())),
            bytes_in: RefCell::new(Incoming::new(bytes_in)),
            messages_in: RefCell::new(Flight::new(messages_in)),
            can_send,
            can_receive,
            timer: Timer::new()?,
            way,
            socket,
        })
    }

    /// The socket, for all that is no data.
    pub const fn socket(&self) -> &S {
        &self.socket
    }

    /// Blocks until another operation can begin (`Write`), something has come (`Read`), the wake was used or
    /// the time is over; may return early.
    ///
    /// # Errors
    /// When the system refuses to wait.
    pub fn wait(
        &self,
        interest: Interest,
        wake: &Wake,
        timeout: Option<Duration>,
    ) -> io::Result<()> {
        let (is_ready, event) = match interest {
            Interest::Read => (self.has_some(), Some(&*self.can_receive)),
            Interest::Write => (self.has_room(), Some(&*self.can_send)),
            Interest::Nothing => (false, None),
        };
        match event {
            _ if is_ready => Ok(()),
            Some(event) => wait_for(&[wake.event(), event], &self.timer, timeout),
            None => wait_for(&[wake.event()], &self.timer, timeout),
        }
    }

    /// Blocks for this time, whatever happens.
    pub fn rest(&self, time: Duration) {
        if wait_for(&[], &self.timer, Some(time)).is_err() {
            std::thread::sleep(time);
        }
    }

    /// Sends at most `most` bytes of at most `count` repetitions of a block, from `start` in the first. They
    /// count as sent when the system has them to send.
    ///
    /// # Errors
    /// Of kind `WouldBlock` while as much is under way as may be; else why the connection is over.
    pub fn send_blocks(
        &self,
        block: &Arc<[u8]>,
        count: usize,
        start: usize,
        most: usize,
    ) -> io::Result<usize> {
        let len = (block.len() * count.min(MOST_BLOCKS) - start).min(self.room(most)?);
        self.begin(|_| Out::Blocks { block: block.clone(), start, len })
    }

    /// Sends at most all of these bytes.
    ///
    /// # Errors
    /// As for [`send_blocks`](Self::send_blocks).
    pub fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        let len = self.room(bytes.len())?;
        self.begin(|spare| Out::Bytes { buffer: copy_of(&bytes[..len], spare), len })
    }

    /// Sends at most `most` bytes of a file, from `offset`, without reading them; 0 at its end.
    ///
    /// # Errors
    /// As for [`send_blocks`](Self::send_blocks), and what the file's system says.
    pub fn send_file(&self, file: &Arc<File>, offset: u64, most: usize) -> io::Result<usize> {
        let left = file.metadata()?.len().saturating_sub(offset);
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        if left == 0 {
            return Ok(0);
        }
        // Nothing is promised of the order of several, and a desktop Windows works on two in all.
        self.out.borrow_mut().send_singly();
        let len = left.min(self.room(most)?);
        self.begin(|_| Out::File { file: file.clone(), offset, len })
    }

    /// Why what counts as sent was not, or what the socket has to say, once.
    ///
    /// # Errors
    /// When the socket cannot be asked.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        match self.out.borrow_mut().take_error() {
            Some(error) => Ok(Some(late(error))),
            None => socket_error(self.socket.as_socket()),
        }
    }

    /// Bytes that count as sent and are not in the socket's own buffer yet.
    pub fn pending_bytes(&self) -> u64 {
        self.out.borrow_mut().pending()
    }

    /// Takes at most `most` bytes into the beginning of the buffer, or gives one of its length with them
    /// for it; 0 at the end of the connection.
    ///
    /// # Errors
    /// Of kind `WouldBlock` when nothing is there; else why the connection is over.
    pub fn receive(&self, buffer: &mut Vec<u8>, most: usize) -> io::Result<usize> {
        self.bytes_in.borrow_mut().receive(buffer, most)
    }

    /// Bytes that have come and were not received.
    pub fn unread_bytes(&self) -> Option<u64> {
        let waiting = self.bytes_in.borrow_mut().waiting();
        Some(waiting + unread_bytes(self.socket.as_socket())?)
    }

    /// Sends the first `len` bytes of the buffer as messages of `message_bytes`, the last as long as it is,
    /// and returns how many the system has to send. A buffer that is one message may be exchanged for an
    /// earlier one.
    ///
    /// # Errors
    /// Of kind `WouldBlock` while as much is under way as may be; else why this message or an earlier one
    /// was not sent.
    pub fn send_messages(
        &self,
        buffer: &mut Vec<u8>,
        len: usize,
        message_bytes: usize,
    ) -> io::Result<usize> {
        let mut out = self.out.borrow_mut();
        if len <= message_bytes {
            let mut is_exchanged = false;
            let sent = out.send(|spare| {
                is_exchanged = true;
                self.message(exchange(buffer, spare), len)
            });
            if let (Err(_), true) = (&sent, is_exchanged)
                && let Some(own) = out.take_spare().and_then(Out::into_buffer)
            {
                *buffer = own;
            }
            return sent.map(|_| 1);
        }
        let mut begun = 0;
        for message in buffer[..len].chunks(message_bytes) {
            match out.send(|spare| self.message(copy_of(message, spare), message.len())) {
                Ok(_) => begun += 1,
                Err(error) if begun == 0 => return Err(error),
                // What is wrong is told again, or passes.
                Err(_) => break,
            }
        }
        Ok(begun)
    }

    /// Lets one message be many datagrams of so many bytes, which the system or the device cuts; none ends
    /// it. Since Windows 10 2004.
    ///
    /// # Errors
    /// Of kind `Unsupported` where the system lacks it.
    pub fn set_segment_size(&self, bytes: Option<u16>) -> io::Result<()> {
        match &self.way {
            Way::Along(route, envelope) => {
                can_cut(self.socket.as_socket())?;
                envelope.replace(route.envelope(bytes).into());
                Ok(())
            }
            _ => set_segment_size(self.socket.as_socket(), bytes.unwrap_or(0).into()),
        }
    }

    /// Receives a message into each slot of `slot_bytes` of the buffer as long as there are some, tells of
    /// each, and returns how many.
    ///
    /// # Errors
    /// Of kind `WouldBlock` when nothing is there; else what the network said of an earlier message.
    pub fn recv_messages(
        &self,
        buffer: &mut [u8],
        slot_bytes: usize,
        mut tell: impl FnMut(usize, Message),
    ) -> io::Result<usize> {
        let mut flight = self.messages_in.borrow_mut();
        if !flight.has_ended() {
            while !flight.is_full() {
                match flight.start(Room::new(slot_bytes)) {
                    Err((error, _)) if flight.is_empty() => return Err(error),
                    Err(_) => break,
                    Ok(()) => {}
                }
            }
        }
        let mut received = 0;
        for slot in buffer.chunks_exact_mut(slot_bytes) {
            let Some(ended) = flight.finish_oldest() else { break };
            let room = ended.work;
            let result = ended.result.map(|len| {
                let len = len.min(slot.len()).min(room.buffer.len());
                slot[..len].copy_from_slice(&room.buffer[..len]);
                let segment = room.segment().unwrap_or(len);
                Message { len, segment, from: room.from(), to: room.to() }
            });
            // If the system takes no further room now, there is one less until it is empty.
            let _ = flight.start(room);
            match result {
                Ok(message) => tell(received, message),
                Err(error) if received == 0 => return Err(error),
                // Nothing of it is known any more but that a message is missing.
                Err(_) => break,
            }
            received += 1;
        }
        if received > 0 { Ok(received) } else { Err(io::ErrorKind::WouldBlock.into()) }
    }

    /// A message of the first bytes of the buffer.
    fn message(&self, buffer: Vec<u8>, len: usize) -> Out {
        match &self.way {
            Way::Along(_, envelope) => {
                Out::Letter(Letter::new(buffer, len, envelope.borrow().clone()).into())
            }
            // Of a socket that has no peer the system says so.
            Way::Connected | Way::Nowhere => Out::Bytes { buffer, len },
        }
    }

    /// How many of so many bytes may go now.
    fn room(&self, most: usize) -> io::Result<usize> {
        let mut out = self.out.borrow_mut();
        let (pending, sent) = (out.pending(), out.sent());
        let mut backlog = self.backlog.borrow_mut();
        backlog.adapt(Instant::now(), sent, || ideal_backlog(self.socket.as_socket()));
        match backlog.room(pending) {
            // There is an error to be told.
            _ if out.has_failed() => Ok(most),
            Some(room) => Ok(most.min(room)),
            None => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn begin(&self, load: impl FnOnce(Option<Out>) -> Out) -> io::Result<usize> {
        let mut out = self.out.borrow_mut();
        match out.take_error() {
            Some(error) => Err(late(error)),
            None => out.send(load),
        }
    }

    fn has_room(&self) -> bool {
        let mut out = self.out.borrow_mut();
        let is_within = self.backlog.borrow().room(out.pending()).is_some();
        out.has_failed() || out.has_room() && is_within
    }

    fn has_some(&self) -> bool {
        let messages = self.messages_in.borrow();
        self.bytes_in.borrow_mut().has_some() && (messages.is_empty() || messages.has_ended())
    }
}

/// What became of bytes that counted as sent: whatever it is, they cannot be sent again in their place.
fn late(error: io::Error) -> io::Error {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, TimedOut};
    match error.kind() {
        ConnectionReset | ConnectionAborted | TimedOut => error,
        _ => io::Error::other(Late(error)),
    }
}

/// These bytes, in the buffer of something sent earlier if there is one.
fn copy_of(bytes: &[u8], spare: Option<Out>) -> Vec<u8> {
    let mut buffer = spare.and_then(Out::into_buffer).unwrap_or_default();
    buffer.clear();
    buffer.extend_from_slice(bytes);
    buffer
}

/// This buffer, in whose place is then the one of an earlier exchange.
fn exchange(buffer: &mut Vec<u8>, spare: Option<Out>) -> Vec<u8> {
    let other = spare.and_then(Out::into_buffer).filter(|other| other.len() == buffer.len());
    let other = other.unwrap_or_else(|| buffer.clone());
    std::mem::replace(buffer, other)
}

/// Operations under way at a time: enough that the system never waits for the next.
const MOST_OUT: usize = 16;
const MOST_IN: usize = 2;
const MOST_ROOMS: usize = 8;

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};

    use super::*;

    const LONG: Duration = Duration::from_secs(30);

    fn tcp() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near, listener.accept().unwrap().0)
    }

    fn udp() -> (UdpSocket, UdpSocket) {
        let [near, far] = [(); 2].map(|()| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
        near.connect(far.local_addr().unwrap()).unwrap();
        far.connect(near.local_addr().unwrap()).unwrap();
        (near, far)
    }

    /// Goes on until something is done or fails.
    fn again<S: AsSocket, T>(
        channel: &Channel<S>,
        interest: Interest,
        mut work: impl FnMut() -> io::Result<T>,
    ) -> io::Result<T> {
        let wake = Wake::new()?;
        loop {
            match work() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    channel.wait(interest, &wake, Some(LONG))?;
                }
                done => return done,
            }
        }
    }

    #[test]
    fn a_stream_arrives_whole_and_in_order_whatever_is_under_way() {
        let (near, far) = tcp();
        let block: Arc<[u8]> = (0..10_007u32).map(|n| n as u8).collect();
        let all = 300 * block.len();
        let sending = std::thread::spawn({
            let block = block.clone();
            move || {
                let channel = Channel::new(near).unwrap();
                let mut sent = 0;
                while sent < all {
                    let send = || channel.send_blocks(&block, 8, sent % block.len(), all - sent);
                    sent += again(&channel, Interest::Write, send).unwrap();
                }
                // All of it is to leave before the connection ends.
                while channel.pending_bytes() > 0 {
                    channel.rest(Duration::from_millis(1));
                }
            }
        });
        let channel = Channel::new(far).unwrap();
        let (mut received, mut buffer) = (Vec::new(), vec![0; 65_536]);
        loop {
            // Odd limits now and then, as at the end of a test.
            let most = if received.len() % 3 == 0 { 777 } else { usize::MAX };
            let receive = || channel.receive(&mut buffer, most);
            match again(&channel, Interest::Read, receive).unwrap() {
                0 => break,
                len => received.extend_from_slice(&buffer[..len]),
            }
        }
        sending.join().unwrap();
        assert_eq!(received.len(), all);
        assert!(received.chunks(block.len()).all(|chunk| chunk == &*block));
    }

    #[test]
    fn what_is_under_way_is_given_up_with_the_channel() {
        let (near, far) = tcp();
        let block: Arc<[u8]> = vec![7; 1 << 20].into();
        let sender = Channel::new(&near).unwrap();
        // Nobody reads: it fills up.
        while sender.send_blocks(&block, 8, 0, 8 << 20).is_ok() {}
        drop(sender);
        let receiver = Channel::new(&near).unwrap();
        let blocked = receiver.receive(&mut vec![0; 1000], 1000).unwrap_err();
        assert_eq!(blocked.kind(), io::ErrorKind::WouldBlock);
        drop(receiver);
        // What is left of the connection then is the system's to say.
        drop(far);
    }

    #[test]
    fn what_lay_in_the_socket_comes_with_the_first_call() {
        let (near, far) = tcp();
        (&near).write_all(b"12345").unwrap();
        while far.peek(&mut [0; 8]).unwrap() < 5 {}
        let channel = Channel::new(far).unwrap();
        assert_eq!(channel.unread_bytes(), Some(5));
        assert_eq!(channel.receive(&mut vec![0; 8], 8).unwrap(), 5);
        let (near, far) = udp();
        near.send(b"123").unwrap();
        while far.peek(&mut [0; 8]).unwrap() < 3 {}
        let channel = Channel::new(far).unwrap();
        assert_eq!(
            channel.recv_messages(&mut [0; 8], 8, |_, message| assert_eq!(message.len, 3)).unwrap(),
            1
        );
    }

    #[test]
    fn a_wait_ends_by_data_by_a_wake_and_in_time() {
        let (near, far) = tcp();
        let (channel, wake) = (Channel::new(near).unwrap(), Wake::new().unwrap());
        let mut buffer = vec![0; 100];
        assert!(channel.receive(&mut buffer, 100).is_err());
        wake.wake();
        channel.wait(Interest::Read, &wake, Some(LONG)).unwrap();
        let began = Instant::now();
        channel.wait(Interest::Read, &wake, Some(Duration::from_millis(5))).unwrap();
        assert!(began.elapsed() >= Duration::from_millis(5));
        (&far).write_all(b"12345").unwrap();
        let receive = || channel.receive(&mut buffer, 100);
        assert_eq!(again(&channel, Interest::Read, receive).unwrap(), 5);
        assert_eq!(&buffer[..5], b"12345");
    }

    #[test]
    fn a_file_arrives_from_any_offset_and_ends() {
        let path = std::env::temp_dir().join(format!("linerate-channel-{}", std::process::id()));
        let content: Vec<u8> = (0..100_000u32).map(|n| (n * 7) as u8).collect();
        std::fs::write(&path, &content).unwrap();
        let file = Arc::new(File::open(&path).unwrap());
        let (near, mut far) = tcp();
        let channel = Channel::new(near).unwrap();
        for (offset, most, expected) in
            [(0, 1000, 1000), (99_000, 5000, 1000), (100_000, 10, 0), (200_000, 10, 0)]
        {
            let send = || channel.send_file(&file, offset, most);
            assert_eq!(again(&channel, Interest::Write, send).unwrap(), expected, "{offset}");
        }
        let mut arrived = vec![0; 2000];
        far.read_exact(&mut arrived).unwrap();
        assert_eq!(arrived, [&content[..1000], &content[99_000..]].concat());
        drop(file);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn messages_keep_their_bounds_and_their_order() {
        let (near, far) = udp();
        let (out, inwards) = (Channel::new(near).unwrap(), Channel::new(far).unwrap());
        let mut message = b"aaabbbcccd".to_vec();
        let (len, mut sent) = (message.len(), 0);
        while sent < 4 {
            let mut rest = message[3 * sent..].to_vec();
            let left = len - 3 * sent;
            let send = || out.send_messages(&mut rest, left, 3);
            sent += again(&out, Interest::Write, send).unwrap();
        }
        // A row of one message goes without a copy, and the buffer that is there then is alike.
        for _ in 0..3 {
            let send = || out.send_messages(&mut message, len, len);
            assert_eq!(again(&out, Interest::Write, send).unwrap(), 1);
            assert_eq!(message, b"aaabbbcccd");
        }
        let (mut found, mut buffer) = (Vec::new(), vec![0; 4 * 16]);
        while found.len() < 7 {
            let mut lens = Vec::new();
            let tell = |_, message: Message| lens.push(message.len);
            match inwards.recv_messages(&mut buffer, 16, tell) {
                Ok(count) => {
                    assert_eq!(count, lens.len());
                    let slots = buffer.chunks(16).zip(&lens);
                    found.extend(slots.map(|(slot, &len)| slot[..len].to_vec()));
                }
                Err(error) => {
                    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                    inwards.wait(Interest::Read, &Wake::new().unwrap(), Some(LONG)).unwrap();
                }
            }
        }
        let row = b"aaabbbcccd".as_slice();
        assert_eq!(found, [b"aaa", b"bbb", b"ccc", b"d".as_slice(), row, row, row]);
    }

    #[test]
    fn one_socket_hears_many_and_answers_each() {
        let at = |socket: &UdpSocket| socket.local_addr().unwrap();
        let [shared, one, other] =
            [(); 3].map(|()| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
        crate::request_destination(shared.as_socket(), false).unwrap();
        one.send_to(b"one", at(&shared)).unwrap();
        other.send_to(b"other", at(&shared)).unwrap();
        let reader = Channel::unconnected(&shared, None).unwrap();
        let (mut heard, mut buffer) = (Vec::new(), vec![0; 4 * 16]);
        while heard.len() < 2 {
            let tell = |_, message: Message| heard.push((message.len, message.from, message.to));
            if reader.recv_messages(&mut buffer, 16, tell).is_err() {
                reader.wait(Interest::Read, &Wake::new().unwrap(), Some(LONG)).unwrap();
            }
        }
        let here = Some((Ipv4Addr::LOCALHOST, 0).into());
        assert_eq!(heard, [(3, Some(at(&one)), here), (5, Some(at(&other)), here)]);
        for near in [&one, &other] {
            let route = Route { to: at(near), from: here };
            let writer = Channel::unconnected(&shared, Some(route)).unwrap();
            let mut message = b"answer".to_vec();
            let send = || writer.send_messages(&mut message, 6, 6);
            assert_eq!(again(&writer, Interest::Write, send).unwrap(), 1);
            route.send(shared.as_socket(), b"and another").unwrap();
            let lens = [6, 11];
            assert_eq!(
                lens.map(|_| near.recv_from(&mut buffer).unwrap()),
                lens.map(|len| (len, at(&shared)))
            );
        }
    }

    #[test]
    fn a_datagram_that_is_too_long_is_cut() {
        let (near, far) = udp();
        let channel = Channel::new(far).unwrap();
        near.send(b"longer than the slot").unwrap();
        near.send(b"short").unwrap();
        let (mut lens, mut buffer) = (Vec::new(), vec![0; 6]);
        while lens.len() < 2 {
            let receive =
                || channel.recv_messages(&mut buffer, 6, |_, message| lens.push(message.len));
            again(&channel, Interest::Read, receive).unwrap();
        }
        assert_eq!(lens, [6, 5]);
    }

    #[test]
    fn a_connection_that_breaks_is_an_error_both_ways() {
        let (near, far) = tcp();
        let channel = Channel::new(near).unwrap();
        let (block, mut buffer): (Arc<[u8]>, _) = (vec![0; 1000].into(), vec![0; 1000]);
        // What it has not read resets the connection when it closes.
        again(&channel, Interest::Write, || channel.send_blocks(&block, 1, 0, 1000)).unwrap();
        while far.peek(&mut [0]).unwrap() == 0 {}
        drop(far);
        let receive = || channel.receive(&mut buffer, 1000);
        let end = again(&channel, Interest::Read, receive);
        assert!(end.is_err() || end.is_ok_and(|len| len == 0));
        let is_broken = (0..1000).any(|_| {
            let send = || channel.send_blocks(&block, 1, 0, 1000);
            again(&channel, Interest::Write, send).is_err()
        });
        assert!(is_broken);
    }
}
