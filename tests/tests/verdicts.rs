//! What limited a test, as both ends name it: situations that have one limit by their making, between
//! real programs. Needs root and Linux. With `LINERATE_LONG` each is run ten times, of which nine must
//! be right; else at most three times, of which two must be.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use linerate_tests::link::model::LinkModel;
use linerate_tests::link::tap::{FAR, TapLink, Wire};
use linerate_tests::namespace::{Namespace, may_make_namespaces};
use linerate_tests::process::{Ended, Process};
use linerate_tests::server::Server;
use linerate_tests::tool::{Tool, skipped};
use linerate_tests::veth::{Cable, DEVICE};

/// One thing that limits a test, and nothing else.
struct Situation {
    name: &'static str,
    /// What both ends are to name.
    limit: &'static str,
    options: &'static str,
    network: fn() -> Network,
    /// Who has to share the CPU with a program that never waits.
    crowded: Option<End>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Sender,
    Receiver,
}

const SITUATIONS: [Situation; 12] = [
    Situation {
        name: "a device of 50 Mbit/s, TCP",
        limit: "path_rate",
        options: "",
        network: slow_device,
        crowded: None,
    },
    Situation {
        name: "a device of 50 Mbit/s, UDP",
        limit: "path_rate",
        options: "-u -b 100M -l 1400",
        network: slow_device,
        crowded: None,
    },
    Situation {
        name: "a link of 20 Mbit/s with a queue, TCP",
        limit: "path_rate",
        options: "",
        network: slow_link,
        crowded: None,
    },
    Situation {
        name: "a link of 20 Mbit/s with a queue, UDP",
        limit: "path_rate",
        options: "-u -b 30M -l 1400",
        network: slow_link,
        crowded: None,
    },
    Situation {
        name: "a receive window of 16 KiB at 20 ms",
        limit: "receive_window",
        options: "",
        network: small_receive_windows,
        crowded: None,
    },
    Situation {
        name: "a send buffer of 16 KiB at 20 ms",
        limit: "send_buffer",
        options: "",
        network: small_send_buffers,
        crowded: None,
    },
    Situation {
        name: "a crowded CPU at the receiver",
        limit: "receiver_cpu",
        options: "-C cubic",
        network: fast_cable,
        crowded: Some(End::Receiver),
    },
    Situation {
        name: "a crowded CPU at the sender",
        limit: "sender_cpu",
        options: "-C cubic",
        network: fast_cable,
        crowded: Some(End::Sender),
    },
    Situation {
        name: "a rate below the path, TCP",
        limit: "requested_rate",
        options: "-b 20M",
        network: cable,
        crowded: None,
    },
    Situation {
        name: "a rate below the path, UDP",
        limit: "requested_rate",
        options: "-u -b 20M -l 1400",
        network: cable,
        crowded: None,
    },
    Situation {
        name: "1 % random loss at 10 ms, TCP",
        limit: "path_loss",
        options: "-C cubic",
        network: lossy_link,
        crowded: None,
    },
    Situation {
        name: "1 % random loss at 10 ms, UDP",
        limit: "path_loss",
        options: "-u -b 20M -l 1400",
        network: lossy_link,
        crowded: None,
    },
];

#[test]
fn both_ends_name_what_limited_a_test() {
    if !may_make_namespaces() {
        return;
    }
    let Some(cpus) = two_cpus() else { return };
    let is_long = std::env::var_os("LINERATE_LONG").is_some();
    let (most_runs, enough) = if is_long { (10, 9) } else { (3, 2) };
    let mut table = String::new();
    let mut missed = Vec::new();
    for situation in &SITUATIONS {
        let (mut right, mut named) = (0, Vec::new());
        let network = (situation.network)();
        while named.len() < most_runs && (is_long || right < enough) {
            let both = run(situation, &network, cpus);
            right += usize::from(both.iter().all(|limit| limit == situation.limit));
            named.push(both.join("/"));
        }
        let (name, runs, named) = (situation.name, named.len(), counted(&named));
        table += &format!("{name:<40} {right:>2} of {runs:<2}  {named}\n");
        if right < enough {
            missed.push(name);
        }
    }
    println!("{table}");
    assert!(missed.is_empty(), "fewer than {enough} right: {}\n{table}", missed.join("; "));
}

/// Each of the words once, with how often it is there.
fn counted(words: &[String]) -> String {
    let mut counts = BTreeMap::new();
    words.iter().for_each(|word| *counts.entry(word).or_insert(0) += 1);
    let each: Vec<_> = counts.iter().map(|(word, count)| format!("{count} {word}")).collect();
    each.join(", ")
}

