//! What a test wants of its data sockets, and how to ask the system for it. A socket that cannot
//! have something goes without, and a warning says so.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use linerate_core::test::{Direction, Protocol, TestSettings};
use linerate_core::units::BitsPerSec;
use socket2::{Domain, Socket, Type};

use crate::error::words;
use crate::report::{SocketBuffers, Warning};
use crate::sys::{self, Mark, Route};

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
    server_sends: bool,
    stream_count: usize,
    mptcp: bool,
    congestion: Option<String>,
    own: OwnOptions,
}

/// What one end wants of its data sockets for itself; the other hears nothing of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct OwnOptions {
    /// The network device that they use.
    pub(crate) device: Option<String>,
    /// How long sent data may stay unacknowledged; none leaves it to the system.
    pub(crate) send_timeout: Option<Duration>,
    /// SCTP: streams within each association.
    pub(crate) sctp_streams: Option<u16>,
    /// SCTP: addresses of this machine that each association uses.
    pub(crate) sctp_addresses: Vec<IpAddr>,
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
            server_sends: settings.direction != Direction::Forward,
            stream_count: settings.stream_count().max(1),
            mptcp: settings.mptcp,
            congestion: congestion.map(str::to_owned),
            own: OwnOptions::default(),
        }
    }

    /// The same with what this end wants for itself.
    pub(crate) fn with_own(self, own: OwnOptions) -> Self {
        Self { own, ..self }
    }

    /// SCTP: the local addresses that were asked for.
    pub(crate) fn sctp_addresses(&self) -> &[IpAddr] {
        &self.own.sctp_addresses
    }

    /// Transport of the data sockets.
    pub(crate) fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// A client's socket: of the wanted transport and on the wanted device, everything else still to
    /// be applied.
    pub(super) fn socket(&self, domain: Domain) -> io::Result<(Socket, Option<Warning>)> {
        let (socket, warning) = match self.protocol {
            Protocol::Udp => (Socket::new(domain, Type::DGRAM, None)?, None),
            Protocol::Sctp => (sys::sctp_socket(domain)?, None),
            Protocol::Tcp if self.mptcp => match sys::multipath_socket(domain) {
                Ok(socket) => (socket, None),
                Err(error) => {
                    (Socket::new(domain, Type::STREAM, None)?, refusal("--mptcp", Err(error)))
                }
            },
            Protocol::Tcp => (Socket::new(domain, Type::STREAM, None)?, None),
        };
        socket.set_nonblocking(true)?;
        self.bind_to_device(&socket)?;
        Ok((socket, warning))
    }

    /// Keeps a socket to the wanted device.
    pub(super) fn bind_to_device(&self, socket: &Socket) -> io::Result<()> {
        match &self.own.device {
            Some(device) => sys::bind_to_device(socket, device),
            None => Ok(()),
        }
    }

    /// What a connected socket turned out not to be.
    pub(super) fn after_connect(&self, socket: &Socket) -> Option<Warning> {
        // One warning is enough where this end's own system lacks it.
        let is_plain = self.mptcp && !sys::is_multipath(socket);
        (is_plain && sys::multipath_socket(Domain::IPV4).is_ok()).then(|| Warning::Unsupported {
            option: "--mptcp",
            reason: "the server does not speak it, so the streams are plain TCP".into(),
        })
    }

    /// Marks what a connected socket sends, where that is not done before; the other value is what could
    /// not be had.
    pub(super) fn mark(&self, socket: &Socket) -> (Option<Mark>, Option<Warning>) {
        match (self.tos != 0).then(|| sys::mark_connected(socket, self.tos)) {
            Some(Ok(mark)) => (Some(mark), None),
            Some(Err(error)) => (None, refusal("--tos", Err(error))),
            None => (None, None),
        }
    }

    /// Applies everything to a socket that carries IPv6 or IPv4 and returns what could not be had.
    /// Before the connection is made where there is a choice: windows and segment sizes are
    /// announced in its first packet.
    pub(super) fn apply(&self, socket: &Socket, ipv6: bool) -> Vec<Warning> {
        let mut warnings = match self.protocol {
            Protocol::Tcp => self.apply_tcp(socket),
            Protocol::Udp => self.apply_udp(socket, ipv6),
            Protocol::Sctp => self.apply_sctp(socket),
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

    /// Applies to a socket that other streams have, too, what changes nothing for them, and to the stream's
    /// route there what goes with each datagram; returns what could not be had.
    pub(super) fn apply_to_shared(
        &self,
        socket: &Socket,
        ipv6: bool,
        route: &mut Route,
    ) -> Vec<Warning> {
        let mut warnings = Vec::new();
        let mut refuse = |is_wanted: bool, option| {
            let refused = is_wanted.then(|| Warning::Unsupported { option, reason: SHARED.into() });
            warnings.extend(refused);
        };
        let buffers = self.window_bytes.map(|window| raise_window(socket, window));
        refuse(buffers.as_ref().is_some_and(|&(was_larger, _)| was_larger), "--window");
        // What leaves is not concerned where nothing does.
        refuse(self.server_sends && self.fq_rate.is_some(), "--fq-rate");
        refuse(self.server_sends && self.dont_fragment && !ipv6, "--dont-fragment");
        refuse(self.server_sends && self.flow_label.is_some(), "--flowlabel");
        if self.server_sends && self.tos != 0 {
            route.class = self.tos;
            let result = sys::request_class(socket, route);
            if result.is_err() {
                route.class = 0;
            }
            warnings.extend(refusal("--tos", result));
        }
        warnings.extend(buffers.into_iter().flat_map(|(_, clamped)| clamped));
        make_room(socket, self.block_bytes);
        warnings
    }

    /// Datagrams that a stream's mailbox has room for, and bytes of each.
    pub(super) fn mailbox(&self) -> (usize, usize) {
        let datagrams = (MAILBOXES / self.stream_count).clamp(LEAST_MAILBOX, MOST_MAILBOX);
        (datagrams, self.block_bytes as usize)
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
            (SocketAddr::V4(_), Some(_)) => {
                let reason = "the connection is over IPv4; -6 allows no other than IPv6".into();
                (remote, Some(Warning::Unsupported { option: "--flowlabel", reason }))
            }
            (_, None) => (remote, None),
        }
    }

    /// What an accepted connection cannot have: its label is chosen before anybody sees it.
    pub(super) fn after_accept(&self, ipv6: bool) -> Option<Warning> {
        let is_wanted = ipv6 && self.server_sends && self.flow_label.is_some();
        is_wanted.then(|| Warning::Unsupported {
            option: "--flowlabel",
            reason: "the system chooses the label of a connection that it accepts".into(),
        })
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
        if let Some(timeout) = self.own.send_timeout {
            note("--snd-timeout", sys::set_user_timeout(socket, timeout));
        }
        warnings
    }

    fn apply_sctp(&self, socket: &Socket) -> Vec<Warning> {
        let mut warnings = Vec::new();
        let mut note = |option, result| warnings.extend(refusal(option, result));
        if self.no_delay {
            note("--no-delay", sys::set_sctp_no_delay(socket));
        }
        // Others have no meaning to SCTP; iperf3 passes over them, too.
        if let Some(bytes @ 512..=131_072) = self.mss_bytes {
            note("--set-mss", sys::set_sctp_max_segment(socket, bytes));
        }
        if let Some(streams) = self.own.sctp_streams {
            note("--nstreams", sys::set_sctp_streams(socket, streams));
        }
        if self.window_bytes.is_none() {
            make_room(socket, self.block_bytes);
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
            let (least, most) = (DEFAULT_UDP_RECEIVE_BUFFER, FORCED_UDP_RECEIVE_BUFFER);
            let share = (UDP_RECEIVE_BUFFERS / self.stream_count).clamp(least, most);
            let _ = sys::force_receive_buffer(socket, share)
                .or_else(|_| socket.set_recv_buffer_size(least));
            make_room(socket, self.block_bytes);
        }
        warnings
    }
}

