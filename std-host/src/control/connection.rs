//! The bytes of a control connection: reads as they come, writes as the connection takes them,
//! closes so that nothing sent is lost.

use std::io;
use std::time::Duration;

use linerate_core::protocol::results::OutputKind;
use linerate_core::session::{Exchange, Session, Transmit};
use socket2::SockRef;
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::TcpStream;

use super::MAX_STREAMS;
use super::trace::{Seen, Trace};
use crate::observe::{DebugLog, Detail};
use crate::report::ServerOutput;
use crate::sys::{self, KeepAlive};

/// Makes a fresh control connection prompt, and aware of a peer that has gone.
pub(crate) fn prepare(control: &TcpStream, keep_alive: KeepAlive, send_timeout: Option<Duration>) {
    let socket = SockRef::from(control);
    // All of these make a good connection better; one without them still works.
    let _ = control.set_nodelay(true);
    let _ = sys::set_keep_alive(&socket, keep_alive);
    let _ = sys::set_user_timeout(&socket, send_timeout.unwrap_or(USER_TIMEOUT));
}

pub(super) struct Connection {
    stream: TcpStream,
    buffer: Box<[u8]>,
    /// The server's output as it goes out, and how much of it went.
    output: Vec<u8>,
    output_sent: usize,
    /// The server's output as it came in.
    received: Vec<u8>,
    received_kind: Option<OutputKind>,
    /// What broke the connection for writing; the system says so only once.
    write_error: Option<io::Error>,
    debug: Option<Debug>,
}

/// What came on the control connection.
pub(super) enum Arrived {
    /// So many bytes, to be taken with `hand_over`.
    Bytes(usize),
    /// Its end, and what broke it if the other end did not close it.
    End(Option<io::Error>),
    /// Nothing after all.
    Nothing,
}

impl Connection {
    pub(super) fn new(stream: TcpStream, debug: Option<DebugLog>) -> Self {
        Self {
            stream,
            buffer: vec![0; READ_BYTES].into(),
            output: Vec::new(),
            output_sent: 0,
            received: Vec::new(),
            received_kind: None,
            write_error: None,
            debug: debug.map(|log| Debug { log, sent: Trace::new(), received: Trace::new() }),
        }
    }

    /// Sends what the session has to send, until something comes. Loses nothing if dropped.
    pub(super) async fn next<E: Exchange<MAX_STREAMS>>(
        &mut self,
        session: &mut Session<E, MAX_STREAMS>,
    ) -> Arrived {
        loop {
            let wants_to_write = self.write_error.is_none()
                && self.send(session).is_err_and(|error| would_block(&error));
            let interest = if wants_to_write {
                Interest::READABLE | Interest::WRITABLE
            } else {
                Interest::READABLE
            };
            let ready = match self.stream.ready(interest).await {
                Ok(ready) => ready,
                Err(error) => return Arrived::End(Some(error)),
            };
            if !ready.is_readable() && !ready.is_read_closed() {
                continue;
            }
            return match self.stream.try_read(&mut self.buffer) {
                Ok(0) => Arrived::End(
                    // Of a connection that the other end closed in order.
                    self.write_error.take().filter(|e| e.kind() != io::ErrorKind::BrokenPipe),
                ),
                Ok(len) => Arrived::Bytes(len),
                Err(error) if would_block(&error) => Arrived::Nothing,
                Err(error) => Arrived::End(Some(error)),
            };
        }
    }

    /// Gives `len` bytes that came to `take`, with the sink for the server's own output.
    pub(super) fn hand_over(
        &mut self,
        len: usize,
        take: impl FnOnce(&[u8], &mut dyn FnMut(OutputKind, &[u8])),
    ) {
        let Self { buffer, received, received_kind, debug, .. } = self;
        if let Some(Debug { log, received, .. }) = debug {
            received.take(&buffer[..len], |seen| log_seen(log, "received", &seen));
        }
        take(&buffer[..len], &mut |kind, bytes| {
            *received_kind = Some(kind);
            let room = OUTPUT_LIMIT - received.len();
            received.extend_from_slice(&bytes[..bytes.len().min(room)]);
        });
    }

    /// The server's own output, if its results carried it whole.
    pub(super) fn take_server_output(&mut self) -> Option<ServerOutput> {
        let received = std::mem::take(&mut self.received);
        match self.received_kind.take()? {
            OutputKind::Text => serde_json::from_slice(&received).ok().map(ServerOutput::Text),
            OutputKind::Json => serde_json::from_slice(&received).ok().map(ServerOutput::Json),
        }
    }

