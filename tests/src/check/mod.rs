//! Both ends' JSON documents of one test, held against what was asked for and against each other.
//! Every law is one method; a broken law is one line that says what was expected and what was found.
//! Where stock iperf3 is known to break a law, `tolerance` says by how much and why.

mod sum;
mod tolerance;

use serde_json::Value;

use crate::case::{Case, Direction, End, Way};
use crate::process::Ended;
use crate::tool::Tool;

use self::sum::Sum;
use self::tolerance::Tolerance;

/// One end of a test that is over.
#[derive(Debug)]
pub struct Report<'a> {
    /// Who wrote it.
    pub tool: Tool,
    /// The exit code of the process.
    pub code: Option<i32>,
    /// The document.
    pub document: &'a Value,
}

impl<'a> Report<'a> {
    /// The report of a process that wrote one document.
    pub fn new(tool: Tool, ended: &Ended, document: &'a Value) -> Self {
        Self { tool, code: ended.code, document }
    }
}

/// Holds both reports against the case and each other; returns every law that is broken.
pub fn check(case: &Case, client: &Report<'_>, server: &Report<'_>) -> Vec<String> {
    Check { case, client, server, is_timed: true, faults: Vec::new() }.all()
}

/// The same without the laws about time: for so many tests at once that a small machine runs their
/// clients late.
pub fn check_counts(case: &Case, client: &Report<'_>, server: &Report<'_>) -> Vec<String> {
    Check { case, client, server, is_timed: false, faults: Vec::new() }.all()
}

struct Check<'a> {
    case: &'a Case,
    client: &'a Report<'a>,
    server: &'a Report<'a>,
    is_timed: bool,
    faults: Vec<String>,
}

