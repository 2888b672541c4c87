//! Real programs across the impairment link: what they report is held against what the link did. Needs
//! root and Linux.
#![cfg(target_os = "linux")]

use std::thread::sleep;
use std::time::{Duration, Instant};

use linerate_tests::client;
use linerate_tests::link::model::{LinkModel, Reorder};
use linerate_tests::link::tap::{FAR, TapLink, Wire};
use linerate_tests::link::trace::{Trace, Truth};
use linerate_tests::namespace::may_make_namespaces;
use linerate_tests::process::Ended;
use linerate_tests::server::Server;
use linerate_tests::tool::Tool;
use serde_json::Value;

/// Who is the client, and who the server.
const PAIRS: [(Tool, Tool); 3] = [
    (Tool::Linerate, Tool::Linerate),
    (Tool::Linerate, Tool::Iperf3),
    (Tool::Iperf3, Tool::Linerate),
];

#[test]
fn a_plain_link_carries_200_megabits_and_loses_nothing() {
    if !may_run() {
        return;
    }
    for tool in [Tool::Linerate, Tool::Iperf3] {
        // Other work on a small machine may take the processors away, so the best of a few counts.
        let best = (0..4).map(|_| megabits_delivered(tool)).find(|megabits| *megabits > 195.0);
        assert!(best.is_some(), "{tool}: not even once 200 Mbit/s");
    }
}

/// What the link carried of 200 Mbit/s. The receiver may miss more, which is then not the link's doing.
fn megabits_delivered(tool: Tool) -> f64 {
    let link = TapLink::start(&Wire { data_from_bytes: DATA_FROM, ..Wire::default() });
    let both = run(&link, tool, tool, FAR.v4, "-u -t 2 -b 200M -l 1400");
    let (passed, overflow) = (link.passed(), overflow(&link, 0));
    let truth = passed.traces[0].truth();
    println!("{tool}, 200 Mbit/s: {overflow} had no room at the receiver\n{passed}");
    assert_eq!((truth.lost, truth.out_of_order, truth.duplicates), (0, 0, 0), "{passed}");
    assert_truth(&both.server, &passed.traces[0], overflow, &passed.to_string());
    let sent = &both.client["end"]["sum_sent"];
    if truth.packets < sent["packets"].as_u64().unwrap_or(0) || passed.unseen[0] > 0 {
        return 0.0;
    }
    sent["bits_per_second"].as_f64().unwrap_or(0.0) / 1e6
}

#[test]
fn both_ends_agree_across_a_plain_link() {
    if !may_run() {
        return;
    }
    let link = TapLink::start(&Wire::default());
    let noise = link.round_trips(500).expect("the probes come back");
    println!("round trips of a link without delay: {noise}");
    for host in [FAR.v4, FAR.v6] {
        for options in
            ["-n 4M", "-n 4M -R", "-u -n 1M -b 20M -l 1400", "-u -n 1M -b 20M -l 1400 -R"]
        {
            let both = run(&link, Tool::Linerate, Tool::Linerate, host, options);
            for side in ["sum_sent", "sum_received"] {
                let [shown, measured] = [&both.client, &both.server]
                    .map(|report| report["end"][side]["bytes"].as_u64());
                assert_eq!(shown, measured, "{host} {options}: {side}\n{}", link.passed());
                assert!(shown > Some(0), "{host} {options}: {side}");
            }
        }
    }
}

#[test]
fn a_receiver_tells_loss_and_order_as_they_were() {
    if !may_run() {
        return;
    }
    let model = LinkModel {
        latency_ns: 2 * MS,
        loss_ppm: 30_000,
        duplicate_ppm: 10_000,
        reorder: Some(Reorder { ppm: 20_000, by_ns: 5 * MS }),
        ..LinkModel::default()
    };
    let wire = Wire {
        there: model,
        back: model,
        seed: 7,
        data_from_bytes: DATA_FROM,
        word_later_ns: 50 * MS,
        ..Wire::default()
    };
    for (options, way) in [("-u -k 1500 -b 10M -l 1400", 0), ("-u -t 2 -b 8M -l 1400 -R", 1)] {
        let link = TapLink::start(&wire);
        let both = run(&link, Tool::Linerate, Tool::Linerate, FAR.v4, options);
        let passed = link.passed();
        let truth = passed.traces[way].truth();
        let what = format!("{options} {truth:?}\n{passed}");
        assert!(truth.lost > 20 && truth.out_of_order > 10 && truth.duplicates > 5, "{what}");
        let receiver = if way == 0 { &both.server } else { &both.client };
        assert_truth(receiver, &passed.traces[way], overflow(&link, way), &what);
        let told = |end: &Value| end["end"]["streams"][0]["udp"]["out_of_order"].clone();
        assert_eq!(told(&both.client), told(&both.server), "{what}");
    }
}

