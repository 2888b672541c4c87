//! The same load on a server and on a bare loop: so much data, one way, by TCP or UDP. iperf3 brings it
//! to servers; to bare loops it comes from here, as their image's source says.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use linerate_tests::board::{Board, Measured};

/// What moves, and which way, as the board sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    ReceivedBytes,
    SentBytes,
    ReceivedDatagrams,
    SentDatagrams,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] =
        [Self::ReceivedBytes, Self::SentBytes, Self::ReceivedDatagrams, Self::SentDatagrams];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ReceivedBytes => "received byte",
            Self::SentBytes => "sent byte",
            Self::ReceivedDatagrams => "received datagram",
            Self::SentDatagrams => "sent datagram",
        }
    }

    /// How many of them were measured.
    pub(crate) fn count(self, measured: &Measured) -> u64 {
        match self {
            Self::ReceivedBytes | Self::SentBytes => measured.bytes,
            Self::ReceivedDatagrams => measured.packets - measured.lost,
            Self::SentDatagrams => measured.packets,
        }
    }
}

/// Who moves it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Image {
    Server(&'static str),
    Bare(&'static str),
}

impl Image {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Server(name) | Self::Bare(name) => name,
        }
    }

    /// Moves about so many bytes or datagrams, those to the board at a rate; what the board measured
    /// of it.
    pub(crate) fn run(self, board: &Board<'_>, kind: Kind, count: u32, megabits: u32) -> Measured {
        match self {
            Self::Server(_) => by_iperf3(board, kind, count, megabits),
            Self::Bare(_) => match kind {
                Kind::ReceivedBytes => send_bytes(board, count),
                Kind::SentBytes => receive_bytes(board, count),
                Kind::ReceivedDatagrams => send_datagrams(board, count, megabits),
                Kind::SentDatagrams => receive_datagrams(board, count),
            },
        }
        board.measured(1).remove(0)
    }
}

fn by_iperf3(board: &Board<'_>, kind: Kind, count: u32, megabits: u32) {
    let (count, rate) = (count.to_string(), format!("{megabits}M"));
    let udp = ["-u", "-l", DATAGRAM, "-k", &count];
    board.run_client(&match kind {
        Kind::ReceivedBytes => vec!["-n", &count],
        Kind::SentBytes => vec!["-n", &count, "-R"],
        Kind::ReceivedDatagrams => [&udp[..], &["-b", &rate]].concat(),
        Kind::SentDatagrams => [&udp[..], &["-b", "0", "-R"]].concat(),
    });
}

fn send_bytes(board: &Board<'_>, count: u32) {
    let mut stream = connect(board);
    stream.write_all(&command(b'd', 0)).expect(TAKES);
    let block = [0; 128 << 10];
    let mut left = count as usize;
    while left > 0 {
        let bytes = left.min(block.len());
        stream.write_all(&block[..bytes]).expect(TAKES);
        left -= bytes;
    }
    stream.shutdown(Shutdown::Write).expect(TAKES);
    let _ = stream.read(&mut [0]);
}

fn receive_bytes(board: &Board<'_>, count: u32) {
    let mut stream = connect(board);
    stream.write_all(&command(b's', count)).expect(TAKES);
    let mut block = vec![0; 128 << 10];
    while stream.read(&mut block).expect(TAKES) > 0 {}
}

/// In the bursts of each millisecond that iperf3 sends.
fn send_datagrams(board: &Board<'_>, count: u32, megabits: u32) {
    let socket = udp(board);
    let mut datagram = [0; DATAGRAM_BYTES];
    datagram[0] = b'd';
    let began = Instant::now();
    let mut sent = 0;
    while sent < count {
        let bytes_due = began.elapsed().as_micros() * u128::from(megabits) / 8;
        let due = bytes_due / DATAGRAM_BYTES as u128;
        while u128::from(sent) < due && sent < count {
            // What finds no room is lost.
            let _ = socket.send(&datagram);
            sent += 1;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    // It may find no room, too.
    for _ in 0..10 {
        let _ = socket.send(&command(b'e', 0));
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn receive_datagrams(board: &Board<'_>, count: u32) {
    let socket = udp(board);
    socket.send(&command(b's', count)).expect(TAKES);
    socket.set_read_timeout(Some(PAUSE)).expect("it is more than nothing");
    let mut datagram = [0; DATAGRAM_BYTES];
    while socket.recv(&mut datagram).is_ok() {}
}

fn connect(board: &Board<'_>) -> TcpStream {
    // There is one connection at a time, and no line tells when it has left.
    std::thread::sleep(PAUSE);
    let stream = TcpStream::connect((board.host, board.port)).expect("the board listens");
    stream.set_nodelay(true).expect(TAKES);
    stream
}

fn udp(board: &Board<'_>) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("the loopback has ports");
    socket.connect((board.host, board.port)).expect("it is on the loopback");
    socket
}

fn command(kind: u8, number: u32) -> [u8; 5] {
    let [a, b, c, d] = number.to_le_bytes();
    [kind, a, b, c, d]
}

const TAKES: &str = "the board takes part";
const PAUSE: Duration = Duration::from_millis(300);
const DATAGRAM: &str = "1400";
const DATAGRAM_BYTES: usize = 1400;
