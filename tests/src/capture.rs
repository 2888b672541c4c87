//! What passes a network device: the marks and ports of each packet, read from a packet socket while
//! something else runs. Knows TCP and UDP over Ethernet, without options of IP.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use smoltcp::phy::{Device, Medium, RawSocket, RxToken};
use smoltcp::time::Instant;

use crate::namespace::Namespace;

/// One packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// The sender.
    pub from: SocketAddr,
    /// The receiver.
    pub to: SocketAddr,
    /// TCP, else UDP.
    pub is_tcp: bool,
    /// The type of service byte of IPv4, or the traffic class of IPv6.
    pub class: u8,
    /// The flow label of IPv6.
    pub flow_label: u32,
    /// Bytes after the last header.
    pub payload: usize,
    /// The last of them.
    pub last: Option<[u8; 8]>,
}

/// Runs `work` and tells what passed `device` of the namespace meanwhile, in both directions.
///
/// # Panics
///
/// When the system does not give a packet socket.
pub fn capture<T>(
    namespace: &Namespace,
    device: &str,
    work: impl FnOnce() -> T,
) -> (T, Vec<Packet>) {
    let is_over = AtomicBool::new(false);
    let (opened, is_open) = mpsc::channel();
    std::thread::scope(|scope| {
        let capturing = scope.spawn(|| namespace.enter(|| read(device, &opened, &is_over)));
        // Without a socket there is no word of it, and the thread says why.
        let worked = is_open.recv_timeout(TIME_TO_OPEN).ok().map(|()| work());
        is_over.store(true, Ordering::Relaxed);
        let packets = capturing.join().expect("a capture does not panic");
        let packets = packets.unwrap_or_else(|why| panic!("no capture of {device}: {why}"));
        (worked.expect("the socket was open"), packets)
    })
}

/// Reads until it is over, and then what is there.
fn read(device: &str, opened: &mpsc::Sender<()>, is_over: &AtomicBool) -> io::Result<Vec<Packet>> {
    let mut socket = RawSocket::new(device, Medium::Ethernet)?;
    opened.send(()).map_err(io::Error::other)?;
    let mut packets = Vec::new();
    loop {
        let was_over = is_over.load(Ordering::Relaxed);
        while let Some((frame, _)) = socket.receive(Instant::ZERO) {
            packets.extend(frame.consume(Packet::read));
        }
        if was_over {
            return Ok(packets);
        }
        // The socket holds what comes meanwhile.
        std::thread::sleep(Duration::from_millis(1));
    }
}

impl Packet {
    /// The packet in an Ethernet frame, if it is one of those that are known.
    fn read(frame: &[u8]) -> Option<Self> {
        let packet = frame.get(14..)?;
        match u16_at(frame, 12)? {
            0x0800 => {
                let (from, to) = (packet.get(12..16)?, packet.get(16..20)?);
                let header = usize::from(packet[0] & 0xf) * 4;
                let length = usize::from(u16_at(packet, 2)?).checked_sub(header)?;
                let ends = (address::<4>(from)?, address::<4>(to)?);
                Self::in_ip(packet.get(header..)?, length, packet[9], ends, packet[1], 0)
            }
            0x86dd => {
                let (from, to) = (packet.get(8..24)?, packet.get(24..40)?);
                let ends = (address::<16>(from)?, address::<16>(to)?);
                let first = u32::from_be_bytes(packet[..4].try_into().ok()?);
                let (class, label) = ((first >> 20) as u8, first & 0xf_ffff);
                let length = usize::from(u16_at(packet, 4)?);
                Self::in_ip(packet.get(40..)?, length, packet[6], ends, class, label)
            }
            _ => None,
        }
    }

    fn in_ip(
        segment: &[u8],
        length: usize,
        protocol: u8,
        (from, to): (IpAddr, IpAddr),
        class: u8,
        flow_label: u32,
    ) -> Option<Self> {
        let header = match protocol {
            TCP => usize::from(segment.get(12)? >> 4) * 4,
            UDP => 8,
            _ => return None,
        };
        Some(Self {
            from: SocketAddr::new(from, u16_at(segment, 0)?),
            to: SocketAddr::new(to, u16_at(segment, 2)?),
            is_tcp: protocol == TCP,
            class,
            flow_label,
            payload: length.checked_sub(header)?,
            last: segment.get(..length).and_then(|whole| whole.last_chunk().copied()),
        })
    }
}

impl fmt::Display for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to, class, flow_label, payload, .. } = self;
        let name = if self.is_tcp { "TCP" } else { "UDP" };
        write!(f, "{name} {from} > {to}, {payload} bytes, class {class:#x}, label {flow_label}")
    }
}

fn address<const N: usize>(bytes: &[u8]) -> Option<IpAddr>
where
    IpAddr: From<[u8; N]>,
{
    Some(IpAddr::from(<[u8; N]>::try_from(bytes).ok()?))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

const TCP: u8 = 6;
const UDP: u8 = 17;
const TIME_TO_OPEN: Duration = Duration::from_secs(10);