#[test]
fn what_a_narrow_link_drops_is_what_a_receiver_misses() {
    if !may_run() {
        return;
    }
    let narrow =
        LinkModel { rate: Some(20_000_000), queue_bytes: Some(60_000), ..LinkModel::default() };
    for (client, server) in PAIRS {
        let wire = Wire { there: narrow, data_from_bytes: DATA_FROM, ..Wire::default() };
        let link = TapLink::start(&wire);
        let both = run(&link, client, server, FAR.v4, "-u -t 2 -b 40M -l 1400");
        let passed = link.passed();
        let what = format!("{client} to {server}\n{passed}");
        assert_truth(&both.server, &passed.traces[0], overflow(&link, 0), &what);
        // 20 of 40 Mbit/s, less the headers.
        let percent = both.client["end"]["sum_received"]["lost_percent"].as_f64().unwrap_or(0.0);
        assert!((40.0..60.0).contains(&percent), "{percent} %: {what}");
    }
}

#[test]
fn the_rate_of_a_receiver_stands_beside_what_its_sender_could_not_send() {
    if !may_run() {
        return;
    }
    let narrow =
        LinkModel { rate: Some(20_000_000), queue_bytes: Some(60_000), ..LinkModel::default() };
    for (client, server) in PAIRS {
        let link = TapLink::start(&Wire { back: narrow, ..Wire::default() });
        let both = run(&link, client, server, FAR.v4, "-u -R -P 8 -t 1 -b 10M -l 1400");
        let rate = |side: &str| both.client["end"][side]["bits_per_second"].as_f64();
        let [sent, received] = ["sum_sent", "sum_received"].map(|side| rate(side).unwrap_or(0.0));
        let what = format!("{client} of {server}: {received} of {sent}\n{:#}", both.client["end"]);
        assert!((1e6..21e6).contains(&received) && sent > 2.0 * received, "{what}");
    }
}

#[test]
fn retransmits_are_those_of_the_sender_of_each_direction() {
    if !may_run() {
        return;
    }
    let lossy = LinkModel { loss_ppm: 10_000, ..LinkModel::default() };
    let clean = LinkModel::default();
    for (options, there, back) in [
        ("-n 4M -P 2", lossy, clean),
        ("-n 4M -P 2 -R", clean, lossy),
        ("-n 4M -P 2 --bidir", lossy, clean),
        ("-n 4M -P 2 --bidir", clean, lossy),
    ] {
        let link = TapLink::start(&Wire { there, back, data_from_bytes: 1000, ..Wire::default() });
        let both = run(&link, Tool::Linerate, Tool::Linerate, FAR.v4, options);
        let what = format!("{options}\n{:#}\n{}", both.client["end"], link.passed());
        let told = |end: &Value, key: &str| end["end"][key]["retransmits"].as_u64();
        let lost = link.passed().counts.map(|counts| counts.lost);
        let retransmits = told(&both.client, "sum_sent");
        if options.ends_with("--bidir") {
            let reverse = told(&both.client, "sum_sent_bidir_reverse");
            let ways = if lost[0] > 0 { [retransmits, reverse] } else { [reverse, retransmits] };
            // A sender may send again what was only late.
            let [lossy, clean] = ways.map(|way| way.unwrap_or_else(|| panic!("{what}")));
            assert!(2 * clean < lossy, "{what}");
        } else {
            assert_eq!(retransmits, told(&both.server, "sum_sent"), "{what}");
        }
        // What was lost last may be sent again after the test.
        let all = retransmits.max(told(&both.client, "sum_sent_bidir_reverse")).unwrap_or(0);
        assert!(lost != [0, 0] && 2 * all > lost[0] + lost[1], "{what}");
    }
}