/// Gives a socket that all streams of a server share as much as its streams could have together.
pub(super) fn enlarge_for_all(socket: &Socket) {
    let _ = sys::force_receive_buffer(socket, UDP_RECEIVE_BUFFERS)
        .or_else(|_| socket.set_recv_buffer_size(DEFAULT_UDP_RECEIVE_BUFFER));
}

/// Sees to it that one message fits the send buffer, or none could ever be sent.
fn make_room(socket: &Socket, block_bytes: u32) {
    let least = block_bytes as usize + 1024;
    if socket.send_buffer_size().is_ok_and(|size| sys::usable_buffer(size) < least) {
        // Best effort: if it stays too small, sending says so.
        let _ = socket.set_send_buffer_size(least);
    }
}

/// Asks for both buffers and warns of each that came out smaller.
fn set_window(socket: &Socket, window: u32) -> Vec<Warning> {
    let asked = window as usize;
    let results = [socket.set_send_buffer_size(asked), socket.set_recv_buffer_size(asked)];
    clamped(socket, window, results)
}

/// The same with a socket that others have, too, whose buffers only ever grow. Returns also whether one
/// was larger.
fn raise_window(socket: &Socket, window: u32) -> (bool, Vec<Warning>) {
    let asked = window as usize;
    let usable = |size: io::Result<usize>| size.map_or(0, sys::usable_buffer);
    let (send, receive) = (usable(socket.send_buffer_size()), usable(socket.recv_buffer_size()));
    let raise = |is_wanted: bool, set: &dyn Fn(usize) -> io::Result<()>| {
        if is_wanted { set(asked) } else { Ok(()) }
    };
    let results = [
        raise(send < asked, &|bytes| socket.set_send_buffer_size(bytes)),
        raise(receive < asked, &|bytes| socket.set_recv_buffer_size(bytes)),
    ];
    (send > asked || receive > asked, clamped(socket, window, results))
}

