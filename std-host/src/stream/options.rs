//! What a test wants of its data sockets, and how to ask the system for it. A socket that cannot
//! have something goes without, and a warning says so.

use std::io;
use std::net::SocketAddr;

use linerate_core::test::{Protocol, TestSettings};
use linerate_core::units::BitsPerSec;
use socket2::Socket;

use crate::report::{SocketBuffers, Warning};
use crate::sys;

/// Options of a test's data sockets.
#[derive(Debug, Clone)]
pub(crate) struct SocketOptions {
    protocol: Protocol,
    block_bytes: u32,
    no_delay: bool,
    mss_bytes: Option<u32>,
    window_bytes: Option<u32>,
    tos: u8,
    fq_rate: Option<BitsPerSec>,
    dont_fragment: bool,
    flow_label: Option<u32>,
    congestion: Option<String>,
}

impl SocketOptions {
    /// What `settings` want, and the congestion control the client named.
    pub(crate) fn new(settings: &TestSettings, congestion: Option<&str>) -> Self {
        Self {
            protocol: settings.protocol,
            block_bytes: settings.block_bytes,
            no_delay: settings.no_delay,
            mss_bytes: settings.mss_bytes,
            window_bytes: settings.window_bytes,
            tos: settings.tos,
            fq_rate: settings.fq_rate,
            dont_fragment: settings.dont_fragment,
            flow_label: settings.flow_label,
            congestion: congestion.map(str::to_owned),
        }
    }

    /// Transport of the data sockets.
    pub(crate) fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Applies everything to a socket of family IPv6 or IPv4 and returns what could not be had.
    /// Before the connection is made where there is a choice: windows and segment sizes are
    /// announced in its first packet.
    pub(super) fn apply(&self, socket: &Socket, ipv6: bool) -> Vec<Warning> {
        let mut warnings = match self.protocol {
            Protocol::Tcp => self.apply_tcp(socket),
            Protocol::Udp => self.apply_udp(socket, ipv6),
        };
        let mut note = |option, result| warnings.extend(refusal(option, result));
        if let Some(rate) = self.fq_rate {
            note("--fq-rate", sys::set_max_pacing_rate(socket, rate.0 / 8));
        }
        if self.tos != 0 {
            note("--tos", sys::set_traffic_class(socket, ipv6, self.tos));
        }
        if let Some(window) = self.window_bytes {
            warnings.extend(set_window(socket, window));
        }
        warnings
    }

    /// The address to connect a client's socket to, for flow labels go with it.
    pub(super) fn destination(
        &self,
        socket: &Socket,
        remote: SocketAddr,
    ) -> (SocketAddr, Option<Warning>) {
        match (remote, self.flow_label) {
            (SocketAddr::V6(peer), Some(label)) => match sys::set_flow_label(socket, peer, label) {
                Ok(labelled) => (labelled.into(), None),
                Err(error) => (remote, refusal("--flowlabel", Err(error))),
            },
            _ => (remote, None),
        }
    }

    /// Buffer sizes as the system reports them.
    pub(super) fn buffers(&self, socket: &Socket) -> SocketBuffers {
        let bytes = |size: io::Result<usize>| {
            size.map_or(0, |size| u32::try_from(size).unwrap_or(u32::MAX))
        };
        SocketBuffers {
            requested: self.window_bytes.unwrap_or(0),
            send: bytes(socket.send_buffer_size()),
            receive: bytes(socket.recv_buffer_size()),
        }
    }

    fn apply_tcp(&self, socket: &Socket) -> Vec<Warning> {
        let mut warnings = Vec::new();
        let mut note = |option, result| warnings.extend(refusal(option, result));
        if self.no_delay {
            note("--no-delay", socket.set_tcp_nodelay(true));
        }
        if let Some(mss) = self.mss_bytes {
            note("--set-mss", sys::set_mss(socket, mss));
        }
        if let Some(name) = &self.congestion {
            note("--congestion", sys::set_congestion(socket, name));
        }
        warnings
    }