impl Check<'_> {
    fn all(mut self) -> Vec<String> {
        self.both_ended_well();
        if self.faults.is_empty() {
            self.both_understood_the_same_test();
            self.streams_are_complete();
            self.amount_is_kept();
            for &way in self.case.ways() {
                self.ends_agree(way);
                self.nothing_is_received_that_was_not_sent(way);
                self.packets_fit_bytes(way);
                self.rate_is_kept(way);
                for side in [self.client, self.server] {
                    self.intervals_add_up(side, way);
                    self.streams_add_up(side, way);
                    self.time_is_right(side, way);
                    self.rate_is_bytes_by_time(side, way);
                }
            }
            self.server_output_came();
        }
        self.faults
    }

    fn both_ended_well(&mut self) {
        for (role, side) in [("client", self.client), ("server", self.server)] {
            let (code, error) = (side.code, &side.document["error"]);
            self.claim(code == Some(0), || format!("exit code of the {role} is {code:?}"));
            self.claim(error.is_null(), || format!("the {role} reports {error}"));
        }
    }

    fn both_understood_the_same_test(&mut self) {
        let case = self.case;
        let (seconds, bytes, blocks) = match case.end {
            End::Seconds(seconds) => (seconds, 0, 0),
            End::Bytes(bytes) => (0, bytes, 0),
            End::Blocks(blocks) => (0, 0, blocks),
        };
        for (role, side) in [("client", self.client), ("server", self.server)] {
            let start = &side.document["start"]["test_start"];
            let protocol = if case.udp { "UDP" } else { "TCP" };
            self.claim(start["protocol"] == protocol, || {
                format!("{role}: protocol is {}, not {protocol}", start["protocol"])
            });
            let reverse = u64::from(case.direction == Direction::Reverse);
            let bidir = u64::from(case.direction == Direction::Both);
            let mut expected = vec![
                ("num_streams", case.streams),
                ("omit", case.omit),
                ("duration", seconds),
                ("bytes", bytes),
                ("blocks", blocks),
                ("reverse", reverse),
            ];
            expected.extend(case.len.map(|len| ("blksize", len)));
            expected.extend(case.rate.map(|rate| ("target_bitrate", rate)));
            if !start["bidir"].is_null() {
                expected.push(("bidir", bidir));
            }
            for (key, value) in expected {
                let found = &start[key];
                self.claim(found.as_u64() == Some(value), || {
                    format!("{role}: test_start.{key} is {found}, not {value}")
                });
            }
        }
        let cookies = [self.client, self.server].map(|side| &side.document["start"]["cookie"]);
        self.claim(cookies[0] == cookies[1], || format!("different cookies: {cookies:?}"));
    }

    fn streams_are_complete(&mut self) {
        let expected = self.case.streams as usize * self.case.ways().len();
        for (role, side) in [("client", self.client), ("server", self.server)] {
            for path in ["/start/connected", "/end/streams"] {
                let found = list(side.document, path).len();
                self.claim(found == expected, || {
                    format!("{role}: {found} entries in {path}, not {expected}")
                });
            }
            let senders = list(side.document, "/end/streams")
                .iter()
                .filter(|stream| self.stream_end(stream, true)["sender"] == true)
                .count() as u64;
            let own_ways = self.case.ways().iter().filter(|way| self.sends(side, **way)).count();
            let expected = self.case.streams * own_ways as u64;
            self.claim(senders == expected, || {
                format!("{role}: {senders} streams say that it sends, not {expected}")
            });
        }
    }

    /// What a client shows of its server is what the server measured.
    fn ends_agree(&mut self, way: Way) {
        let kind = if way == Way::ToServer { "sum_received" } else { "sum_sent" };
        let shown = self.sum(self.client, kind, way);
        let measured = self.sum(self.server, kind, way);
        let by_chance = if kind == "sum_sent" { self.counted_by_chance(way) } else { 0 };
        self.claim(shown.bytes.abs_diff(measured.bytes) <= by_chance, || {
            format!("{way:?}: client shows {kind} {}, server has {}", shown.bytes, measured.bytes)
        });
        let apart = (shown.seconds - measured.seconds).abs();
        let most = Tolerance::of(self.client).seconds_shown_apart;
        self.claim(!self.is_timed || apart <= most, || {
            format!(
                "{way:?}: client shows {kind} over {} s, server has {} s",
                shown.seconds, measured.seconds
            )
        });
    }

    /// Received is at most what was sent, and what is missing fits in the buffers between the two
    /// ends. With an omitted start the two ends begin to count a moment apart, either way.
    fn nothing_is_received_that_was_not_sent(&mut self, way: Way) {
        let (sent, received) = (self.own_sent(way), self.own_received(way));
        let apart = if self.case.omit > 0 { self.on_the_way() } else { 0 };
        let apart = apart + self.counted_by_chance(way);
        self.claim(received.bytes <= sent.bytes + apart, || {
            format!("{way:?}: received {} bytes of {} sent", received.bytes, sent.bytes)
        });
        let missing = sent.bytes.saturating_sub(received.bytes);
        let receiver = if way == Way::ToServer { self.server } else { self.client };
        let behind = Tolerance::of(receiver).bytes_behind_at_the_end * self.case.streams;
        let most = self.on_the_way() + if self.case.udp { 0 } else { behind };
        self.claim(missing <= most, || {
            format!("{way:?}: {missing} of {} bytes are missing, {most} may be", sent.bytes)
        });
        let by_time = matches!(self.case.end, End::Seconds(_));
        if by_time || !Tolerance::of(receiver).may_miss_everything {
            self.claim(received.bytes > 0, || format!("{way:?}: nothing was received"));
        }
    }

    /// Bytes that the sender of this way may have sent and not counted.
    fn counted_by_chance(&self, way: Way) -> u64 {
        let sender = if way == Way::ToServer { self.client } else { self.server };
        Tolerance::of(sender).blocks_counted_by_chance * self.len() * self.case.streams
    }

    /// What may be between the ends when the clocks stop. TCP: the buffers of both sockets, and without
    /// a rate also what goes through while the news of the end is on its way. UDP: a receive buffer
    /// and what a busy machine loses.
    fn on_the_way(&self) -> u64 {
        let streams = self.case.streams;
        let sent = self.case.ways().iter().map(|way| self.own_sent(*way).bytes).max().unwrap_or(0);
        if self.case.udp {
            return sent / 10 + streams * 512 * 1024;
        }
        match self.case.rate {
            Some(_) => streams * (2 << 20),
            None => streams * (16 << 20) + sent / 20,
        }
    }

    /// A datagram that was counted has exactly the agreed size.
    fn packets_fit_bytes(&mut self, way: Way) {
        if !self.case.udp {
            return;
        }
        let len = self.len();
        let (sent, received) = (self.own_sent(way), self.own_received(way));
        let by_chance = self.counted_by_chance(way);
        self.claim((sent.packets * len).abs_diff(sent.bytes) <= by_chance, || {
            format!("{way:?}: {} bytes sent in {} packets of {len}", sent.bytes, sent.packets)
        });
        let arrived = received.packets.saturating_sub(received.lost);
        self.claim(arrived * len == received.bytes, || {
            let (bytes, packets, lost) = (received.bytes, received.packets, received.lost);
            format!("{way:?}: {bytes} bytes received, but {packets} packets less {lost} of {len}")
        });
        let most = sent.packets + by_chance / len;
        self.claim(received.packets <= most || self.case.omit > 0, || {
            format!("{way:?}: {} packets seen of {} sent", received.packets, sent.packets)
        });
    }

    /// The client alone ends a test by amount: when its sent or its received bytes reach it. A server
    /// stops by itself where nothing can be missing then, after whole blocks.
    fn amount_is_kept(&mut self) {
        let len = self.len();
        let tolerance = Tolerance::of(self.client);
        let amount = match self.case.end {
            End::Seconds(_) => return,
            End::Bytes(bytes) => bytes,
            End::Blocks(blocks) => blocks * len,
        };
        let sent = self.own_sent(Way::ToServer).bytes;
        let received = self.own_received(Way::ToClient).bytes;
        let reached = match self.case.direction {
            Direction::Forward => sent,
            Direction::Reverse => received,
            // Whichever way is first ends both.
            Direction::Both => sent.max(received),
        };
        let partial = !self.case.udp && matches!(self.case.end, End::Blocks(_));
        let part = if partial { tolerance.part_of_a_block_that_counts } else { 1.0 };
        let least = (amount as f64 * part) as u64;
        self.claim(reached >= least, || format!("{reached} bytes reached of {amount}"));
        if self.case.direction != Direction::Reverse {
            let streams = self.case.streams;
            let datagrams = if self.case.udp && amount % len != 0 { streams * len } else { 0 };
            let over = tolerance.blocks_over_the_amount * len * streams;
            let in_an_interval = self.case.rate.unwrap_or(0) * streams / 8;
            let rest = if tolerance.ends_with_an_interval { in_an_interval } else { 0 };
            let most = amount + datagrams + over + rest;
            self.claim(sent <= most, || format!("{sent} bytes sent, at most {most} are right"));
        }
        let stops = self.server.tool == Tool::Linerate && !self.case.udp && self.case.omit == 0;
        if stops && self.case.direction != Direction::Forward {
            let sent = self.own_sent(Way::ToClient).bytes;
            let most = amount + self.case.streams * len;
            let what = || format!("the server sent {sent} bytes, at most {most} are right");
            self.claim(sent <= most, what);
        }
    }

    /// A limit on the rate is kept by the sender, in tests that are long enough to tell; a busy machine
    /// may keep it from reaching the limit.
    fn rate_is_kept(&mut self, way: Way) {
        let (Some(rate), End::Seconds(seconds)) = (self.case.rate, self.case.end) else { return };
        if !self.is_timed {
            return;
        }
        let (asked, found) = ((rate * self.case.streams) as f64, self.own_sent(way).rate);
        let sender = if way == Way::ToServer { self.client } else { self.server };
        let made_up = if Tolerance::of(sender).makes_up_for_the_omitted {
            self.case.omit as f64 / seconds as f64
        } else {
            0.0
        };
        self.claim((0.5..=1.2 + made_up).contains(&(found / asked)), || {
            format!("{way:?}: sent at {found:.0} bit/s, asked for {asked:.0}")
        });
    }

    /// What the intervals count is what the summary counts.
    fn intervals_add_up(&mut self, side: &Report<'_>, way: Way) {
        let name = format!("{} {way:?}", self.role(side));
        let key = format!("sum{}", self.suffix(way));
        let mut bytes = 0;
        for interval in list(side.document, "/intervals") {
            let sum = Sum::from(&interval[&key]);
            if interval[&key]["omitted"] != true {
                bytes += sum.bytes;
            }
            self.claim(sum.rate_is_right(), || format!("{name}: interval rate of {sum:?}"));
            let of_streams: u64 = list(interval, "/streams")
                .iter()
                .filter(|stream| stream["sender"] == self.sends(side, way))
                .map(|stream| Sum::from(stream).bytes)
                .sum();
            self.claim(of_streams == sum.bytes, || {
                format!("{name}: streams of an interval have {of_streams} bytes, sum {}", sum.bytes)
            });
        }
        let total = self.own(side, way).bytes;
        let least = total - (total as f64 * Tolerance::of(side).part_in_no_interval) as u64;
        self.claim((least..=total).contains(&bytes), || {
            format!("{name}: intervals have {bytes} bytes of {total}")
        });
    }

    /// What the streams count is what the summary counts.
    fn streams_add_up(&mut self, side: &Report<'_>, way: Way) {
        let sends = self.sends(side, way);
        // The UDP stream summary of stock servers has the sender's bytes only, zero when they receive.
        if self.case.udp && !sends && self.role(side) == "server" {
            return;
        }
        let kind = if self.case.udp || sends { "sum_sent" } else { "sum_received" };
        let total = self.sum(side, kind, way).bytes;
        let of_streams: u64 = list(side.document, "/end/streams")
            .iter()
            .map(|stream| self.stream_end(stream, sends))
            .filter(|stream| stream["sender"] == sends)
            .map(|stream| Sum::from(stream).bytes)
            .sum();
        let name = self.role(side);
        self.claim(of_streams == total, || {
            format!("{name} {way:?}: streams have {of_streams} bytes of {total}")
        });
    }

    /// The measured time is the asked one, and what a busy machine adds.
    fn time_is_right(&mut self, side: &Report<'_>, way: Way) {
        let found = self.own(side, way).seconds;
        let name = self.role(side);
        match self.case.end {
            End::Seconds(_) if !self.is_timed => {}
            End::Seconds(asked) => {
                let asked = asked as f64;
                self.claim((asked - 0.2..asked + 3.0).contains(&found), || {
                    format!("{name} {way:?}: measured {found} s of {asked}")
                });
            }
            _ => self.claim(found > 0.0, || format!("{name} {way:?}: measured {found} s")),
        }
    }

    fn rate_is_bytes_by_time(&mut self, side: &Report<'_>, way: Way) {
        let name = self.role(side);
        for kind in ["sum_sent", "sum_received"] {
            let sum = self.sum(side, kind, way);
            self.claim(sum.rate_is_right(), || format!("{name} {way:?}: {kind}: rate of {sum:?}"));
        }
    }

    fn server_output_came(&mut self) {
        if !self.case.server_output {
            return;
        }
        let output = &self.client.document["server_output_json"];
        let same = output["start"]["cookie"] == self.client.document["start"]["cookie"];
        self.claim(same && !output["end"].is_null(), || "the server's document is missing".into());
        for &way in self.case.ways() {
            let kind = if way == Way::ToServer { "sum_received" } else { "sum_sent" };
            let key = format!("{kind}{}", self.suffix(way));
            let (brought, own) =
                (&output["end"][&key]["bytes"], &self.server.document["end"][&key]["bytes"]);
            self.claim(brought == own, || {
                format!("{key} of the server came as {brought}, not {own}")
            });
        }
    }

    fn claim(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        if !holds {
            self.faults.push(otherwise());
        }
    }

    fn role(&self, side: &Report<'_>) -> &'static str {
        if std::ptr::eq(side, self.client) { "client" } else { "server" }
    }

    fn sends(&self, side: &Report<'_>, way: Way) -> bool {
        (way == Way::ToServer) == std::ptr::eq(side, self.client)
    }

    fn len(&self) -> u64 {
        self.client.document["start"]["test_start"]["blksize"].as_u64().unwrap_or(0)
    }

    fn own_sent(&self, way: Way) -> Sum {
        self.own(if way == Way::ToServer { self.client } else { self.server }, way)
    }

    fn own_received(&self, way: Way) -> Sum {
        self.own(if way == Way::ToServer { self.server } else { self.client }, way)
    }

    /// What a side measured itself.
    fn own(&self, side: &Report<'_>, way: Way) -> Sum {
        self.sum(side, if self.sends(side, way) { "sum_sent" } else { "sum_received" }, way)
    }

    fn sum(&self, side: &Report<'_>, kind: &str, way: Way) -> Sum {
        Sum::from(&side.document["end"][format!("{kind}{}", self.suffix(way))])
    }

    /// In tests of both ways the client's own way has the plain names.
    fn suffix(&self, way: Way) -> &'static str {
        let second = self.case.direction == Direction::Both && way == Way::ToClient;
        if second { "_bidir_reverse" } else { "" }
    }

    fn stream_end<'v>(&self, stream: &'v Value, sends: bool) -> &'v Value {
        match (self.case.udp, sends) {
            (true, _) => &stream["udp"],
            (false, true) => &stream["sender"],
            (false, false) => &stream["receiver"],
        }
    }
}

fn list<'v>(value: &'v Value, path: &str) -> &'v [Value] {
    value.pointer(path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
