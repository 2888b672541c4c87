//! A client on the same stack as the server, which can break off at any point.

use ::smoltcp::iface::SocketHandle;
use ::smoltcp::socket::{tcp, udp};
use ::smoltcp::time::Instant;
use ::smoltcp::wire::IpEndpoint;
use linerate_embedded::engine::protocol::cookie::Cookie;
use linerate_embedded::engine::report::{SideSummary, StreamSummary};
use linerate_embedded::engine::session::{ClientConfig, Ending, Event, Phase};
use linerate_embedded::engine::test::TestSettings;
use linerate_embedded::smoltcp;
use linerate_embedded::{ClientStorage, NotBegun, NotReached, Observer, Progress};

use super::world::{MTU, Net, SERVER, STREAMS};

pub(crate) struct Client {
    client: smoltcp::Client<'static, STREAMS>,
    sockets: Vec<SocketHandle>,
    told: Told,
}

#[derive(Debug, Default)]
struct Told {
    ending: Option<Ending>,
    not_reached: Option<NotReached>,
    summaries: Vec<StreamSummary>,
}

impl Client {
    pub(crate) fn start(now: Instant, net: &mut Net, settings: TestSettings) -> Self {
        Self::try_start(SERVER, now, net, settings).expect("it has room for it")
    }

    pub(crate) fn try_start(
        server: IpEndpoint,
        now: Instant,
        net: &mut Net,
        settings: TestSettings,
    ) -> Result<Self, NotBegun> {
        let storage = Box::leak(Box::new(ClientStorage::<STREAMS, 512, 8192, 8192>::new()));
        let metadata = Box::leak(Box::new([[[udp::PacketMetadata::EMPTY; 16]; 2]; STREAMS]));
        let earlier: Vec<_> = net.sockets.iter().map(|(handle, _)| handle).collect();
        let buffers = storage.buffers(metadata);
        let mut client = smoltcp::Client::new(MTU, &mut net.sockets, buffers);
        let all = net.sockets.iter().map(|(handle, _)| handle);
        let sockets = all.filter(|handle| !earlier.contains(handle)).collect();
        let config = ClientConfig::new(settings);
        let cookie = Cookie::from_random([net.port() as u8; 36]);
        let Net { interface, sockets: set, .. } = net;
        client.start(now, interface, set, server, config, cookie)?;
        Ok(Self { client, sockets, told: Told::default() })
    }

    pub(crate) fn phase(&self) -> Phase {
        self.client.phase().unwrap_or(if self.is_over() { Phase::Over } else { Phase::Greeting })
    }

    pub(crate) fn ending(&self) -> Option<Ending> {
        self.told.ending
    }

    pub(crate) fn not_reached(&self) -> Option<NotReached> {
        self.told.not_reached
    }

    pub(crate) fn is_over(&self) -> bool {
        self.told.ending.is_some() || self.told.not_reached.is_some()
    }

    /// What was sent and what was received on a stream, in bytes and packets.
    pub(crate) fn counted(&self, index: usize) -> ((u64, u64), (u64, u64)) {
        let summary = &self.told.summaries[index];
        let side = |side: Option<&SideSummary>| {
            side.map_or((0, 0), |side| (side.bytes, side.datagrams.packets))
        };
        (side(summary.sent()), side(summary.received()))
    }

    pub(crate) fn poll(&mut self, now: Instant, net: &mut Net) -> Option<Instant> {
        self.client.poll(now, &mut net.interface, &mut net.sockets, &mut self.told)
    }

    pub(crate) fn interrupt(&mut self) {
        self.client.interrupt();
    }

    /// Whether the server has said something that it has not taken.
    pub(crate) fn has_news(&self, net: &Net) -> bool {
        self.tcp().any(|handle| net.sockets.get::<tcp::Socket<'_>>(handle).can_recv())
    }

    /// Whether all of its connections are closed by both ends.
    pub(crate) fn is_closed(&self) -> bool {
        !self.client.is_busy()
    }

    /// Closes its sockets as a program's end does.
    pub(crate) fn close(&mut self, net: &mut Net) {
        self.tcp().for_each(|handle| net.sockets.get_mut::<tcp::Socket<'_>>(handle).close());
    }

    /// Closes its sockets as a program's end does that left something unread.
    pub(crate) fn reset(&mut self, net: &mut Net) {
        self.tcp().for_each(|handle| net.sockets.get_mut::<tcp::Socket<'_>>(handle).abort());
    }

    /// Gives its sockets back. What is not closed yet is as if the machine had lost its memory.
    pub(crate) fn leave(&mut self, net: &mut Net) {
        for handle in self.sockets.drain(..) {
            net.sockets.remove(handle);
        }
    }

    /// The streams' sockets and that of the control connection, which stand before those of UDP.
    fn tcp(&self) -> impl Iterator<Item = SocketHandle> {
        self.sockets.iter().copied().take(STREAMS + 1)
    }
}

impl Observer<STREAMS> for Told {
    fn test_event(&mut self, event: Event, test: Progress<'_, STREAMS>) {
        if let Event::Finished(ending) = event {
            self.ending = Some(ending);
            let summaries = (0..STREAMS).filter_map(|index| test.accounts.summary(index));
            self.summaries = summaries.collect();
        }
    }

    fn not_reached(&mut self, _server: std::net::SocketAddr, why: NotReached) {
        self.not_reached = Some(why);
    }
}
