//! The lines over the whole test: each stream's two sides, the sums, and with `-V` what it cost. A
//! client shows what the server told it, or says that it told nothing; a server prints before it has
//! heard from its client and leaves the other side out.

use linerate_core::report::{Datagrams, Span};
use linerate_core::test::{End, Role};

use super::lines::{self, Label, Tag};
use super::{TextOptions, headers, view};
use crate::report::view::Side;
use crate::report::{CpuUse, StreamSummary, TestEnd, TestStart};

pub(super) fn text(options: &TextOptions, start: &TestStart, end: &TestEnd) -> String {
    let summary = Summary { options, start, end };
    let mut text = String::from(headers::SEPARATOR);
    if options.verbose {
        text += "Test Complete. Summary Results:\n";
    }
    text += headers::summary(start, end, |stream, side| summary.is_shown(stream.role, side));
    for &role in view::directions(&start.settings, start.connection.end) {
        text += &summary.direction(role);
    }
    if options.verbose && !options.plain {
        text.extend(end.engines.iter().map(|engine| format!("{}\n", engine.words())));
        if end.remote_batch_jitter {
            text += "Datagrams received by the other end: its jitter is that of batches\n";
        }
    }
    text
}

struct Summary<'a> {
    options: &'a TextOptions,
    start: &'a TestStart,
    end: &'a TestEnd,
}

impl Summary<'_> {
    /// The streams on which this end does what `role` says, and all that belongs to them.
    fn direction(&self, role: Role) -> String {
        let streams: Vec<_> =
            self.end.streams.iter().filter(|stream| stream.role == role).collect();
        let mut text: String = streams.iter().map(|stream| self.stream(stream)).collect();
        if streams.len() > 1 {
            text += &self.sum(&streams, role, Role::Sender);
            text += &self.sum(&streams, role, Role::Receiver);
        }
        if self.options.verbose {
            text += &self.cpu(role);
            text += &self.congestion(role);
        }
        text
    }

    fn stream(&self, stream: &StreamSummary) -> String {
        let label = Label::stream(self.start, stream.id, stream.role);
        let sent = view::side(stream, Role::Sender);
        let mut text = self.side_line(&label, stream.role, Role::Sender, sent);
        if let (Role::Receiver, Some(count @ 1..)) =
            (stream.role, stream.local.datagrams.out_of_order)
        {
            let duration_ns = stream.local.duration_ns.unwrap_or(0);
            text += &lines::out_of_order(self.start, stream.role, duration_ns, count);
        }
        if let Some(file) = self.end.file.as_ref().filter(|file| file.role == stream.role) {
            text += &lines::file(stream.local.bytes, file);
        }
        let received = view::side(stream, Role::Receiver);
        text += &self.side_line(&label, stream.role, Role::Receiver, received);
        text
    }

    fn sum(&self, streams: &[&StreamSummary], role: Role, side: Role) -> String {
        let sides: Vec<Side> = streams.iter().map(|stream| view::side(stream, side)).collect();
        // Of a UDP sum that is not here iperf3 does not even say so.
        if view::is_udp(&self.start.settings) && !self.is_shown(role, side) {
            return String::new();
        }
        let label = Label::sum(self.start, role);
        view::side_sum(&sides).map_or(String::new(), |sum| self.side_line(&label, role, side, sum))
    }

    /// The line of one side; `role` is what this end does on the stream.
    fn side_line(&self, label: &Label, role: Role, side: Role, numbers: Side) -> String {
        let (word, tag) = match side {
            Role::Sender => ("sender", Tag::Sender),
            Role::Receiver => ("receiver", Tag::Receiver),
        };
        let is_shown = self.is_shown(role, side);
        if !is_shown || !numbers.is_known {
            // The server's numbers did not come, which is not that it counted nothing.
            let is_said = is_shown || self.options.verbose;
            return if is_said { label.not_available(word) } else { String::new() };
        }
        let span = Span { start_ns: 0, end_ns: numbers.duration_ns };
        let data = lines::data(label, span, numbers.bytes, self.options.format);
        let rest = if view::is_udp(&self.start.settings) {
            lines::loss(&as_shown(numbers, side), tag)
        } else {
            lines::tcp_summary(label, numbers.retransmits, tag)
        };
        format!("{data}{rest}\n")
    }

    fn is_shown(&self, role: Role, side: Role) -> bool {
        role == side || self.start.connection.end == End::Client
    }

    /// iperf3 tells the cost of sending only; where data flows both ways it tells both.
    fn cpu(&self, role: Role) -> String {
        if role == Role::Receiver {
            return String::new();
        }
        let remote_use = match &self.end.remote_cpu {
            None if self.start.connection.end == End::Client => "not available".into(),
            cpu => cpu_use(&cpu.unwrap_or_default()),
        };
        let line = |local: &str, remote: &str| {
            let local_use = cpu_use(&self.end.local_cpu);
            format!("CPU Utilization: local/{local} {local_use}, remote/{remote} {remote_use}\n")
        };
        let mut text = line("sender", "receiver");
        if view::is_bidirectional(&self.start.settings) {
            text += &line("receiver", "sender");
        }
        text
    }

    fn congestion(&self, role: Role) -> String {
        if view::is_udp(&self.start.settings) {
            return String::new();
        }
        let (local, remote) = (&self.end.local_congestion, &self.end.remote_congestion);
        let remote = remote.as_ref().filter(|_| self.start.connection.end == End::Client);
        let (sender, receiver) = match role {
            Role::Sender => (local.as_ref(), remote),
            Role::Receiver => (remote, local.as_ref()),
        };
        let mut text = String::new();
        if let Some(name) = sender {
            text += &format!("snd_tcp_congestion {name}\n");
        }
        if let Some(name) = receiver {
            text += &format!("rcv_tcp_congestion {name}\n");
        }
        text
    }
}

/// A sender knows neither jitter nor loss; its line shows none.
fn as_shown(numbers: Side, side: Role) -> Datagrams {
    match side {
        Role::Sender => Datagrams { lost: Some(0), jitter_ns: 0, ..numbers.datagrams },
        Role::Receiver => numbers.datagrams,
    }
}

fn cpu_use(cpu: &CpuUse) -> String {
    let [total, user, system] =
        [cpu.total_micropercent, cpu.user_micropercent, cpu.system_micropercent]
            .map(|micropercent| micropercent as f64 / 1e6);
    format!("{total:.1}% ({user:.1}%u/{system:.1}%s)")
}
