//! embassy-net with nothing on it but tasks that discard and send: what servers are compared with.
#![no_std]
#![no_main]

use cortex_m_rt::entry;
use embassy_net::tcp::{Error, TcpSocket};
use embassy_net::udp::{PacketMetadata, UdpSocket};
use embassy_net::{Stack, StackResources};
use linerate_firmware::bare::{Command, DATAGRAM_BYTES, Tally};
use linerate_firmware::network::{DATAGRAMS, PORT, TCP_BUFFER_BYTES, UDP_BUFFER_BYTES};
use static_cell::{ConstStaticCell, StaticCell};

#[entry]
fn main() -> ! {
    static RESOURCES: StaticCell<StackResources<2>> = StaticCell::new();
    linerate_firmware::embassy::run(&RESOURCES, |spawner, stack| {
        spawner.spawn(connections(stack).expect("the first of its kind"));
        spawner.spawn(datagrams(stack).expect("the first of its kind"));
    })
}

#[embassy_executor::task]
async fn connections(stack: Stack<'static>) {
    static BUFFERS: ConstStaticCell<[[u8; TCP_BUFFER_BYTES]; 2]> =
        ConstStaticCell::new([[0; TCP_BUFFER_BYTES]; 2]);
    let [receive, transmit] = BUFFERS.take();
    let mut socket = TcpSocket::new(stack, receive, transmit);
    socket.set_nagle_enabled(false);
    loop {
        if socket.accept(PORT).await.is_ok() {
            // Whoever breaks the connection is told nothing.
            let _ = serve(&mut socket).await;
        }
        socket.close();
        // Until the other end has closed, too.
        let _ = socket.flush().await;
        socket.abort();
        let _ = socket.flush().await;
    }
}

async fn serve(socket: &mut TcpSocket<'_>) -> Result<(), Error> {
    let mut command = [0; Command::BYTES];
    let mut come = 0;
    while come < command.len() {
        match socket.read(&mut command[come..]).await? {
            0 => return Ok(()),
            bytes => come += bytes,
        }
    }
    match Command::read(&command) {
        Some(Command::Discard) => {
            let mut tally = Tally::of_receiver();
            // The end of the data is an error of this call.
            while let Ok(come) = socket.read_with(|bytes| (bytes.len(), bytes.len())).await {
                tally.bytes += come as u64;
            }
            tally.tell();
        }
        Some(Command::Send(bytes)) => {
            let (mut tally, mut left) = (Tally::of_sender(), bytes as usize);
            while left > 0 {
                let most = left;
                let sent = socket.write_with(|buffer| {
                    let bytes = buffer.len().min(most);
                    (bytes, bytes)
                });
                let sent = sent.await?;
                left -= sent;
                tally.bytes += sent as u64;
            }
            socket.flush().await?;
            tally.tell();
        }
        Some(Command::End) | None => {}
    }
    Ok(())
}

#[embassy_executor::task]
async fn datagrams(stack: Stack<'static>) {
    static BUFFERS: ConstStaticCell<[[u8; UDP_BUFFER_BYTES]; 2]> =
        ConstStaticCell::new([[0; UDP_BUFFER_BYTES]; 2]);
    static METADATA: ConstStaticCell<[[PacketMetadata; DATAGRAMS]; 2]> =
        ConstStaticCell::new([[PacketMetadata::EMPTY; DATAGRAMS]; 2]);
    let [receive, transmit] = BUFFERS.take();
    let [received, transmitted] = METADATA.take();
    let mut socket = UdpSocket::new(stack, received, receive, transmitted, transmit);
    socket.bind(PORT).expect("the port is not zero, and the socket is fresh");
    let mut received: Option<Tally> = None;
    loop {
        let come =
            socket.recv_from_with(|datagram, from| (Command::read(datagram), datagram.len(), from));
        match come.await {
            (Some(Command::Discard), bytes, _) => {
                received.get_or_insert_with(Tally::of_receiver).add_datagram(bytes);
            }
            (Some(Command::Send(packets)), _, from) => {
                let mut tally = Tally::of_sender();
                for _ in 0..packets {
                    let sent = socket.send_to_with(DATAGRAM_BYTES, from, |room| (room.len(), ()));
                    if sent.await.is_ok() {
                        tally.add_datagram(DATAGRAM_BYTES);
                    }
                }
                tally.tell();
            }
            (Some(Command::End), ..) => {
                if let Some(tally) = received.take() {
                    tally.tell();
                }
            }
            (None, ..) => {}
        }
    }
}
