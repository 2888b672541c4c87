//! Two network namespaces with a TAP device in each, and a link between them that does what a model
//! says. Real programs run at its two ends. Both ends have the clock of this machine, so the offset
//! of a model's clocks has no place here.

use std::fmt;
use std::fs::File;
use std::io::{self, PipeWriter};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use smoltcp::phy::{Medium, TunTapInterface};

use super::model::{LinkCounts, LinkModel};
use super::noise::{Samples, Spread};
use super::shovel::{Orders, Shared, Shovel};
use super::trace::Trace;
use crate::namespace::Namespace;

/// What a link is like.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wire {
    /// From the near end to the far end.
    pub there: LinkModel,
    /// From the far end to the near end.
    pub back: LinkModel,
    /// What every chance depends on.
    pub seed: u64,
    /// Shorter frames, with their Ethernet header, only take the latency: so a control connection
    /// lives on, and the fate of the data does not depend on it. They are not in the traces.
    pub data_from_bytes: usize,
    /// And so much more from the near end to the far end: so the word that a test is over comes after
    /// all of its data.
    pub word_later_ns: u64,
    /// Of frames as long as that, only datagrams of UDP are data.
    pub only_udp: bool,
    /// So many frames of data are lost at the start, there and back, whatever the models say.
    pub first_lost: [u64; 2],
}

/// A link that is up. Everything is taken down when it is dropped.
#[derive(Debug)]
pub struct TapLink {
    // Fields are dropped in this order: the devices, which the thread holds, before the networks.
    _thread: Running,
    shared: Arc<Shared>,
    /// Where clients run.
    pub near: Namespace,
    /// Where servers run.
    pub far: Namespace,
    latency_ns: u64,
}

/// What a link has done.
#[derive(Debug, Clone)]
pub struct Passed {
    /// Frames of data, from the near end to the far end, and back.
    pub counts: [LinkCounts; 2],
    /// The same one by one.
    pub traces: [Trace; 2],
    /// How much later than the model says frames were handed over.
    pub lateness: Spread,
    /// Frames that the system dropped before this link saw them.
    pub unseen: [u64; 2],
}

impl TapLink {
    /// Makes the networks and joins them.
    ///
    /// # Panics
    ///
    /// When the system does not let it; see [`may_make_namespaces`](crate::namespace::may_make_namespaces).
    pub fn start(wire: &Wire) -> Self {
        let models = [wire.there, wire.back];
        assert!(models.iter().all(|model| model.clock_offset_ns == 0), "there is only one clock");
        let (near, far) = (Namespace::new(), Namespace::new());
        let open = |namespace: &Namespace| namespace.enter(open_tap).expect("a TAP device");
        let devices = [open(&near), open(&far)];
        set_up(&near, &NEAR, &FAR);
        set_up(&far, &FAR, &NEAR);
        let shared = Arc::new(Shared::default());
        let orders = Orders {
            models,
            seed: wire.seed,
            data_from_bytes: wire.data_from_bytes,
            later_ns: [wire.word_later_ns, 0],
            only_udp: wire.only_udp,
            first_lost: wire.first_lost,
        };
        Self {
            _thread: Running::start(devices, orders, Arc::clone(&shared)),
            shared,
            near,
            far,
            latency_ns: wire.there.latency_ns + wire.back.latency_ns,
        }
    }

    /// Loses everything from here on.
    pub fn cut(&self) {
        self.shared.set_cut(true);
    }

    /// Carries frames again after a cut.
    pub fn mend(&self) {
        self.shared.set_cut(false);
    }

    /// What it has done so far.
    pub fn passed(&self) -> Passed {
        let seen = self.shared.seen();
        Passed {
            unseen: [&self.near, &self.far].map(dropped_by_the_system),
            lateness: seen.lateness(),
            counts: seen.counts,
            traces: seen.traces,
        }
    }