    /// The member of the results document to send when the session asks for it.
    pub(super) fn set_server_output(&mut self, member: Vec<u8>) {
        self.output = member;
        self.output_sent = 0;
    }

    /// Sends what is left, then closes this direction and reads on for a moment: closing a socket
    /// with unread bytes would make the system throw away what the peer has not read yet.
    pub(super) async fn close<E: Exchange<MAX_STREAMS>>(
        mut self,
        session: &mut Session<E, MAX_STREAMS>,
    ) {
        let farewell = async {
            while self.send(session).is_err_and(|error| would_block(&error)) {
                self.stream.writable().await?;
            }
            self.stream.shutdown().await?;
            loop {
                self.stream.readable().await?;
                match self.stream.try_read(&mut self.buffer) {
                    Ok(0) => return Ok(()),
                    Err(error) if !would_block(&error) => return Err(error),
                    _ => {}
                }
            }
        };
        // The peer may be gone already; there is nobody left to tell.
        let _: Result<io::Result<()>, _> = tokio::time::timeout(FAREWELL, farewell).await;
    }

    /// Writes until there is nothing more to send or the connection takes no more.
    fn send<E: Exchange<MAX_STREAMS>>(
        &mut self,
        session: &mut Session<E, MAX_STREAMS>,
    ) -> io::Result<()> {
        while let Some(transmit) = session.poll_control() {
            let written = match transmit {
                Transmit::Bytes(bytes) => {
                    let sent = self.stream.try_write(bytes);
                    log_sent(&mut self.debug, bytes, &sent);
                    sent
                }
                Transmit::ServerOutput => {
                    let bytes = &self.output[self.output_sent..];
                    let sent = self.stream.try_write(bytes);
                    log_sent(&mut self.debug, bytes, &sent);
                    self.output_sent += sent.as_ref().copied().unwrap_or(0);
                    if self.output_sent < self.output.len() {
                        sent?;
                        continue;
                    }
                    sent
                }
            };
            match written {
                Ok(bytes) => session.consume_control(bytes),
                Err(error) => {
                    // The reading side will say that the connection is gone.
                    if would_block(&error) {
                        return Err(error);
                    }
                    let kind = error.kind();
                    self.write_error = Some(error);
                    return Err(kind.into());
                }
            }
        }
        Ok(())
    }
}

/// What a debug log needs to tell the bytes of both directions.
struct Debug {
    log: DebugLog,
    sent: Trace,
    received: Trace,
}

fn log_sent(debug: &mut Option<Debug>, bytes: &[u8], written: &io::Result<usize>) {
    if let (Some(Debug { log, sent, .. }), Ok(written)) = (debug, written) {
        sent.take(&bytes[..*written], |seen| log_seen(log, "sent", &seen));
    }
}

fn log_seen(log: &DebugLog, what: &str, seen: &Seen) {
    match seen {
        Seen::Code(code) => log.line(Detail::Codes, || format!("{what} {code}")),
        Seen::Document(text) => log.line(Detail::Documents, || format!("{what} {text}")),
    }
}

fn would_block(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

const READ_BYTES: usize = 16 * 1024;
/// Most of a server's own output that is kept.
const OUTPUT_LIMIT: usize = 64 << 20;
const USER_TIMEOUT: Duration = Duration::from_secs(20);
const FAREWELL: Duration = Duration::from_secs(1);

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn times_that_were_given_replace_our_own() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let socket = SockRef::from(&stream);
        let times = || {
            let of = |time: io::Result<Duration>| time.unwrap().as_secs();
            (
                of(socket.tcp_keepalive_time()),
                of(socket.tcp_keepalive_interval()),
                socket.tcp_keepalive_retries().unwrap(),
                socket.tcp_user_timeout().unwrap().map(|time| time.as_millis()),
            )
        };
        let systems_own = times();
        let given = KeepAlive {
            idle: Some(Duration::from_secs(77)),
            interval: Some(Duration::from_secs(7)),
            count: Some(9),
        };
        // The system's own times for `--cntl-ka` without any; ours last, for they stay once set.
        let cases = [
            (KeepAlive::default(), None, (systems_own.0, systems_own.1, systems_own.2, 20_000)),
            (given, Some(Duration::from_millis(1500)), (77, 7, 9, 1500)),
            (KeepAlive::PROMPT, None, (5, 5, 3, 20_000)),
        ];
        for (keep_alive, send_timeout, (idle, interval, count, millis)) in cases {
            prepare(&stream, keep_alive, send_timeout);
            assert!(socket.keepalive().unwrap());
            assert_eq!(times(), (idle, interval, count, Some(millis)), "{keep_alive:?}");
        }
    }
}
