//! What handlings do to the data: the same bytes on the wire and the same counts, with the kernel's
//! help and without it.

use std::fs;
use std::path::PathBuf;

use linerate_core::protocol::cookie::Cookie;
use linerate_core::test::{Direction, End, Offload, TestSettings};
use linerate_core::units::BitsPerSec;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

use super::tests::{Events, LOOPBACK, event, pair, plan, soon, start, tally, until};
use super::*;

/// A scratch folder that goes with its test.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("linerate-{test}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// The file of an end that sends it.
    fn to_send(&self, content: &[u8]) -> DataFile {
        fs::write(self.0.join("sent"), content).unwrap();
        DataFile::new(self.0.join("sent"), End::Client, Direction::Forward).unwrap()
    }

    /// The file of an end that stores in it.
    fn to_store(&self) -> DataFile {
        DataFile::new(self.0.join("stored"), End::Server, Direction::Forward).unwrap()
    }

    fn stored(&self) -> Vec<u8> {
        fs::read(self.0.join("stored")).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn settings(change: impl FnOnce(&mut TestSettings)) -> TestSettings {
    let mut settings = TestSettings::new(Protocol::Tcp);
    settings.repeating_payload = true;
    change(&mut settings);
    settings
}

fn handling(settings: &TestSettings, file: Option<DataFile>) -> Handling {
    Handling::new(settings, file, None, false)
}

#[tokio::test]
async fn zero_copy_changes_no_byte_on_the_wire() {
    // Blocks that cut the digits anywhere, and blocks of which one call sends several.
    for (block_bytes, limit) in [(12, 5_000), (1_000, 100_007), (131_072, 3_000_017)] {
        let mut plan = plan(Protocol::Tcp, block_bytes);
        plan.limit_bytes = Some(limit);
        // A rate makes for many partial blocks.
        plan.bitrate = (block_bytes == 1_000).then_some(BitsPerSec(100_000_000));
        let mut streams = Vec::new();
        for zero_copy in [false, true] {
            let settings = settings(|settings| settings.zero_copy = zero_copy);
            streams.push(on_the_wire(plan, handling(&settings, None)).await);
        }
        let digit = |at: u64| b"0123456789"[(at % u64::from(block_bytes) % 10) as usize];
        let expected: Vec<u8> = (0..limit).map(digit).collect();
        assert!(streams.iter().all(|bytes| *bytes == expected), "blocks of {block_bytes}");
    }
}

#[tokio::test]
async fn a_file_goes_out_whole_with_and_without_copies() {
    let folder = Folder::new("whole");
    for len in [0, 1, 131_072, 1_048_576, 3_000_017] {
        let content: Vec<u8> = (0..len).map(|at: u32| (at * 7 + at / 251) as u8).collect();
        let file = folder.to_send(&content);
        for zero_copy in [false, true] {
            let settings = settings(|settings| settings.zero_copy = zero_copy);
            let sent =
                on_the_wire(plan(Protocol::Tcp, 131_072), handling(&settings, Some(file.clone())));
            assert!(sent.await == content, "{len} bytes, zero copy {zero_copy}");
        }
    }
}

#[tokio::test]
async fn what_is_stored_is_what_is_counted() {
    let folder = Folder::new("stored");
    let (near, far) = pair(Protocol::Tcp).await;
    let mut receiving = receiver(Protocol::Tcp);
    receiving.limit_bytes = Some(1_000_003);
    let settings = settings(|_| {});
    let (mut receiver, mut events) =
        start(far, receiving, handling(&settings, Some(folder.to_store())));
    let (mut sender, _) = start(near, plan(Protocol::Tcp, 131_072), handling(&settings, None));
    assert_eq!(event(&mut events).await, StreamEvent::LimitReached);
    until(|| tally(&sender).bytes > 5_000_000).await;
    sender.stop().await;
    receiver.stop().await;
    assert_eq!(tally(&receiver).bytes, 1_000_003);
    let digits: Vec<u8> = (0..1_000_003).map(|at| b"0123456789"[at % 131_072 % 10]).collect();
    assert!(folder.stored() == digits);
}

#[tokio::test]
async fn all_that_arrived_before_the_stop_is_stored() {
    let folder = Folder::new("arrived");
    let (near, far) = pair(Protocol::Tcp).await;
    let settings = settings(|_| {});
    let mut sending = plan(Protocol::Tcp, 131_072);
    sending.limit_bytes = Some(7_654_321);
    let (mut receiver, _) =
        start(far, receiver(Protocol::Tcp), handling(&settings, Some(folder.to_store())));
    let (mut sender, mut events) = start(near, sending, handling(&settings, None));
    assert_eq!(event(&mut events).await, StreamEvent::LimitReached);
    receiver.stop().await;
    sender.stop().await;
    assert_eq!((tally(&receiver).bytes, folder.stored().len()), (7_654_321, 7_654_321));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_file_that_fails_is_told_once_and_nothing_hangs() {
    let settings = settings(|_| {});
    let full = DataFile::new("/dev/full".into(), End::Server, Direction::Forward).unwrap();
    let (near, far) = pair(Protocol::Tcp).await;
    let (sender, _) = start(near, plan(Protocol::Tcp, 131_072), handling(&settings, None));
    let (mut receiver, mut events) =
        start(far, receiver(Protocol::Tcp), handling(&settings, Some(full)));
    let no_space = StreamEvent::FileFailed { code: libc::ENOSPC };
    assert_eq!(event(&mut events).await, no_space);
    soon(receiver.stop()).await;
    drop(sender);
    soon(receiver.close()).await;
    assert!(events.try_recv().is_err());

    for zero_copy in [false, true] {
        let unreadable =
            DataFile::new("/proc/self/mem".into(), End::Client, Direction::Forward).unwrap();
        let settings = TestSettings { zero_copy, ..settings };
        let (near, _far) = pair(Protocol::Tcp).await;
        let (mut sender, mut events) =
            start(near, plan(Protocol::Tcp, 131_072), handling(&settings, Some(unreadable)));
        assert_eq!(event(&mut events).await, StreamEvent::FileFailed { code: libc::EIO });
        soon(sender.stop()).await;
    }
}

/// Whoever opens a pipe waits for its other end, and all tests of a server would.
#[cfg(unix)]
#[test]
fn a_server_waits_for_no_pipe() {
    let folder = Folder::new("pipe");
    let path = folder.0.join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    for direction in [Direction::Forward, Direction::Reverse, Direction::Bidirectional] {
        let error = DataFile::new(path.clone(), End::Server, direction).unwrap_err().to_string();
        assert_eq!(error, "must be a regular file, not a pipe");
    }
}

#[tokio::test]
async fn a_stock_peer_is_told_the_end_of_a_file_by_the_end_of_the_connection() {
    let folder = Folder::new("leave");
    let file = folder.to_send(b"all there is");
    let listener = TcpListener::bind(LOOPBACK).await.unwrap();
    let (socket, mut far) = dial(&listener).await;
    let handling = Handling::new(&settings(|_| {}), Some(file), None, true);
    let (_sender, mut events) = start(socket, plan(Protocol::Tcp, 131_072), handling);
    let mut bytes = Vec::new();
    soon(far.read_to_end(&mut bytes)).await.unwrap();
    assert_eq!(bytes, b"all there is");
    assert_eq!(event(&mut events).await, StreamEvent::LimitReached);
}

#[tokio::test]
async fn skipped_copies_are_counted_like_others() {
    for (protocol, block_bytes, limit) in [
        (Protocol::Tcp, 131_072, 10_000_017),
        (Protocol::Udp, 16, 16 * 250),
        (Protocol::Udp, 1_400, 1_400 * 90),
        (Protocol::Udp, 9_000, 9_000 * 10),
    ] {
        let settings = settings(|settings| settings.skip_rx_copy = true);
        same_counts(protocol, block_bytes, limit, &settings, &settings).await;
    }
}

#[tokio::test]
async fn rows_of_datagrams_are_counted_one_by_one() {
    let with = settings(|settings| settings.offload = Offload { gso: true, gro: true });
    let without = settings(|_| {});
    let both = TestSettings { skip_rx_copy: true, ..with };
    // The last is too long for two in a row, the one before it for more than three. So few of each
    // that the smallest receive buffer holds all of them.
    for (block_bytes, count) in [(16, 250), (100, 250), (1_400, 90), (20_000, 9), (60_000, 3)] {
        let limit = u64::from(block_bytes) * count;
        for (sending, receiving) in
            [(&with, &with), (&with, &without), (&without, &with), (&with, &both)]
        {
            same_counts(Protocol::Udp, block_bytes, limit, sending, receiving).await;
        }
    }
}

/// Sends so many bytes, and checks that every one arrives and is counted, and nothing else.
async fn same_counts(
    protocol: Protocol,
    block_bytes: u32,
    limit: u64,
    sending: &TestSettings,
    receiving: &TestSettings,
) {
    let (near, far) = pair(protocol).await;
    let mut plan = plan(protocol, block_bytes);
    plan.limit_bytes = Some(limit);
    let receiver_plan = StreamPlan { role: Role::Receiver, ..plan };
    let (mut receiver, _) = start(far, receiver_plan, handling(receiving, None));
    let (mut sender, mut events): (_, Events) = start(near, plan, handling(sending, None));
    assert_eq!(event(&mut events).await, StreamEvent::LimitReached);
    sender.stop().await;
    receiver.stop().await;
    let (sent, received) = (tally(&sender), tally(&receiver));
    let case = format!("{protocol:?} {block_bytes} {:?} {:?}", sending.offload, receiving.offload);
    assert_eq!((sent.bytes, received.bytes), (limit, limit), "{case}");
    assert_eq!((sent.blocks, sent.packets), (received.blocks, received.packets), "{case}");
    let wrong = (received.lost, received.duplicates, received.out_of_order);
    assert_eq!(wrong, (0, 0, 0), "{case}");
}

/// All that one sender puts on the wire, until it says that it has reached its end.
async fn on_the_wire(plan: StreamPlan, handling: Handling) -> Vec<u8> {
    let listener = TcpListener::bind(LOOPBACK).await.unwrap();
    let (socket, mut far) = dial(&listener).await;
    let (sender, mut events) = start(socket, plan, handling);
    let reading = tokio::spawn(async move {
        let mut bytes = Vec::new();
        far.read_to_end(&mut bytes).await.map(|_| bytes)
    });
    assert_eq!(event(&mut events).await, StreamEvent::LimitReached);
    soon(sender.close()).await;
    soon(reading).await.unwrap().unwrap()
}

async fn dial(listener: &TcpListener) -> (DataSocket, tokio::net::TcpStream) {
    let options = SocketOptions::new(&TestSettings::new(Protocol::Tcp), None);
    let cookie = Cookie::from_random([0; 36]);
    let remote = listener.local_addr().unwrap();
    let (near, far) =
        tokio::join!(connect_stream(remote, LocalPoint::Any, &cookie, &options), listener.accept());
    let mut far = far.unwrap().0;
    far.read_exact(&mut [0; Cookie::LEN]).await.unwrap();
    (near.unwrap(), far)
}

fn receiver(protocol: Protocol) -> StreamPlan {
    StreamPlan { role: Role::Receiver, ..plan(protocol, 131_072) }
}