#[test]
fn tcp_finds_the_rate_of_a_narrow_link() {
    if !may_run() {
        return;
    }
    let narrow = LinkModel {
        latency_ns: 2 * MS,
        rate: Some(20_000_000),
        queue_bytes: Some(100_000),
        ..LinkModel::default()
    };
    // What waits in a deep queue at the end comes too late to count.
    let deep = LinkModel { latency_ns: 100 * MS, queue_bytes: Some(2_000_000), ..narrow };
    for (options, model) in [("-t 4", narrow), ("-t 4 -R", narrow), ("-t 4 -R", deep)] {
        let link = TapLink::start(&Wire { there: model, back: model, ..Wire::default() });
        let both = run(&link, Tool::Linerate, Tool::Linerate, FAR.v4, options);
        let rate = both.client["end"]["sum_received"]["bits_per_second"].as_f64().unwrap_or(0.0);
        let what = format!("{options}: {rate} bit/s\n{}", link.passed());
        assert!((10e6..21e6).contains(&rate), "{what}");
    }
}

#[test]
fn what_is_in_flight_at_the_end_is_counted() {
    if !may_run() {
        return;
    }
    let link = slow_link();
    for client in [Tool::Linerate, Tool::Iperf3] {
        for (options, bytes) in
            [("-n 1M", 1 << 20), ("-n 3M -P 3", 3 << 20), ("-u -k 100 -b 5M -l 1400", 100 * 1400)]
        {
            let both = run(&link, client, Tool::Linerate, FAR.v4, options);
            let what = format!("{client} {options}\n{}", link.passed());
            let count = |report: &Value, side: &str| report["end"][side]["bytes"].as_u64();
            let sent = count(&both.client, "sum_sent");
            let received = count(&both.server, "sum_received");
            assert_eq!(count(&both.client, "sum_received"), received, "{what}");
            assert!(
                Some(bytes) <= received && received <= sent,
                "{received:?} of {sent:?}: {what}"
            );
            // Stock clients send some blocks more.
            assert!(client == Tool::Iperf3 || sent == Some(bytes), "{sent:?}: {what}");
        }
    }
}

/// The receiver has to get all of an amount, so a server sends more than it where some is lost.
#[test]
fn a_client_that_receives_an_amount_gets_it_whatever_is_lost() {
    if !may_run() {
        return;
    }
    let lossy = LinkModel { loss_ppm: 250_000, ..LinkModel::default() };
    for client in [Tool::Linerate, Tool::Iperf3] {
        let wire = Wire { back: lossy, data_from_bytes: DATA_FROM, ..Wire::default() };
        let link = TapLink::start(&wire);
        let both = run(&link, client, Tool::Linerate, FAR.v4, "-u -b 3M -l 1400 -k 400 -R");
        let bytes = |key: &str| both.client["end"][key]["bytes"].as_u64().unwrap_or(0);
        let (sent, received) = (bytes("sum_sent") / 1400, bytes("sum_received") / 1400);
        let what = format!("{client}: {received} of {sent}\n{:#}", both.client["end"]);
        assert!(received >= 400 && sent > received + 50, "{what}");
        assert!(received < 500, "and it ends then: {what}");
    }
}

#[test]
fn the_round_trip_time_is_that_of_the_link() {
    if !may_run() {
        return;
    }
    let both = run(&slow_link(), Tool::Linerate, Tool::Linerate, FAR.v4, "-t 2 -b 10M");
    let sender = &both.client["end"]["streams"][0]["sender"];
    let rtt_us = sender["mean_rtt"].as_u64().unwrap_or(0);
    assert!((100_000..300_000).contains(&rtt_us), "{sender:#}");
}

/// Fifty milliseconds each way.
fn slow_link() -> TapLink {
    let slow = LinkModel { latency_ns: 50 * MS, ..LinkModel::default() };
    TapLink::start(&Wire { there: slow, back: slow, ..Wire::default() })
}

