//! smoltcp with nothing on it but a loop that discards and sends: what servers are compared with.
#![no_std]
#![no_main]

use cortex_m_rt::entry;
use linerate_firmware::bare::{Command, DATAGRAM_BYTES, Tally};
use linerate_firmware::network::{DATAGRAMS, PORT, TCP_BUFFER_BYTES, UDP_BUFFER_BYTES};
use smoltcp::iface::{SocketHandle, SocketSet, SocketStorage};
use smoltcp::socket::{tcp, udp};
use static_cell::ConstStaticCell;

#[entry]
fn main() -> ! {
    static TCP: ConstStaticCell<[[u8; TCP_BUFFER_BYTES]; 2]> =
        ConstStaticCell::new([[0; TCP_BUFFER_BYTES]; 2]);
    static UDP: ConstStaticCell<[[u8; UDP_BUFFER_BYTES]; 2]> =
        ConstStaticCell::new([[0; UDP_BUFFER_BYTES]; 2]);
    static METADATA: ConstStaticCell<[[udp::PacketMetadata; DATAGRAMS]; 2]> =
        ConstStaticCell::new([[udp::PacketMetadata::EMPTY; DATAGRAMS]; 2]);
    static PLACES: ConstStaticCell<[SocketStorage<'static>; 2]> =
        ConstStaticCell::new([SocketStorage::EMPTY; 2]);

    let mut sockets = SocketSet::new(&mut PLACES.take()[..]);
    let [receive, transmit] = TCP.take().each_mut().map(|buffer| &mut buffer[..]);
    let (receive, transmit) = (tcp::SocketBuffer::new(receive), tcp::SocketBuffer::new(transmit));
    let tcp = sockets.add(tcp::Socket::new(receive, transmit));
    let [receive, transmit] = UDP.take().each_mut().map(|buffer| &mut buffer[..]);
    let [received, transmitted] = METADATA.take().each_mut().map(|places| &mut places[..]);
    let mut socket = udp::Socket::new(
        udp::PacketBuffer::new(received, receive),
        udp::PacketBuffer::new(transmitted, transmit),
    );
    socket.bind(PORT).expect("the port is not zero, and the socket is fresh");
    let udp = sockets.add(socket);

    let (mut connection, mut datagrams) = (Connection::Awaited, Datagrams::default());
    linerate_firmware::smoltcp::run(sockets, |_, _, sockets| {
        connection.work(sockets, tcp);
        datagrams.work(sockets, udp);
        None
    })
}

/// What the one TCP connection does.
enum Connection {
    Awaited,
    Discards(Tally),
    Sends(Tally, usize),
    Closes,
}

impl Connection {
    fn work(&mut self, sockets: &mut SocketSet<'_>, handle: SocketHandle) {
        let socket = sockets.get_mut::<tcp::Socket<'_>>(handle);
        match self {
            Self::Awaited => {
                if !socket.is_open() {
                    socket.listen(PORT).expect("it is closed, and the port is not zero");
                }
                if socket.recv_queue() >= Command::BYTES {
                    socket.set_nagle_enabled(false);
                    let begin = socket.recv(|bytes| (Command::BYTES, Command::read(bytes)));
                    match begin.expect("so many bytes are there") {
                        Some(Command::Discard) => *self = Self::Discards(Tally::of_receiver()),
                        Some(Command::Send(bytes)) => {
                            *self = Self::Sends(Tally::of_sender(), bytes as usize);
                        }
                        Some(Command::End) | None => socket.abort(),
                    }
                }
            }
            Self::Discards(tally) => {
                while socket.can_recv() {
                    let Ok(come) = socket.recv(|bytes| (bytes.len(), bytes.len())) else { break };
                    tally.bytes += come as u64;
                }
                if !socket.may_recv() {
                    tally.tell();
                    socket.close();
                    *self = Self::Closes;
                }
            }
            Self::Sends(tally, left) => {
                while *left > 0 && socket.can_send() {
                    let most = *left;
                    let sent = socket.send(|buffer| {
                        let bytes = buffer.len().min(most);
                        (bytes, bytes)
                    });
                    let Ok(sent) = sent else { break };
                    *left -= sent;
                    tally.bytes += sent as u64;
                }
                if *left == 0 && socket.send_queue() == 0 || !socket.may_send() {
                    tally.tell();
                    socket.close();
                    *self = Self::Closes;
                }
            }
            Self::Closes => {
                if matches!(socket.state(), tcp::State::TimeWait | tcp::State::Closed) {
                    socket.abort();
                    *self = Self::Awaited;
                }
            }
        }
    }
}

/// What the UDP port does: count, and send what it was asked for.
#[derive(Default)]
struct Datagrams {
    received: Option<Tally>,
    sends: Option<(Tally, udp::UdpMetadata, u32)>,
}

impl Datagrams {
    fn work(&mut self, sockets: &mut SocketSet<'_>, handle: SocketHandle) {
        let socket = sockets.get_mut::<udp::Socket<'_>>(handle);
        while let Ok((datagram, from)) = socket.recv() {
            match Command::read(datagram) {
                Some(Command::Discard) => {
                    let tally = self.received.get_or_insert_with(Tally::of_receiver);
                    tally.add_datagram(datagram.len());
                }
                Some(Command::Send(packets)) => {
                    self.sends = Some((Tally::of_sender(), from, packets));
                }
                Some(Command::End) => {
                    if let Some(tally) = self.received.take() {
                        tally.tell();
                    }
                }
                None => {}
            }
        }
        let Some((tally, to, left)) = &mut self.sends else { return };
        while *left > 0 && socket.send(DATAGRAM_BYTES, *to).is_ok() {
            *left -= 1;
            tally.add_datagram(DATAGRAM_BYTES);
        }
        if *left == 0 {
            tally.tell();
            self.sends = None;
        }
    }
}
