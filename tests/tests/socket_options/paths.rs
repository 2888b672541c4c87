//! Paths whose packets must be shorter than those of the first cable, as routers behind it tell. A
//! datagram is lost by each such news and those after it travel in pieces, but the test goes on.

use std::time::Duration;

use linerate_tests::client;
use linerate_tests::namespace::{Namespace, may_make_namespaces};
use linerate_tests::server::Server;
use linerate_tests::tool::Tool;

#[test]
fn a_path_that_turns_out_narrower_twice_does_not_end_a_stream() {
    if !may_make_namespaces() {
        return;
    }
    let path = path_of([1500, 1400, 1300]);
    let (near, far) = (&path[0], &path[3]);
    let server = Server::start_in(far, Tool::Linerate, &[]);
    // In rows that the kernel cuts, and one by one.
    for options in ["-u -k 300 -b 0 -l 1440 -J", "-u -k 100 -b 5M -l 1440 -J"] {
        let words: Vec<_> = options.split(' ').collect();
        let client = client::start_in(near, Tool::Linerate, FAR, server.port(), &words);
        let ended = client.wait(Duration::from_secs(30)).expect("it ends");
        let document = ended.document().expect("a document");
        assert_eq!(ended.code, Some(0), "{options}: {ended}");
        let counts = ["sum_sent", "sum_received"].map(|sum| {
            let count = |key: &str| document["end"][sum][key].as_i64();
            count("packets").expect("sent") - count("lost_packets").expect("lost")
        });
        assert!(counts[0] > counts[1], "{options}: what was too long is lost: {ended}");
        near.ip("-6 route flush cache");
    }
}

/// Networks in a row, each a router between those beside it, with cables of these MTUs.
fn path_of(mtus: [u32; 3]) -> [Namespace; 4] {
    let networks = std::array::from_fn(|_| Namespace::new());
    for (index, mtu) in mtus.into_iter().enumerate() {
        let [left, right] = [&networks[index], &networks[index + 1]];
        let link = format!("link add right mtu {mtu} type veth peer name left netns");
        left.ip(&format!("{link} {}", right.name()));
        right.ip(&format!("link set left mtu {mtu}"));
        for (network, device, host) in [(left, "right", 1), (right, "left", 2)] {
            network.set("net.ipv6.conf.all.forwarding", "1");
            network.ip(&format!("link set {device} gso_max_segs 1"));
            network.ip(&format!("link set {device} up"));
            network.ip(&format!("address add fd78:{index}::{host}/64 dev {device} nodad"));
        }
    }
    for (index, network) in networks.iter().enumerate() {
        if index < 3 {
            network.ip(&format!("route add default via fd78:{index}::2"));
        }
        for before in 0..index.saturating_sub(1) {
            network.ip(&format!("route add fd78:{before}::/64 via fd78:{}::1", index - 1));
        }
    }
    networks
}

/// Where the last cable ends.
const FAR: &str = "fd78:2::2";