    fn apply_udp(&self, socket: &Socket, ipv6: bool) -> Vec<Warning> {
        let mut warnings = Vec::new();
        if self.dont_fragment && !ipv6 {
            warnings.extend(refusal("--dont-fragment", sys::set_dont_fragment(socket)));
        }
        if self.window_bytes.is_none() {
            // Best effort: whatever the kernel grants is better than its default.
            let _ = socket.set_recv_buffer_size(DEFAULT_UDP_RECEIVE_BUFFER);
            let least = self.block_bytes as usize + 1024;
            if socket.send_buffer_size().is_ok_and(|size| sys::usable_buffer(size) < least) {
                let _ = socket.set_send_buffer_size(least);
            }
        }
        warnings
    }
}

/// Asks for both buffers and warns of each that came out smaller.
fn set_window(socket: &Socket, window: u32) -> Vec<Warning> {
    let (send_limit, receive_limit) = sys::BUFFER_LIMITS;
    let asked = window as usize;
    [
        (send_limit, socket.set_send_buffer_size(asked).and_then(|()| socket.send_buffer_size())),
        (
            receive_limit,
            socket.set_recv_buffer_size(asked).and_then(|()| socket.recv_buffer_size()),
        ),
    ]
    .into_iter()
    .filter_map(|(limit, size)| match size.map(sys::usable_buffer) {
        Ok(got) if got < asked => {
            Some(Warning::BufferClamped { asked: window, got: got as u32, limit })
        }
        Ok(_) => None,
        Err(error) => refusal("--window", Err(error)),
    })
    .collect()
}

fn refusal(option: &'static str, result: io::Result<()>) -> Option<Warning> {
    result.err().map(|error| Warning::Unsupported { option, reason: error.to_string() })
}

/// Enough for 3 ms at 10 Gbit/s. The usual default of 208 KiB overflows whenever the reader is
/// away for a fraction of that, and the loss would be the measuring tool's, not the network's.
const DEFAULT_UDP_RECEIVE_BUFFER: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use socket2::{Domain, Type};

    use super::*;

    fn applied(
        settings: &TestSettings,
        congestion: Option<&str>,
    ) -> (Socket, SocketBuffers, Vec<Warning>) {
        let kind = match settings.protocol {
            Protocol::Tcp => Type::STREAM,
            Protocol::Udp => Type::DGRAM,
        };
        let socket = Socket::new(Domain::IPV4, kind, None).unwrap();
        let options = SocketOptions::new(settings, congestion);
        let warnings = options.apply(&socket, false);
        let buffers = options.buffers(&socket);
        (socket, buffers, warnings)
    }

    #[test]
    fn a_granted_window_is_no_clamp() {
        for protocol in [Protocol::Tcp, Protocol::Udp] {
            let settings =
                TestSettings { window_bytes: Some(65_536), ..TestSettings::new(protocol) };
            let (_, buffers, warnings) = applied(&settings, None);
            assert_eq!(warnings, []);
            assert_eq!(buffers.requested, 65_536);
            assert!(buffers.send >= 65_536 && buffers.receive >= 65_536, "{buffers:?}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_clamped_window_names_both_limits() {
        let asked = linerate_core::test::MAX_WINDOW;
        let settings =
            TestSettings { window_bytes: Some(asked), ..TestSettings::new(Protocol::Tcp) };
        let (_, buffers, warnings) = applied(&settings, None);
        let expected =
            [(buffers.send, "net.core.wmem_max"), (buffers.receive, "net.core.rmem_max")]
                .map(|(size, limit)| Warning::BufferClamped { asked, got: size / 2, limit });
        assert_eq!(warnings, expected);
    }

    #[test]
    fn an_unknown_congestion_control_is_one_warning() {
        let (_, _, warnings) = applied(&TestSettings::new(Protocol::Tcp), Some("no such thing"));
        assert!(
            matches!(warnings[..], [Warning::Unsupported { option: "--congestion", .. }]),
            "{warnings:?}"
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn socket_options_reach_the_socket() {
        let settings = TestSettings {
            no_delay: true,
            mss_bytes: Some(1000),
            tos: 0x20,
            ..TestSettings::new(Protocol::Tcp)
        };
        let (socket, _, warnings) = applied(&settings, None);
        assert_eq!(warnings, []);
        assert!(socket.tcp_nodelay().unwrap());
        assert_eq!(socket.tos_v4().unwrap(), 0x20);
    }
}
