//! A client on the same stack as the server, which can break off at any point.

use std::ops::Deref;

use ::smoltcp::iface::SocketHandle;
use ::smoltcp::socket::{tcp, udp};
use ::smoltcp::time::Instant;
use ::smoltcp::wire::IpEndpoint;
use linerate_embedded::engine::protocol::cookie::Cookie;
use linerate_embedded::engine::session::{ClientConfig, Phase};
use linerate_embedded::engine::test::TestSettings;
use linerate_embedded::smoltcp;
use linerate_embedded::{ClientStorage, NotBegun};

use super::pair::{MTU, Peer, STREAMS};
use super::told::ClientTold;
use super::world::Net;

pub(crate) struct Client {
    client: smoltcp::Client<'static, STREAMS>,
    sockets: Vec<SocketHandle>,
    told: ClientTold,
}

impl Client {
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
        Ok(Self { client, sockets, told: ClientTold::default() })
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

impl Peer for Client {
    fn told(&self) -> impl Deref<Target = ClientTold> {
        &self.told
    }

    fn running(&self) -> Option<Phase> {
        self.client.phase()
    }

    fn is_closed(&self) -> bool {
        !self.client.is_busy()
    }
}