    /// How much longer than the model says a small datagram takes to the far end and back: the
    /// programs' own sockets and the waking of every thread on the way included.
    ///
    /// # Errors
    ///
    /// When a socket fails, or too many datagrams are lost for a measurement.
    pub fn round_trips(&self, count: usize) -> io::Result<Spread> {
        let bind = |at: &'static str| move || UdpSocket::bind((at, 0));
        let near = self.near.enter(bind(NEAR.v4))?;
        let far = self.far.enter(bind(FAR.v4))?;
        let longest = Duration::from_nanos(self.latency_ns) + PROBE_LIMIT;
        near.set_read_timeout(Some(longest))?;
        far.set_read_timeout(Some(longest))?;
        near.connect(far.local_addr()?)?;
        far.connect(near.local_addr()?)?;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut probe = [0; 8];
                for _ in 0..count {
                    let Ok(len) = far.recv(&mut probe) else { return };
                    let Ok(_) = far.send(&probe[..len]) else { return };
                }
            });
            let mut samples = Samples::default();
            for index in 0..count as u64 {
                let sent = Instant::now();
                near.send(&index.to_be_bytes())?;
                let mut probe = [0; 8];
                while probe != index.to_be_bytes() {
                    near.recv(&mut probe)?;
                }
                let took = u64::try_from(sent.elapsed().as_nanos()).unwrap_or(u64::MAX);
                samples.record(took.saturating_sub(self.latency_ns));
            }
            Ok(samples.spread())
        })
    }
}

impl fmt::Display for Passed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = ["there", "back"];
        for ((name, counts), unseen) in names.iter().zip(self.counts).zip(self.unseen) {
            let LinkCounts { sent, lost, overflowed, duplicated, reordered } = counts;
            writeln!(
                f,
                "{name:<5}  {sent} frames, {lost} lost, {overflowed} dropped by a full queue, \
                 {duplicated} doubled, {reordered} overtaken; {unseen} never came to the link"
            )?;
        }
        write!(f, "noise  frames handed over late by: {}", self.lateness)
    }
}

/// One end's addresses.
#[derive(Debug, Clone, Copy)]
pub struct Addresses {
    /// IPv4.
    pub v4: &'static str,
    /// IPv6.
    pub v6: &'static str,
    mac: &'static str,
}

/// The end where clients run.
pub const NEAR: Addresses = Addresses { v4: "10.77.0.1", v6: "fd77::1", mac: "02:00:00:00:77:01" };
/// The end where servers run.
pub const FAR: Addresses = Addresses { v4: "10.77.0.2", v6: "fd77::2", mac: "02:00:00:00:77:02" };

/// A device that the system forgets with its last descriptor.
fn open_tap() -> io::Result<File> {
    let device = TunTapInterface::new(DEVICE, Medium::Ethernet)?;
    // A copy that this process owns, closes, and does not leave to its children.
    let process = pidfd_open(getpid(), PidfdFlags::empty())?;
    let copy = pidfd_getfd(process, device.as_raw_fd(), PidfdGetfdFlags::empty())?;
    Ok(File::from(copy))
}

/// The ends know each other from the start, so that no question for an address can be lost.
fn set_up(namespace: &Namespace, own: &Addresses, other: &Addresses) {
    // Room for what comes while the link's thread waits for a processor.
    namespace.ip(&format!("link set {DEVICE} address {} txqueuelen {QUEUE_FRAMES}", own.mac));
    namespace.ip(&format!("address add {}/24 dev {DEVICE}", own.v4));
    namespace.ip(&format!("address add {}/64 dev {DEVICE} nodad", own.v6));
    namespace.ip(&format!("link set {DEVICE} up"));
    for address in [other.v4, other.v6] {
        let mac = other.mac;
        namespace.ip(&format!("neighbour add {address} lladdr {mac} dev {DEVICE} nud permanent"));
    }
}

fn dropped_by_the_system(namespace: &Namespace) -> u64 {
    let mut command = namespace.command("cat".as_ref());
    let path = format!("/sys/class/net/{DEVICE}/statistics/tx_dropped");
    let output = command.arg(path).output().expect("the ip command is there");
    String::from_utf8_lossy(&output.stdout).trim().parse().expect("a number")
}

/// The thread of a link. It ends when its pipe is closed.
#[derive(Debug)]
struct Running {
    stop: Option<PipeWriter>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Running {
    fn start(devices: [File; 2], orders: Orders, shared: Arc<Shared>) -> Self {
        let (stopped, stop) = io::pipe().expect("a pipe");
        let thread =
            std::thread::spawn(move || Shovel::new(devices, &orders, shared, stopped).run());
        Self { stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop = None;
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(Ok(()))) | None => {}
            // A panic here during another one would end the process before the networks are gone.
            failed => eprintln!("the link failed: {failed:?}"),
        }
    }
}

const DEVICE: &str = "tap0";
const QUEUE_FRAMES: u32 = 10_000;
const PROBE_LIMIT: Duration = Duration::from_secs(2);
