//! When datagrams left a device: read from a packet socket, with the kernel's own time stamps, while a
//! test runs. A piece that the kernel or the device cuts later is seen whole, as several datagrams of
//! one time.

/// One departure, in the order in which they were.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Departure {
    /// Nanoseconds of the system's clock.
    pub(super) at: u64,
    /// The sender's port, so the stream.
    pub(super) from: u16,
    /// Bytes of UDP payload.
    pub(super) payload: u64,
}

/// Splits departures by stream, as times with their count of datagrams of `block` bytes. Shorter ones
/// are no data but greetings.
pub(super) fn streams(departures: &[Departure], block: u64) -> Vec<Vec<(u64, u64)>> {
    let mut ports: Vec<u16> = Vec::new();
    let mut streams: Vec<Vec<(u64, u64)>> = Vec::new();
    for departure in departures.iter().filter(|departure| departure.payload >= block) {
        let known = ports.iter().position(|port| *port == departure.from);
        let index = known.unwrap_or_else(|| {
            ports.push(departure.from);
            streams.push(Vec::new());
            ports.len() - 1
        });
        streams[index].push((departure.at, departure.payload / block));
    }
    streams
}

/// The sender's port and the payload's length, of a UDP datagram over IPv4 in an Ethernet frame that
/// goes to `port`.
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
fn read_frame(frame: &[u8], port: u16) -> Option<(u16, u64)> {
    let u16_at = |at: usize| Some(u16::from_be_bytes(frame.get(at..at + 2)?.try_into().ok()?));
    let header = usize::from(frame.get(ETHERNET)? & 0xf) * 4;
    let (is_ipv4, is_udp) = (u16_at(12)? == IPV4, *frame.get(ETHERNET + 9)? == UDP);
    let udp = ETHERNET + header;
    if !is_ipv4 || !is_udp || u16_at(udp + 2)? != port {
        return None;
    }
    // The length in the UDP header may be that of a single segment; IP's is that of the whole piece.
    let payload = usize::from(u16_at(ETHERNET + 2)?).checked_sub(header + 8)?;
    Some((u16_at(udp)?, payload as u64))
}

const ETHERNET: usize = 14;
const IPV4: u16 = 0x0800;
const UDP: u8 = 17;

#[cfg(not(target_os = "linux"))]
pub(super) use elsewhere::Capture;
#[cfg(target_os = "linux")]
pub(super) use linux::Capture;

#[cfg(target_os = "linux")]
mod linux {
    use std::io::{self, IoSliceMut};
    use std::os::fd::{AsRawFd, OwnedFd};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;
    use std::thread::JoinHandle;
    use std::time::Duration;

    use nix::errno::Errno;
    use nix::sys::socket::{
        AddressFamily, ControlMessageOwned, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType,
        bind, recvmsg, setsockopt, socket, sockopt,
    };
    use nix::sys::time::TimeSpec;

    use super::{Departure, read_frame};
    use crate::bench::network::Network;

    /// A capture that runs until it is asked for what it saw.
    pub(in crate::bench) struct Capture {
        is_over: Arc<AtomicBool>,
        thread: JoinHandle<io::Result<Vec<Departure>>>,
    }

    impl Capture {
        /// Begins with what leaves for `port` at the client's end.
        pub(in crate::bench) fn start(network: &Arc<Network>, port: u16) -> Result<Self, String> {
            let is_over = Arc::new(AtomicBool::new(false));
            let (opened, is_open) = mpsc::channel();
            let (network, over) = (Arc::clone(network), Arc::clone(&is_over));
            let thread = std::thread::spawn(move || {
                let socket = network.enter().and_then(|()| open(network.device()));
                let why = socket.as_ref().err().map(ToString::to_string);
                opened.send(why).map_err(io::Error::other)?;
                read(&socket?, port, &over)
            });
            match is_open.recv() {
                Ok(None) => Ok(Self { is_over, thread }),
                Ok(Some(why)) => Err(format!("no capture, which needs root: {why}")),
                Err(_) => Err("the capture ended at once".into()),
            }
        }

        /// What has left since.
        pub(in crate::bench) fn finish(self) -> Result<Vec<Departure>, String> {
            self.is_over.store(true, Ordering::Relaxed);
            let seen = self.thread.join().map_err(|_| "the capture panicked")?;
            seen.map_err(|why| format!("the capture: {why}"))
        }
    }

