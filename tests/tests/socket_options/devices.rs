//! Binding to devices, and addresses that mean nothing without one.

use std::time::Duration;

use linerate_tests::client;
use linerate_tests::namespace::may_make_namespaces;
use linerate_tests::process::Ended;
use linerate_tests::rows::run_all;
use linerate_tests::server::{Server, free_port};
use linerate_tests::tool::Tool;
use linerate_tests::veth::{Cable, DEVICE, FAR, NEAR};

use super::PAIRS;

const LIMIT: Duration = Duration::from_secs(30);

#[test]
fn link_local_addresses_work_with_their_zones() {
    if !may_make_namespaces() || !Tool::Iperf3.is_here() {
        return;
    }
    let cable = Cable::with_link_local_addresses();
    let [near, far] = [NEAR, FAR].map(|end| format!("{}%{DEVICE}", end.link_local));
    // The server's address, the client's target and its own address.
    let ways = [
        (None, far.as_str(), None),
        (None, far.as_str(), Some(near.as_str())),
        (Some(far.as_str()), far.as_str(), None),
        (Some(far.as_str()), far.as_str(), Some(near.as_str())),
    ];
    let tests =
        ["-n 100K", "-u -n 100K -b 20M -l 1200", "-u -n 100K -b 20M -l 1200 -R", "-n 100K -R"];
    let rows: Vec<_> = PAIRS
        .iter()
        .flat_map(|pair| ways.map(|way| (*pair, way)))
        .flat_map(|(pair, way)| tests.map(|test| (pair, way, test)))
        // Stock servers and clients lack some of these; what counts is this end.
        .filter(|((client, server), (at, _, from), _)| {
            (*server == Tool::Linerate || at.is_none())
                && (*client == Tool::Linerate || from.is_none())
        })
        .collect();
    run_all(&rows, |&((client, server), (at, host, from), test)| {
        let mut server_options = vec!["-1"];
        server_options.extend(at.iter().flat_map(|at| ["-B", at]));
        let server = Server::start_in(&cable.far, server, &server_options);
        let mut options: Vec<&str> = test.split(' ').collect();
        options.extend(from.iter().flat_map(|from| ["-B", from]));
        let started = client::start_in(&cable.near, client, host, server.port(), &options);
        succeeded(started.wait(LIMIT)?)?;
        succeeded(server.wait()?)
    });
}

#[test]
fn a_link_local_address_without_its_zone_is_explained() {
    if !may_make_namespaces() {
        return;
    }
    let cable = Cable::with_link_local_addresses();
    let far = format!("{}%{DEVICE}", FAR.link_local);
    for (host, options) in [
        (FAR.link_local, &["-t", "1"][..]),
        (far.as_str(), &["-t", "1", "-B", NEAR.link_local]),
        (FAR.link_local, &["-t", "1", "-u"]),
    ] {
        let ended = run(&cable, host, free_port(), options);
        assert_eq!(ended.code, Some(2), "{ended}");
        assert!(ended.stderr.contains("a link-local address needs its interface"), "{ended}");
        assert!(ended.stderr.contains("%eth0"), "{ended}");
    }
}

#[test]
fn a_bound_device_carries_everything_or_nothing() {
    if !may_make_namespaces() {
        return;
    }
    let cable = Cable::new();
    let at_device = format!("{}%{DEVICE}", NEAR.v4);
    let to_device = format!("{}%{DEVICE}", FAR.v4);
    for test in ["-n 100K -P 2", "-n 100K -R", "-u -n 100K -b 20M -l 1200", "-u -k 50 -R -l 1200"] {
        let words = || test.split(' ');
        for (host, options) in [
            (FAR.v4, words().chain(["--bind-dev", DEVICE]).collect::<Vec<_>>()),
            (FAR.v6, words().chain(["--bind-dev", DEVICE]).collect()),
            (FAR.v4, words().chain(["-B", &at_device]).collect()),
            (&to_device, words().collect()),
        ] {
            let server =
                Server::start_in(&cable.far, Tool::Linerate, &["-1", "--bind-dev", DEVICE]);
            let ended = run(&cable, host, server.port(), &options);
            assert_eq!(ended.code, Some(0), "{ended}");
            server.wait().unwrap_or_else(|why| panic!("{why}"));
        }
    }
    // The other device leads nowhere, for a client and for a server.
    let server = Server::start_in(&cable.far, Tool::Linerate, &[]);
    let options = ["-t", "1", "--bind-dev", "lo", "--connect-timeout", "1000"];
    assert_eq!(run(&cable, FAR.v4, server.port(), &options).code, Some(2));
    let server = Server::start_in(&cable.far, Tool::Linerate, &["--bind-dev", "lo"]);
    let options = ["-t", "1", "--connect-timeout", "1000"];
    assert_eq!(run(&cable, FAR.v4, server.port(), &options).code, Some(2));
}

#[test]
fn a_device_that_is_not_there_is_named_by_both_roles() {
    let port = free_port().to_string();
    for role in [&["-c", "127.0.0.1"][..], &["-s"]] {
        for options in [&["--bind-dev", "nosuch0"][..], &["-B", "127.0.0.1%nosuch0"]] {
            let mut command = Tool::Linerate.command();
            command.args(role).args(["-p", &port]).args(options);
            let ended = linerate_tests::process::Process::start(&mut command).wait(LIMIT);
            let ended = ended.unwrap_or_else(|why| panic!("{why}"));
            assert_eq!(ended.code, Some(1), "{ended}");
            assert!(
                ended.stderr.contains("--bind-dev nosuch0: Unable to bind-to-device"),
                "{ended}"
            );
        }
    }
}

#[test]
fn a_server_that_cannot_listen_says_so_once_and_ends() {
    let server = Server::start(Tool::Linerate, &[]);
    let taken = server.port().to_string();
    let free = free_port().to_string();
    for options in [["-p", taken.as_str(), "-B", "127.0.0.1"], ["-p", &free, "-B", "192.0.2.77"]] {
        let mut command = Tool::Linerate.command();
        command.arg("-s").args(options);
        let ended = linerate_tests::process::Process::start(&mut command).wait(LIMIT);
        let ended = ended.unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(ended.code, Some(1), "{ended}");
        assert_eq!(ended.stderr.lines().count(), 1, "{ended}");
        assert!(ended.stderr.contains("unable to start listener for connections"), "{ended}");
    }
}

fn run(cable: &Cable, host: &str, port: u16, options: &[&str]) -> Ended {
    let started = client::start_in(&cable.near, Tool::Linerate, host, port, options);
    started.wait(LIMIT).unwrap_or_else(|why| panic!("{why}"))
}

fn succeeded(ended: Ended) -> Result<(), String> {
    if ended.code == Some(0) { Ok(()) } else { Err(ended.to_string()) }
}
