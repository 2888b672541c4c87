//! The lines with numbers. Each begins with whose numbers they are, when, how much and how fast;
//! what follows depends on the transport and on what is known. Widths and blanks are iperf3's,
//! trailing ones too.

use std::fmt;

use linerate_core::report::{Datagrams, Span, TcpStats};
use linerate_core::test::{End, Role, StreamId};

use super::view;
use crate::report::quantity::{self, UnitFormat, percentage, seconds};
use crate::report::{DiskFile, TestStart};

/// Whose numbers a line shows.
pub(super) struct Label {
    /// The socket; none for a sum over streams.
    socket: Option<i32>,
    /// Who sends, in tests where both do.
    role: &'static str,
}

impl Label {
    pub(super) fn stream(start: &TestStart, id: StreamId, role: Role) -> Self {
        Self { socket: Some(view::socket_of(start, id)), role: role_tag(start, role) }
    }

    pub(super) fn sum(start: &TestStart, role: Role) -> Self {
        Self { socket: None, role: role_tag(start, role) }
    }

    /// The line that stands for numbers of the other end that are not here.
    pub(super) fn not_available(&self, side: &str) -> String {
        let id = Self { socket: self.socket, role: "" };
        format!("{id} ({side} statistics not available)\n")
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.socket {
            Some(socket) => write!(f, "[{socket:>3}]{}", self.role),
            None => write!(f, "[SUM]{}", self.role),
        }
    }
}

/// Who sends, in tests where both do; else nothing.
pub(super) fn role_tag(start: &TestStart, role: Role) -> &'static str {
    if !view::is_bidirectional(&start.settings) {
        return "";
    }
    match (role, start.connection.end) {
        (Role::Sender, End::Client) => "[TX-C]",
        (Role::Receiver, End::Client) => "[RX-C]",
        (Role::Sender, End::Server) => "[TX-S]",
        (Role::Receiver, End::Server) => "[RX-S]",
    }
}

/// The last word of a line.
#[derive(Debug, Clone, Copy)]
pub(super) enum Tag {
    Empty,
    Omitted,
    Sender,
    Receiver,
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "",
            Self::Omitted => "(omitted)",
            Self::Sender => "sender",
            Self::Receiver => "receiver",
        })
    }
}

/// What all lines begin with.
pub(super) fn data(label: &Label, span: Span, bytes: u64, format: Option<UnitFormat>) -> String {
    let rate = quantity::rate(quantity::bits_per_second(bytes, span.nanos()), format);
    format!(
        "{label} {:>6.2}-{:<6.2} sec  {}s  {rate}s/sec",
        seconds(span.start_ns),
        seconds(span.end_ns),
        quantity::amount(bytes),
    )
}

/// The rest of a TCP interval. A sum has no congestion window of its own.
pub(super) fn tcp_interval(label: &Label, tcp: Option<&TcpStats>, tag: Tag) -> String {
    let Some((tcp, retransmits)) = tcp.and_then(|tcp| Some((tcp, tcp.retransmits?))) else {
        return tcp_plain(tag);
    };
    if label.socket.is_none() {
        return tcp_sum(retransmits, tag);
    }
    let cwnd = quantity::amount(tcp.cwnd_bytes.unwrap_or(0));
    format!("  {retransmits:>3}   {cwnd}s       {tag}")
}

/// The rest of a TCP summary line.
pub(super) fn tcp_summary(label: &Label, retransmits: Option<u64>, tag: Tag) -> String {
    match (retransmits, label.socket) {
        (None, _) => tcp_plain(tag),
        (Some(retransmits), None) => tcp_sum(retransmits, tag),
        (Some(retransmits), Some(_)) => format!("  {retransmits:>3}            {tag}"),
    }
}

fn tcp_sum(retransmits: u64, tag: Tag) -> String {
    format!("  {retransmits:>3}             {tag}")
}

fn tcp_plain(tag: Tag) -> String {
    format!("                  {tag}")
}

/// The rest of a sender's UDP interval. With data both ways, a pad stands where receivers have
/// their jitter.
pub(super) fn packets(packets: u64, is_bidirectional: bool, tag: Tag) -> String {
    let pad = if is_bidirectional { "          " } else { "" };
    format!(" {pad} {packets}  {tag}")
}

/// The rest of a receiver's UDP interval and of all UDP summary lines.
pub(super) fn loss(datagrams: &Datagrams, tag: Tag) -> String {
    let Datagrams { packets, lost, jitter_ns, .. } = *datagrams;
    let jitter_ms = seconds(jitter_ns) * 1000.0;
    match lost {
        Some(lost) => {
            let percent = quantity::percent(percentage(lost, packets));
            format!("  {jitter_ms:>5.3} ms  {lost}/{packets} ({percent}%)  {tag}")
        }
        None => format!("  {jitter_ms:>5.3} ms  Unknown/{packets}  {tag}"),
    }
}

/// The line of a receiver that got datagrams late; it says SUM although it counts one stream, as
/// iperf3's does.
pub(super) fn out_of_order(start: &TestStart, role: Role, duration_ns: u64, count: u64) -> String {
    let label = Label::sum(start, role);
    let end = seconds(duration_ns);
    format!("{label} {:>4.1}-{end:>4.1} sec  {count} datagrams received out-of-order\n", 0.0)
}

/// The line of a test that moves a file.
pub(super) fn file(bytes: u64, file: &DiskFile) -> String {
    format!(
        "        Sent {} / {} ({}%) of {}\n",
        quantity::amount(bytes),
        quantity::amount(file.size_bytes),
        quantity::file_percentage(bytes, file.size_bytes),
        file.name,
    )
}