    fn open(device: &str) -> io::Result<OwnedFd> {
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let socket = socket(AddressFamily::Packet, SockType::Raw, flags, SockProtocol::EthAll)?;
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
        setsockopt(&socket, sockopt::RcvBufForce, &ROOM)?;
        let mut addresses = nix::ifaddrs::getifaddrs()?
            .filter(|address| address.interface_name == device)
            .filter_map(|address| address.address?.as_link_addr().copied());
        let address = addresses.next().ok_or_else(|| io::Error::other(format!("no {device}")))?;
        bind(socket.as_raw_fd(), &address)?;
        Ok(socket)
    }

    /// Reads until it is over, and then what is there. It looks now and then only, so as not to be a
    /// load beside what it watches; the stamps are the kernel's.
    fn read(socket: &OwnedFd, port: u16, is_over: &AtomicBool) -> io::Result<Vec<Departure>> {
        let mut departures = Vec::new();
        loop {
            let was_over = is_over.load(Ordering::Relaxed);
            while let Some(departure) = next(socket, port)? {
                departures.extend(departure);
            }
            if was_over {
                return Ok(departures);
            }
            std::thread::sleep(LOOK);
        }
    }

    /// The next frame, if there is one, and what it is to us.
    fn next(socket: &OwnedFd, port: u16) -> io::Result<Option<Option<Departure>>> {
        let mut frame = [0; HEADERS];
        let mut control = nix::cmsg_space!(TimeSpec);
        let mut parts = [IoSliceMut::new(&mut frame)];
        let flags = MsgFlags::empty();
        let fd = socket.as_raw_fd();
        let message = match recvmsg::<LinkAddr>(fd, &mut parts, Some(&mut control), flags) {
            Err(Errno::EAGAIN) => return Ok(None),
            other => other?,
        };
        let is_leaving = message.address.is_some_and(|from| from.pkttype() == OUTGOING);
        let at = message.cmsgs()?.find_map(|part| match part {
            ControlMessageOwned::ScmTimestampns(at) => {
                Some(at.tv_sec() as u64 * 1_000_000_000 + at.tv_nsec() as u64)
            }
            _ => None,
        });
        let departure = at.filter(|_| is_leaving).zip(read_frame(&frame, port));
        Ok(Some(departure.map(|(at, (from, payload))| Departure { at, from, payload })))
    }

    const LOOK: Duration = Duration::from_millis(20);
    /// All headers are within this.
    const HEADERS: usize = 96;
    const ROOM: usize = 64 << 20;
    /// `PACKET_OUTGOING`: on a loopback each frame is seen twice.
    const OUTGOING: u8 = 4;
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use std::sync::Arc;

    use super::Departure;
    use crate::bench::network::Network;

    pub(in crate::bench) struct Capture;

    impl Capture {
        pub(in crate::bench) fn start(_: &Arc<Network>, _: u16) -> Result<Self, String> {
            Err("captures are for Linux only".into())
        }

        pub(in crate::bench) fn finish(self) -> Result<Vec<Departure>, String> {
            Ok(Vec::new())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame with the UDP ports 4660 to 5201 and `payload` bytes, of which none is there.
    fn frame(payload: u16) -> Vec<u8> {
        let mut frame = vec![0; 42];
        frame[12..14].copy_from_slice(&IPV4.to_be_bytes());
        frame[14] = 0x45;
        frame[16..18].copy_from_slice(&(payload + 28).to_be_bytes());
        frame[23] = UDP;
        frame[34..36].copy_from_slice(&0x1234u16.to_be_bytes());
        frame[36..38].copy_from_slice(&5201u16.to_be_bytes());
        frame
    }

    #[test]
    fn a_frame_is_read_by_its_headers_alone() {
        assert_eq!(read_frame(&frame(1400), 5201), Some((0x1234, 1400)));
        assert_eq!(read_frame(&frame(1400), 5202), None);
        let mut tcp = frame(1400);
        tcp[23] = 6;
        assert_eq!(read_frame(&tcp, 5201), None);
        for cut in 0..38 {
            assert_eq!(read_frame(&frame(1400)[..cut], 5201), None, "{cut}");
        }
    }

    #[test]
    fn streams_are_told_by_their_port_and_greetings_left_out() {
        let departure = |at, from, payload| Departure { at, from, payload };
        let all = [
            departure(1, 7, 4),
            departure(2, 7, 1000),
            departure(3, 9, 3000),
            departure(4, 7, 1000),
        ];
        assert_eq!(streams(&all, 1000), [vec![(2, 1), (4, 1)], vec![(3, 3)]]);
    }
}