/// What client and server name.
fn run(situation: &Situation, network: &Network, cpus: [usize; 2]) -> [String; 2] {
    let [sender, receiver] = cpus;
    let affinity = format!("-A {sender},{receiver}");
    let hog = situation.crowded.map(|end| match end {
        End::Sender => hog(sender),
        End::Receiver => hog(receiver),
    });
    let (near, far) = network.ends();
    let niceness = |end| situation.crowded.map(|crowded| if crowded == end { "19" } else { "-15" });
    let server_command = || far.within(&linerate(niceness(End::Receiver)));
    let server = Server::start_as(Tool::Linerate, server_command, &["-1", "-J"]);
    let mut client = near.within(&linerate(niceness(End::Sender)));
    client.args(["-c", FAR.v4, "-p", &server.port().to_string(), "-t", "1", "-J"]);
    client.args(situation.options.split_whitespace());
    if hog.is_some() {
        client.args(affinity.split(' '));
    }
    let client = Process::start(&mut client);
    let client = client.wait(LIMIT).unwrap_or_else(|why| panic!("{}: {why}", situation.name));
    let server = server.wait().unwrap_or_else(|why| panic!("{}: {why}\n{client}", situation.name));
    [client, server].map(|ended| limit_of(&ended))
}

/// The limit of the only direction that there is.
fn limit_of(ended: &Ended) -> String {
    let document = ended.document().unwrap_or_else(|why| panic!("{why}"));
    match document["linerate"]["verdicts"].as_array().map(Vec::as_slice) {
        Some([verdict]) => verdict["limit"].as_str().unwrap_or_default().to_owned(),
        other => panic!("not one verdict but {other:?}: {ended}"),
    }
}

/// The command; a nicer one leaves its CPU to others.
fn linerate(niceness: Option<&str>) -> Command {
    let program = Tool::Linerate.command();
    let Some(niceness) = niceness else { return program };
    let mut command = Command::new("nice");
    command.args(["-n", niceness]).arg(program.get_program());
    command
}

/// Keeps a CPU busy.
fn hog(cpu: usize) -> Process {
    let mut command = Command::new("taskset");
    command.args(["-c", &cpu.to_string(), "sh", "-c", "while :; do :; done"]);
    Process::start(&mut command)
}

enum Network {
    Cable(Cable),
    Link(TapLink),
}

impl Network {
    fn ends(&self) -> (&Namespace, &Namespace) {
        match self {
            Self::Cable(cable) => (&cable.near, &cable.far),
            Self::Link(link) => (&link.near, &link.far),
        }
    }
}

fn cable() -> Network {
    Network::Cable(Cable::new())
}

/// Its packets cost as little as they can, so that it is not them that wait for a CPU.
fn fast_cable() -> Network {
    let cable = Cable::new();
    for end in [&cable.near, &cable.far] {
        end.ip(&format!("link set {DEVICE} gso_max_segs 65535"));
    }
    Network::Cable(cable)
}

fn slow_device() -> Network {
    let cable = Cable::new();
    let bucket = format!("qdisc add dev {DEVICE} root tbf rate 50mbit burst 16kb limit 256kb");
    let mut tc = cable.near.command("tc".as_ref());
    tc.args(bucket.split(' '));
    assert!(tc.status().is_ok_and(|status| status.success()), "no token bucket");
    Network::Cable(cable)
}

fn slow_link() -> Network {
    let way = LinkModel {
        latency_ns: 5 * MS,
        rate: Some(20_000_000),
        queue_bytes: Some(100_000),
        ..LinkModel::default()
    };
    link(way, LinkModel { latency_ns: 5 * MS, ..LinkModel::default() })
}

fn lossy_link() -> Network {
    let back = LinkModel { latency_ns: 5 * MS, ..LinkModel::default() };
    link(LinkModel { loss_ppm: 10_000, ..back }, back)
}

fn small_receive_windows() -> Network {
    let network = distant_link();
    network.ends().1.set("net.ipv4.tcp_rmem", "4096 16384 16384");
    network
}

fn small_send_buffers() -> Network {
    let network = distant_link();
    network.ends().0.set("net.ipv4.tcp_wmem", "4096 16384 16384");
    network
}

fn distant_link() -> Network {
    let way = LinkModel { latency_ns: 10 * MS, ..LinkModel::default() };
    link(way, way)
}

fn link(there: LinkModel, back: LinkModel) -> Network {
    let link = TapLink::start(&Wire { there, back, data_from_bytes: DATA_FROM, ..Wire::default() });
    // A packet that is lost is as long as it would be on a real link.
    link.near.ip("link set tap0 gso_max_segs 1");
    Network::Link(link)
}

/// Two CPUs of those that this process may use.
fn two_cpus() -> Option<[usize; 2]> {
    let set = rustix::thread::sched_getaffinity(None).expect("one's own CPUs can be asked for");
    let mut cpus = (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu));
    let two = cpus.next().zip(cpus.next()).map(|(one, other)| [one, other]);
    if two.is_none() {
        skipped("two CPUs are needed, of which one can be crowded");
    }
    two
}

/// A frame with a block is longer, all of the control connection is shorter.
const DATA_FROM: usize = 1400;
const MS: u64 = 1_000_000;
const LIMIT: Duration = Duration::from_secs(30);
