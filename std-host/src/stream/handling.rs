//! How the streams of a test move their data, beyond what their plans say: what senders send, what
//! receivers do with it, and which help of the kernel is asked for. Help that is not there is gone
//! without, and a warning says so once a test.

use std::fs::File;
use std::io;
use std::sync::Arc;

use linerate_core::flow::StreamPlan;
use linerate_core::test::{Offload, Protocol, Role, TestSettings};
use socket2::Socket;

use super::check_cpu;
use super::datagrams::{Incoming, Outgoing};
use super::file::DataFile;
use super::intake::{Intake, Mail};
use super::sink::Sink;
use super::sorter::Seat;
use super::source::{Reader, Source};
use super::tcp;
use crate::report::Warning;
use crate::sys::{self, Channel};

/// What a test asks of its streams at this end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Handling {
    payload: Payload,
    zero_copy: bool,
    skip_rx_copy: bool,
    offload: Offload,
    file: Option<DataFile>,
    cpu: Option<u16>,
    peer_is_stock: bool,
}

/// What senders fill their blocks with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Payload {
    /// Random bytes, made once a test.
    #[default]
    Random,
    /// The digits 0 to 9, again and again.
    Digits,
}

/// What one stream's thread does, with all that it needs for it.
#[derive(Debug)]
pub(super) enum Work {
    /// A byte stream: what to send, and what to do when all of it was.
    SendBytes(Source, AtEnd),
    /// A byte stream: where to put it.
    ReceiveBytes(Sink),
    /// UDP: rows to send.
    SendDatagrams(Outgoing),
    /// UDP: rows that come.
    ReceiveDatagrams(Intake),
}

/// What a TCP sender does when it has sent all it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AtEnd {
    /// Leaves the connection open.
    Rest,
    /// Ends its direction, and gives the peer time to store what it was sent.
    TakeLeave,
}

impl Handling {
    /// What `settings` ask for, with this end's file and CPU; `peer_is_stock` if the other end is not
    /// known to be linerate.
    pub(crate) fn new(
        settings: &TestSettings,
        file: Option<DataFile>,
        cpu: Option<u16>,
        peer_is_stock: bool,
    ) -> Self {
        Self {
            peer_is_stock,
            payload: if settings.repeating_payload { Payload::Digits } else { Payload::Random },
            zero_copy: settings.zero_copy,
            skip_rx_copy: settings.skip_rx_copy,
            offload: settings.offload,
            file,
            cpu,
        }
    }

    /// The CPU that the streams' threads are to run on.
    pub(super) fn cpu(&self) -> Option<u16> {
        self.cpu
    }
}

/// Makes the work of all streams of a test, which share their payload.
#[derive(Debug)]
pub(super) struct Workshop {
    handling: Handling,
    payload: Arc<[u8]>,
    /// The payload in a file that the kernel can send.
    payload_file: Option<Arc<File>>,
    warnings: Vec<Warning>,
}

impl Workshop {
    /// Gets ready for these streams.
    ///
    /// # Errors
    /// When the system gives no random bytes.
    pub(super) fn new(handling: Handling, plans: &[StreamPlan]) -> io::Result<Self> {
        let senders = || plans.iter().filter(|plan| plan.role == Role::Sender);
        let payload = match senders().max_by_key(|plan| plan.block_bytes) {
            Some(plan) => handling.payload.block(plan)?,
            None => Arc::default(),
        };
        let mut workshop = Self { handling, payload, payload_file: None, warnings: Vec::new() };
        if let Some(plan) = senders().next().filter(|_| workshop.handling.zero_copy) {
            workshop.prepare_zero_copy(plan);
        }
        let receives = || plans.iter().any(|plan| plan.role == Role::Receiver);
        if workshop.handling.skip_rx_copy && !sys::SKIPS_RX_COPY && receives() {
            workshop.warn("--skip-rx-copy", "this system cannot do it");
        }
        if let Some(Err(error)) = workshop.handling.cpu.map(check_cpu) {
            workshop.warn("-A", &error.to_string());
        }
        Ok(workshop)
    }

    /// The work of one stream, which has a seat if its socket is not its own.
    ///
    /// # Errors
    /// When its file cannot be opened.
    pub(super) fn work(
        &mut self,
        channel: &Channel,
        seat: Option<&Arc<Seat>>,
        plan: &StreamPlan,
    ) -> io::Result<Work> {
        let file = self.handling.file.as_ref().filter(|file| file.role() == plan.role);
        let file = file.map(DataFile::open).transpose()?;
        Ok(match (plan.protocol, plan.role) {
            (Protocol::Udp, Role::Sender) => {
                // Nobody takes what comes.
                seat.inspect(|seat| seat.mailbox().close());
                Work::SendDatagrams(self.outgoing(channel, plan))
            }
            (Protocol::Udp, Role::Receiver) => {
                let socket = channel.socket();
                Work::ReceiveDatagrams(match seat {
                    Some(seat) => Intake::Mailbox(self.mail(seat, plan)),
                    None => Intake::Socket(self.incoming(socket, plan).timed(socket)),
                })
            }
            (_, Role::Sender) => {
                // iperf3 stores nothing more once it hears that the test is over, and since 3.16 the
                // last part of a block only when the connection ends.
                let is_stored = file.is_some() && self.handling.peer_is_stock;
                let at_end = if is_stored { AtEnd::TakeLeave } else { AtEnd::Rest };
                Work::SendBytes(self.source(plan, file)?, at_end)
            }
            (protocol, Role::Receiver) => {
                let buffer_bytes = tcp::buffer_bytes(plan.block_bytes);
                let skip = self.handling.skip_rx_copy && protocol == Protocol::Tcp;
                Work::ReceiveBytes(match file {
                    Some(file) => Sink::storing(buffer_bytes, file),
                    None => Sink::new(buffer_bytes, skip),
                })
            }
        })
    }

