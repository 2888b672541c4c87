//! Waiting for a socket, an order or a time, with `WSAPoll`. That call can wait for sockets only,
//! so an order is a datagram on a socket of its own.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::windows::io::{AsSocket, BorrowedSocket};
use std::time::{Duration, Instant};

use windows_sys::Win32::Networking::WinSock::{POLLRDNORM, POLLWRNORM, WSAPOLLFD, WSAPoll};

use crate::options::{check, raw};

/// What to wait for on a socket; a failed socket ends every wait but `Nothing`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// Data, or the end of it.
    Read,
    /// Room in the send buffer.
    Write,
    /// The wake or the time only.
    Nothing,
}

/// A loopback socket connected to itself, which takes nobody else's datagrams.
#[derive(Debug)]
pub struct Wake(UdpSocket);

impl Wake {
    /// A wake that has not been used.
    ///
    /// # Errors
    /// When the system gives no socket.
    pub fn new() -> io::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.connect(socket.local_addr()?)?;
        socket.set_nonblocking(true)?;
        Ok(Self(socket))
    }

    /// Ends the current or the next [`wait`] with it.
    pub fn wake(&self) {
        // It fails only when the buffer is full of wakes.
        let _ = self.0.send(&[1]);
    }

    fn clear(&self) {
        let mut byte = [0];
        while self.0.recv(&mut byte).is_ok() {}
    }
}

/// Blocks until the socket is ready or has failed, the wake was used or the time is over; may
/// return early.
///
/// # Errors
/// When the system refuses to wait.
pub fn wait(
    socket: BorrowedSocket<'_>,
    interest: Interest,
    wake: &Wake,
    timeout: Option<Duration>,
) -> io::Result<()> {
    let events = match interest {
        Interest::Read => POLLRDNORM,
        Interest::Write => POLLWRNORM,
        Interest::Nothing => return pause(wake, timeout),
    };
    let mut list = [poll_for(wake.0.as_socket(), POLLRDNORM), poll_for(socket, events)];
    poll(&mut list, timeout.map(at_least_a_millisecond))?;
    finish(list[0], wake);
    Ok(())
}

/// Waits for the wake or the time. The timer of a poll can be as late as one tick of the system:
/// the last part of a time is slept, which is exact, in pieces that keep orders waiting for a
/// moment only.
fn pause(wake: &Wake, timeout: Option<Duration>) -> io::Result<()> {
    let began = Instant::now();
    let mut list = [poll_for(wake.0.as_socket(), POLLRDNORM)];
    loop {
        let left = timeout.map(|time| time.saturating_sub(began.elapsed()));
        let polled = match left {
            Some(time) if time <= TICK => {
                std::thread::sleep(time.min(NAP));
                Some(Duration::ZERO)
            }
            long => long.map(|time| time - TICK),
        };
        poll(&mut list, polled)?;
        finish(list[0], wake);
        if list[0].revents != 0 || timeout.is_some_and(|time| began.elapsed() >= time) {
            return Ok(());
        }
    }
}

fn poll_for(socket: BorrowedSocket<'_>, events: i16) -> WSAPOLLFD {
    WSAPOLLFD { fd: raw(socket), events, revents: 0 }
}

fn poll(list: &mut [WSAPOLLFD], timeout: Option<Duration>) -> io::Result<()> {
    let millis = timeout.map_or(-1, |time| i32::try_from(time.as_millis()).unwrap_or(i32::MAX));
    // SAFETY: as many records as the length says, which live through the call.
    check(unsafe { WSAPoll(list.as_mut_ptr(), list.len() as u32, millis) })
}

fn finish(polled: WSAPOLLFD, wake: &Wake) {
    if polled.revents != 0 {
        wake.clear();
    }
}

fn at_least_a_millisecond(time: Duration) -> Duration {
    time.max(Duration::from_millis(1))
}

/// A little more than the 15.6 ms between two ticks.
const TICK: Duration = Duration::from_millis(16);
/// How long an order may wait.
const NAP: Duration = Duration::from_millis(2);
