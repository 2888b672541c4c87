//! A verdict in words: what limited a direction of the test, the figures that say so, and what to try.

use linerate_core::report::{Evidence, Hint, Limit, Verdict};

use super::quantity::{self, UnitFormat};

/// The line for people, without a full stop.
pub(super) fn words(verdict: &Verdict, format: Option<UnitFormat>) -> String {
    let Verdict { limit, is_one_sided, evidence, hint, .. } = verdict;
    let what = match limit {
        Limit::PathLoss => "Limited by what the path loses",
        Limit::PathRate => "Limited by the rate of the path",
        Limit::ReceiveWindow => "Limited by the receive window",
        Limit::SendBuffer => "Limited by the send buffer",
        Limit::ReceiveBuffer => "Limited by the receive buffer of the receiver's socket",
        Limit::SenderCpu => "Limited by the sender's CPU",
        Limit::ReceiverCpu => "Limited by the receiver's CPU",
        Limit::RequestedRate => "Limited by the rate that was asked for",
        Limit::Application => "Limited by what there was to send",
        Limit::Unclear => "Nothing that was measured explains the rate",
    };
    let why = figures(*limit, evidence, format).map_or(String::new(), |why| format!(" ({why})"));
    let side = if *is_one_sided { ", as far as this end can tell" } else { "" };
    let is_udp = evidence.lost_millionths.is_some();
    let hint = hint.map_or(String::new(), |hint| format!(": try {}", advice(hint, is_udp)));
    format!("{what}{why}{side}{hint}")
}

/// The word that documents have for it.
pub(super) const fn name(limit: Limit) -> &'static str {
    match limit {
        Limit::PathLoss => "path_loss",
        Limit::PathRate => "path_rate",
        Limit::ReceiveWindow => "receive_window",
        Limit::SendBuffer => "send_buffer",
        Limit::ReceiveBuffer => "receive_buffer",
        Limit::SenderCpu => "sender_cpu",
        Limit::ReceiverCpu => "receiver_cpu",
        Limit::RequestedRate => "requested_rate",
        Limit::Application => "application",
        Limit::Unclear => "unclear",
    }
}

/// The figures that matter to a limit, as far as they are known.
fn figures(limit: Limit, evidence: &Evidence, format: Option<UnitFormat>) -> Option<String> {
    let rate = |bits: u64| format!("{}s/sec", quantity::rate(bits as f64, format).trim_start());
    let size = |bytes: u64| format!("{}s", quantity::amount(bytes).trim_start());
    let percent = |share: f64| format!("{} %", quantity::percent(share));
    let of_cpu = |share: u16| format!("{} of its threads' time", percent(f64::from(share) / 10.0));
    let round_trip = evidence.loaded_round_trip_us.or(evidence.idle_round_trip_us).map(millis);
    let buffer = |bytes: Option<u64>| match (bytes.map(size), &round_trip) {
        (Some(size), Some(round_trip)) => Some(format!("{size} at a round trip of {round_trip}")),
        (size, _) => size,
    };
    let missing = || {
        let millionths = |millionths: u32| percent(f64::from(millionths) / 1e4);
        let lost = evidence.lost_millionths;
        if lost == Some(0) {
            return None;
        }
        let lost = lost.map(|lost| format!("{} lost", millionths(lost)));
        let resent = evidence.resent_millionths;
        lost.or_else(|| resent.map(|resent| format!("{} sent again", millionths(resent))))
    };
    match limit {
        Limit::PathLoss => missing(),
        Limit::PathRate => match (evidence.idle_round_trip_us, evidence.loaded_round_trip_us) {
            (Some(idle), Some(loaded)) => {
                Some(format!("round trip {} idle, {} loaded", millis(idle), millis(loaded)))
            }
            _ => missing(),
        },
        Limit::ReceiveWindow => buffer(evidence.window_bytes.filter(|&bytes| bytes > 0)),
        Limit::SendBuffer => buffer(evidence.send_buffer_bytes),
        Limit::ReceiveBuffer => {
            let drops = evidence.socket_drops.map(|drops| format!("{drops} messages had no room"));
            joined([evidence.receive_buffer_bytes.map(size), drops])
        }
        Limit::SenderCpu => evidence.sender_cpu_share.map(of_cpu),
        Limit::ReceiverCpu => evidence.receiver_cpu_share.map(of_cpu),
        Limit::RequestedRate => evidence.requested_rate.map(rate),
        Limit::Application => evidence.busy_share.map(|share| {
            format!("nothing on its way for {}", percent(100.0 - f64::from(share) / 10.0))
        }),
        Limit::Unclear => None,
    }
}

fn advice(hint: Hint, is_udp: bool) -> String {
    match hint {
        Hint::LargerWindow { bytes } => {
            let bytes = option_bytes(bytes);
            format!("-w {bytes}, as far as net.core.rmem_max and wmem_max allow it, or -P")
        }
        Hint::LargerReceiveBuffer { bytes } => {
            format!("-w {}, and a net.core.rmem_max that allows it", option_bytes(bytes))
        }
        Hint::MoreStreams if is_udp => "-P".into(),
        Hint::MoreStreams => "-P, or -Z and --skip-rx-copy".into(),
        Hint::FewerCopies => "-Z and --skip-rx-copy".into(),
        Hint::LargerBlocks => "a larger -l".into(),
        Hint::HigherRate => "a higher -b".into(),
        Hint::LowerRate { rate } => format!("-b {}", option_rate(rate)),
        Hint::OtherCongestionControl => "another congestion control with -C".into(),
    }
}