    /// What a person should know of it.
    pub(super) fn into_warnings(self) -> Vec<Warning> {
        self.warnings
    }

    fn source(&self, plan: &StreamPlan, file: Option<File>) -> io::Result<Source> {
        let Some(file) = file else {
            let (block, count) = (self.payload.clone(), blocks_a_call(plan));
            return Ok(match &self.payload_file {
                Some(file) => Source::BlocksUncopied(file.clone(), block, count),
                None => Source::Blocks(block, count),
            });
        };
        let is_uncopied = self.payload_file.is_some() || sys::PREFERS_SEND_FILE;
        let again = is_uncopied.then(|| file.try_clone()).transpose()?;
        let reader = Reader::new(file, plan.block_bytes as usize * blocks_a_call(plan));
        Ok(match again {
            Some(file) => Source::FileUncopied(file.into(), reader),
            None => Source::File(reader),
        })
    }

    fn outgoing(&mut self, channel: &Channel, plan: &StreamPlan) -> Outgoing {
        // Without it, what a queue here drops counts as lost on the path.
        let _ = sys::request_refusals(channel.socket());
        let (outgoing, is_cut) = Outgoing::new(channel, &self.payload[..plan.block_bytes as usize]);
        if let Err(error) = is_cut
            && self.handling.offload.gso
        {
            self.warn("--gsro", &format!("no segmentation: {error}"));
        }
        outgoing
    }

    fn incoming(&mut self, socket: &Socket, plan: &StreamPlan) -> Incoming {
        let datagram_bytes = plan.block_bytes as usize;
        if self.handling.skip_rx_copy && !self.handling.offload.gro {
            return Incoming::skipping(datagram_bytes);
        }
        if plan.joins_arrivals {
            match Incoming::joined(socket, datagram_bytes) {
                Ok(incoming) => {
                    if self.handling.skip_rx_copy {
                        self.warn("--skip-rx-copy", "with --gsro, headers lie between the data");
                    }
                    return incoming;
                }
                Err(error) if self.handling.offload.gro => {
                    self.warn("--gsro", &format!("nothing is joined: {error}"));
                }
                Err(_) => {}
            }
        }
        if self.handling.skip_rx_copy {
            Incoming::skipping(datagram_bytes)
        } else {
            Incoming::whole(datagram_bytes)
        }
    }

    fn mail(&mut self, seat: &Arc<Seat>, plan: &StreamPlan) -> Mail {
        if plan.may_wait {
            seat.be_patient();
        }
        if self.handling.offload.gro && !seat.joins() {
            self.warn("--gsro", "nothing is joined: all streams of this server share a socket");
        }
        Mail::new(seat.clone())
    }

    fn prepare_zero_copy(&mut self, plan: &StreamPlan) {
        if plan.protocol == Protocol::Udp {
            return self.warn("-Z", "datagrams get headers of their own, so they are copied");
        }
        match sys::file_of(&self.payload.repeat(blocks_a_call(plan))) {
            Ok(file) => self.payload_file = Some(Arc::new(file)),
            Err(error) => self.warn("-Z", &error.to_string()),
        }
    }

    /// Once a test and option.
    fn warn(&mut self, option: &'static str, reason: &str) {
        let said = |warning: &Warning| matches!(warning, Warning::Unsupported { option: said, .. } if *said == option);
        if !self.warnings.iter().any(said) {
            self.warnings.push(Warning::Unsupported { option, reason: reason.into() });
        }
    }
}

impl Payload {
    /// A block of it, shared by all streams of a test.
    pub(super) fn block(self, plan: &StreamPlan) -> io::Result<Arc<[u8]>> {
        let mut block = vec![0; plan.block_bytes as usize];
        match self {
            Self::Random => getrandom::fill(&mut block).map_err(io::Error::other)?,
            // iperf3 begins each block with the first digit.
            Self::Digits => {
                let digits = b"0123456789".iter().cycle();
                block.iter_mut().zip(digits).for_each(|(to, from)| *to = *from);
            }
        }
        Ok(block.into())
    }
}

/// Blocks that one call of a sender sends.
fn blocks_a_call(plan: &StreamPlan) -> usize {
    match plan.protocol {
        Protocol::Tcp => tcp::blocks_a_call(plan.block_bytes as usize),
        _ => 1,
    }
}