#[test]
fn both_ends_notice_that_the_link_is_cut() {
    if !may_run() {
        return;
    }
    let lines = ["-t 60 -b 20M", "-t 60 -u -b 5M -l 1400"];
    std::thread::scope(|scope| {
        for options in lines {
            scope.spawn(move || cut_in_the_middle(options));
        }
    });
}

fn cut_in_the_middle(options: &str) {
    let link = TapLink::start(&Wire::default());
    let mut server = Server::start_in(&link.far, Tool::Linerate, &["-1", "-J"]);
    let words: Vec<&str> = options.split(' ').chain(["-J"]).collect();
    let client = client::start_in(&link.near, Tool::Linerate, FAR.v4, server.port(), &words);
    sleep(Duration::from_millis(2500));
    link.cut();
    let cut = Instant::now();
    let client = client.wait(NOTICED).unwrap_or_else(|why| panic!("client: {why}"));
    println!("`{options}`: the client noticed the cut after {:.1?}", cut.elapsed());
    while server.is_running() && cut.elapsed() < NOTICED {
        sleep(Duration::from_millis(50));
    }
    println!("`{options}`: the server noticed the cut after {:.1?}", cut.elapsed());
    let server = server.wait().unwrap_or_else(|why| panic!("server: {why}"));
    for (name, ended) in [("client", client), ("server", server)] {
        let document = ended.document().unwrap_or_else(|why| panic!("{name}: {why}"));
        assert!(document["error"].is_string(), "the {name} says what is wrong: {ended}");
        let intervals = document["intervals"].as_array().map_or(&[][..], Vec::as_slice);
        let bytes: u64 = intervals.iter().filter_map(|one| one["sum"]["bytes"].as_u64()).sum();
        assert!(bytes > 100_000, "the {name} tells what it measured until then: {ended}");
    }
}

/// The documents of both ends.
struct Both {
    client: Value,
    server: Value,
}

/// Runs a test over the link that must go well.
fn run(link: &TapLink, client: Tool, server: Tool, host: &str, options: &str) -> Both {
    let server = Server::start_in(&link.far, server, &["-1", "-J"]);
    let words: Vec<&str> = options.split(' ').chain(["-J"]).collect();
    let client = client::start_in(&link.near, client, host, server.port(), &words);
    let client = client.wait(LIMIT).unwrap_or_else(|why| panic!("{why}\n{}", link.passed()));
    let server = server.wait().unwrap_or_else(|why| panic!("{why}\n{client}\n{}", link.passed()));
    let document = |ended: &Ended| {
        let document = ended.document().unwrap_or_else(|why| panic!("{why}"));
        assert!(document["error"].is_null(), "{ended}\n{}", link.passed());
        document
    };
    Both { client: document(&client), server: document(&server) }
}

/// What a receiver says of the datagrams up to the last one that it knows of is the truth, but for
/// those that its system had no room for.
fn assert_truth(receiver: &Value, trace: &Trace, overflow: u64, what: &str) {
    let count = |value: &Value| value.as_u64().unwrap_or(u64::MAX);
    let received = &receiver["end"]["sum_received"];
    let packets = count(&received["packets"]);
    let truth = trace.truth_of(trace.until(packets));
    let found = Truth {
        packets,
        lost: count(&received["lost_packets"]),
        out_of_order: count(&receiver["end"]["streams"][0]["udp"]["out_of_order"]),
        ..truth
    };
    let what = format!("{what}\n{overflow} had no room at the receiver\n{:#}", receiver["end"]);
    if overflow == 0 {
        assert_eq!(found, truth, "{what}");
    } else {
        assert!((truth.lost..=truth.lost + overflow).contains(&found.lost), "{what}");
    }
}

/// Datagrams that the receiving system had no room for.
fn overflow(link: &TapLink, way: usize) -> u64 {
    let receiver = if way == 0 { &link.far } else { &link.near };
    receiver.udp_overflow()
}

fn may_run() -> bool {
    may_make_namespaces() && Tool::Iperf3.is_here()
}

const MS: u64 = 1_000_000;
/// A frame with a datagram of 1400 bytes is longer, all of the control connection is shorter.
const DATA_FROM: usize = 1400;
const LIMIT: Duration = Duration::from_secs(30);
const NOTICED: Duration = Duration::from_secs(40);
