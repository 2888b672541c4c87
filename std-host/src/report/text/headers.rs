//! The lines above the columns, chosen by what the columns hold.

use linerate_core::test::Role;

use super::view;
use crate::report::{Interval, StreamSummary, TestEnd, TestStart};

/// Between intervals of several streams, and before the summary.
pub(super) const SEPARATOR: &str = "- - - - - - - - - - - - - - - - - - - - - - - - -\n";

/// The header of the intervals, by the first of them.
pub(super) fn interval(start: &TestStart, interval: &Interval) -> &'static str {
    let is_bidirectional = view::is_bidirectional(&start.settings);
    if view::is_udp(&start.settings) {
        let sends = interval.streams.iter().any(|stream| stream.role == Role::Sender);
        return match (is_bidirectional, sends) {
            (true, _) => BIDIR_JITTER,
            (false, true) => DATAGRAMS,
            (false, false) => JITTER,
        };
    }
    let knows_retransmits = interval
        .streams
        .iter()
        .any(|stream| stream.tcp.is_some_and(|tcp| tcp.retransmits.is_some()));
    match (is_bidirectional, knows_retransmits) {
        (true, true) => BIDIR_RETR_CWND,
        (true, false) => BIDIR_PLAIN,
        (false, true) => RETR_CWND,
        (false, false) => PLAIN,
    }
}

/// The header of the summary; `is_shown` tells which sides of a stream have a line.
pub(super) fn summary(
    start: &TestStart,
    end: &TestEnd,
    is_shown: impl Fn(&StreamSummary, Role) -> bool,
) -> &'static str {
    let is_bidirectional = view::is_bidirectional(&start.settings);
    if view::is_udp(&start.settings) {
        return if is_bidirectional { BIDIR_JITTER } else { JITTER };
    }
    let knows_retransmits = end.streams.iter().any(|stream| {
        is_shown(stream, Role::Sender) && view::side(stream, Role::Sender).retransmits.is_some()
    });
    match (is_bidirectional, knows_retransmits) {
        (true, true) => BIDIR_RETR,
        (true, false) => BIDIR_PLAIN,
        (false, true) => RETR,
        (false, false) => PLAIN,
    }
}

const PLAIN: &str = "[ ID] Interval           Transfer     Bitrate\n";
const RETR: &str = "[ ID] Interval           Transfer     Bitrate         Retr\n";
const RETR_CWND: &str = "[ ID] Interval           Transfer     Bitrate         Retr  Cwnd\n";
const DATAGRAMS: &str = "[ ID] Interval           Transfer     Bitrate         Total Datagrams\n";
const JITTER: &str =
    "[ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams\n";
const BIDIR_PLAIN: &str = "[ ID][Role] Interval           Transfer     Bitrate\n";
const BIDIR_RETR: &str = "[ ID][Role] Interval           Transfer     Bitrate         Retr\n";
const BIDIR_RETR_CWND: &str =
    "[ ID][Role] Interval           Transfer     Bitrate         Retr  Cwnd\n";
const BIDIR_JITTER: &str =
    "[ ID][Role] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams\n";