fn joined(parts: [Option<String>; 2]) -> Option<String> {
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn millis(micros: u32) -> String {
    let millis = f64::from(micros) / 1000.0;
    if millis < 1.0 { format!("{millis:.3} ms") } else { format!("{millis:.1} ms") }
}

/// Bytes as options take them, not less than they are.
fn option_bytes(bytes: u64) -> String {
    let (kilo, mega) = (bytes.div_ceil(1 << 10), bytes.div_ceil(1 << 20));
    if mega < 10 { format!("{kilo}K") } else { format!("{mega}M") }
}

/// A rate as options take it: three digits, not more than it is.
fn option_rate(bits_per_second: u64) -> String {
    let steps = [(1_000_000_000, "G"), (1_000_000, "M"), (1000, "K")];
    let Some(&(unit, letter)) = steps.iter().find(|&&(unit, _)| bits_per_second >= unit) else {
        return bits_per_second.to_string();
    };
    let hundredths = bits_per_second / (unit / 100);
    let (whole, rest) = (hundredths / 100, hundredths % 100);
    match whole {
        100.. => format!("{whole}{letter}"),
        10.. => format!("{whole}.{}{letter}", rest / 10),
        _ => format!("{whole}.{rest:02}{letter}"),
    }
}

#[cfg(test)]
mod tests {
    use linerate_core::test::Role;

    use super::*;

    fn told(limit: Limit, evidence: Evidence, hint: Option<Hint>) -> String {
        let verdict = Verdict { role: Role::Sender, limit, is_one_sided: false, evidence, hint };
        words(&verdict, None)
    }

    #[test]
    fn each_limit_is_told_with_its_figures() {
        let evidence = Evidence {
            rate: 52_000_000,
            requested_rate: Some(1_000_000_000),
            busy_share: Some(250),
            sender_cpu_share: Some(985),
            receiver_cpu_share: Some(1000),
            resent_millionths: Some(2_100),
            socket_drops: Some(40),
            idle_round_trip_us: Some(210),
            loaded_round_trip_us: Some(10_240),
            window_bytes: Some(65_536),
            send_buffer_bytes: Some(16_384),
            receive_buffer_bytes: Some(212_992),
            ..Evidence::default()
        };
        let window = Hint::LargerWindow { bytes: 260_000 };
        for (limit, hint, expected) in [
            (
                Limit::PathLoss,
                Some(Hint::OtherCongestionControl),
                "by what the path loses (0.21 % sent again): try another congestion control with -C",
            ),
            (
                Limit::PathRate,
                None,
                "by the rate of the path (round trip 0.210 ms idle, 10.2 ms loaded)",
            ),
            (
                Limit::ReceiveWindow,
                Some(window),
                "by the receive window (64.0 KBytes at a round trip of 10.2 ms): try -w 254K, as far as \
                 net.core.rmem_max and wmem_max allow it, or -P",
            ),
            (
                Limit::SendBuffer,
                Some(window),
                "by the send buffer (16.0 KBytes at a round trip of 10.2 ms): try -w 254K, as far as \
                 net.core.rmem_max and wmem_max allow it, or -P",
            ),
            (
                Limit::ReceiveBuffer,
                Some(Hint::LargerReceiveBuffer { bytes: 425_984 }),
                "by the receive buffer of the receiver's socket (208 KBytes, 40 messages had no \
                 room): try -w 416K, and a net.core.rmem_max that allows it",
            ),
            (
                Limit::SenderCpu,
                Some(Hint::MoreStreams),
                "by the sender's CPU (98 % of its threads' time): try -P, or -Z and --skip-rx-copy",
            ),
            (Limit::ReceiverCpu, None, "by the receiver's CPU (100 % of its threads' time)"),
            (
                Limit::RequestedRate,
                Some(Hint::HigherRate),
                "by the rate that was asked for (1.00 Gbits/sec): try a higher -b",
            ),
            (Limit::Application, None, "by what there was to send (nothing on its way for 75 %)"),
        ] {
            assert_eq!(told(limit, evidence, hint), format!("Limited {expected}"));
        }
        let unclear = "Nothing that was measured explains the rate";
        assert_eq!(told(Limit::Unclear, evidence, None), unclear);
    }

    #[test]
    fn what_nobody_told_is_left_out() {
        let role = Role::Receiver;
        let (evidence, hint) = (Evidence::default(), Some(Hint::LowerRate { rate: 94_321_000 }));
        let verdict = Verdict { role, limit: Limit::PathRate, is_one_sided: true, evidence, hint };
        let expected = "Limited by the rate of the path, as far as this end can tell: try -b 94.3M";
        assert_eq!(words(&verdict, None), expected);
    }

    #[test]
    fn rates_of_evidence_have_the_unit_that_was_asked_for() {
        let evidence = Evidence { requested_rate: Some(8_000_000), ..Evidence::default() };
        let shown = figures(Limit::RequestedRate, &evidence, "k".parse().ok());
        assert_eq!(shown.as_deref(), Some("8000 Kbits/sec"));
    }

    #[test]
    fn options_are_spelled_as_they_are_read() {
        for (bytes, expected) in [(1, "1K"), (65_536, "64K"), (65_537, "65K"), (20 << 20, "20M")] {
            assert_eq!(option_bytes(bytes), expected);
        }
        for (rate, expected) in [
            (999, "999"),
            (9_876, "9.87K"),
            (98_765_432, "98.7M"),
            (987_654_321, "987M"),
            (12_345_678_901, "12.3G"),
        ] {
            assert_eq!(option_rate(rate), expected);
        }
    }
}