/// A warning for each buffer that is smaller than `window` after it was asked for with this result.
fn clamped(socket: &Socket, window: u32, [send, receive]: [io::Result<()>; 2]) -> Vec<Warning> {
    let (send_limit, receive_limit) = sys::BUFFER_LIMITS;
    let asked = window as usize;
    [
        (send_limit, send.and_then(|()| socket.send_buffer_size())),
        (receive_limit, receive.and_then(|()| socket.recv_buffer_size())),
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
    result.err().map(|error| Warning::Unsupported { option, reason: words(&error) })
}

/// Enough for 3 ms at 10 Gbit/s. The usual default of 208 KiB overflows whenever the reader is
/// away for a fraction of that, and the loss would be the measuring tool's, not the network's.
const DEFAULT_UDP_RECEIVE_BUFFER: usize = 4 << 20;
/// Two milliseconds of the fastest loopback, for those who may have it.
const FORCED_UDP_RECEIVE_BUFFER: usize = 16 << 20;
/// What the streams of a test have together unless the default is more: the kernel has a bound for all
/// programs.
const UDP_RECEIVE_BUFFERS: usize = 64 << 20;
/// Datagrams that all mailboxes of a test have room for, and the bounds of each: the most is what comes in
/// 16 ms at a million a second.
const MAILBOXES: usize = 1 << 16;
const LEAST_MAILBOX: usize = 1 << 12;
const MOST_MAILBOX: usize = 1 << 14;
const SHARED: &str = "all streams of this server share one socket, so it would be for all of them";

#[cfg(test)]
mod tests {
    use socket2::Domain;

    use super::*;

    fn applied(
        settings: &TestSettings,
        congestion: Option<&str>,
    ) -> (Socket, SocketBuffers, Vec<Warning>) {
        let options = SocketOptions::new(settings, congestion);
        let (socket, warning) = options.socket(Domain::IPV4).unwrap();
        assert_eq!(warning, None);
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

    #[test]
    fn many_streams_have_smaller_buffers_for_datagrams() {
        for (parallel, most) in [(1, 16 << 20), (8, 8 << 20), (128, 4 << 20)] {
            let settings = TestSettings { parallel, ..TestSettings::new(Protocol::Udp) };
            let (_, buffers, _) = applied(&settings, None);
            let usable = sys::usable_buffer(buffers.receive as usize);
            assert!(usable <= most, "{parallel} streams: {usable}");
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
    fn a_shared_socket_is_left_as_it_is_for_the_others() {
        let wanted = TestSettings {
            window_bytes: Some(4096),
            tos: 0x20,
            fq_rate: Some(BitsPerSec(1_000_000)),
            dont_fragment: true,
            flow_label: Some(7),
            ..TestSettings::new(Protocol::Udp)
        };
        let refused = |settings: &TestSettings| {
            let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
            let sizes = || (socket.send_buffer_size().unwrap(), socket.recv_buffer_size().unwrap());
            let before = sizes();
            let to = SocketAddr::from(([127, 0, 0, 1], 9));
            let mut route = Route { to, from: None, class: 0 };
            let options = SocketOptions::new(settings, None);
            let warnings = options.apply_to_shared(&socket, false, &mut route);
            assert!(sizes() >= before);
            let named = |warning: &Warning| match warning {
                Warning::Unsupported { option, .. } => *option,
                other => panic!("{other:?}"),
            };
            (warnings.iter().map(named).collect::<Vec<_>>(), route.class)
        };
        assert_eq!(refused(&wanted), (vec!["--window"], 0), "nothing else concerns what comes in");
        let (refused, class) = refused(&TestSettings { direction: Direction::Reverse, ..wanted });
        assert_eq!(refused[..4], ["--window", "--fq-rate", "--dont-fragment", "--flowlabel"]);
        // The class goes with each datagram, or is refused, too.
        assert_eq!(
            (class == 0x20, refused.len()),
            (refused.len() == 4, 5 - usize::from(class > 0))
        );
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
    fn what_one_end_wants_for_itself_reaches_the_socket() {
        let own = OwnOptions {
            device: Some("lo".into()),
            send_timeout: Some(Duration::from_millis(2500)),
            ..OwnOptions::default()
        };
        let options = SocketOptions::new(&TestSettings::new(Protocol::Tcp), None).with_own(own);
        let (socket, _) = options.socket(Domain::IPV4).unwrap();
        assert_eq!(options.apply(&socket, false), []);
        assert_eq!(socket.tcp_user_timeout().unwrap(), Some(Duration::from_millis(2500)));
        assert_eq!(socket.device().unwrap().as_deref(), Some(&b"lo"[..]));
    }

    #[test]
    fn sctp_passes_over_segment_sizes_that_mean_nothing_to_it() {
        // A TCP socket in its place refuses each option of SCTP, which tells what was tried.
        let tried = |mss_bytes: u32| {
            let settings = TestSettings {
                no_delay: true,
                mss_bytes: Some(mss_bytes),
                ..TestSettings::new(Protocol::Sctp)
            };
            let own = OwnOptions { sctp_streams: Some(5), ..OwnOptions::default() };
            let options = SocketOptions::new(&settings, None).with_own(own);
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            let warnings = options.apply(&socket, false);
            let named = |warning: &Warning| match warning {
                Warning::Unsupported { option, .. } => *option,
                other => panic!("{other:?}"),
            };
            warnings.iter().map(named).collect::<Vec<_>>()
        };
        assert_eq!(tried(511), ["--no-delay", "--nstreams"]);
        assert_eq!(tried(512), ["--no-delay", "--set-mss", "--nstreams"]);
        assert_eq!(tried(131_073), ["--no-delay", "--nstreams"]);
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
