//! One server and very many short tests of all kinds, one after another, of stock and own clients,
//! honest or not: what the server holds of its system at the end is what it held after the first.
//! `cargo xtask soak` runs it for as many tests or hours as asked for.
#![cfg(target_os = "linux")]

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use linerate_tests::client;
use linerate_tests::footprint::Footprint;
use linerate_tests::scratch::Scratch;
use linerate_tests::script::{Peer, Step, honest_client};
use linerate_tests::server::Server;
use linerate_tests::tool::Tool;

/// What a client does in its turn.
enum Turn {
    /// A test to its end.
    Test(Tool, &'static str),
    /// So many steps of an honest client, then it is gone.
    Steps(usize),
    /// What no client says.
    Noise(&'static [u8]),
    /// A client that is killed in the middle.
    Killed(&'static str),
}

use Tool::{Iperf3, Linerate};

/// All kinds, the quick ones more often.
const TURNS: [Turn; 20] = [
    Turn::Test(Linerate, "-n 64K"),
    Turn::Test(Iperf3, "-n 64K"),
    Turn::Test(Linerate, "-n 64K -R"),
    Turn::Test(Linerate, "-n 64K --bidir -P 2"),
    Turn::Test(Linerate, "-u -n 64K -l 1000 -b 50M"),
    Turn::Test(Iperf3, "-n 64K -R"),
    Turn::Steps(1),
    Turn::Steps(4),
    Turn::Test(Linerate, "-n 64K -l 1K --get-server-output"),
    Turn::Test(Iperf3, "-u -n 64K -l 1000 -b 50M"),
    Turn::Noise(b"GET / HTTP/1.1\r\n\r\n"),
    Turn::Steps(8),
    Turn::Test(Linerate, "-u -n 64K -l 1000 -b 50M -R"),
    Turn::Test(Linerate, "-k 10 -P 8"),
    Turn::Noise(b"half a cookie"),
    Turn::Test(Iperf3, "-n 64K -P 4 --bidir"),
    Turn::Test(Linerate, "-u -n 64K -l 1000 -b 50M --bidir"),
    Turn::Steps(10),
    Turn::Killed("-t 9 -b 1M"),
    Turn::Test(Linerate, "-n 64K -Z"),
];

#[test]
fn a_server_holds_no_more_after_many_tests_than_after_the_first() {
    let plan = Plan::from_env();
    // The server logs what a service logs, and makes documents, which is more work than text.
    let scratch = Scratch::new();
    let log = scratch.file("log");
    let log = log.to_str().expect("a plain path");
    let server = Server::start(Linerate, &["-J", "--logfile", log]);
    let mut samples = Vec::new();
    let began = Instant::now();
    while !plan.is_over(samples.len(), began) {
        let turn = &TURNS[samples.len() % TURNS.len()];
        take(turn, server.port());
        samples.push(Footprint::of(server.id()));
        if samples.len() % 1000 == 0 {
            eprintln!("{:>8} tests: {}", samples.len(), samples[samples.len() - 1]);
            // The log is of no use here, and a day of it is large.
            std::fs::File::create(log).expect("it was there");
        }
    }
    let first = Footprint::median(&samples[..GROUP]);
    let last = Footprint::median(&samples[samples.len() - GROUP..]);
    let count = samples.len();
    println!("{count} tests in {:.0?}, the middle of each hundred:", began.elapsed());
    println!("first {GROUP}: {first}");
    println!(" last {GROUP}: {last}");
    let growth = first.growth(&last);
    assert!(growth.is_empty(), "it grew: {}", growth.join(", "));
    let ended = server.stop("INT").expect("it ends");
    assert_eq!(ended.code, Some(0), "{ended}");
}

#[test]
fn many_interrupted_tests_of_many_streams_leave_nothing_behind() {
    let server = Server::start(Linerate, &[]);
    let rounds = if std::env::var_os("LINERATE_LONG").is_some() { 40 } else { 20 };
    let mut samples = Vec::new();
    for round in 0..rounds {
        // 10, 20, 10, 10 and 20 streams.
        let clients = ["-P 10", "-P 10 --bidir", "-P 10 -R", "-u -P 10 -b 1M", "-P 10 --bidir"];
        let mut clients: Vec<_> = clients
            .iter()
            .enumerate()
            .map(|(index, options)| {
                let tool = if index == 4 && Iperf3.is_here() { Iperf3 } else { Linerate };
                let options = format!("-t 30 -b 1M {options}");
                let options: Vec<_> = options.split(' ').collect();
                client::start(tool, "127.0.0.1", server.port(), &options)
            })
            .collect();
        if round == 0 {
            // All of them at once is the most that the server ever holds.
            wait_for_threads(&server, STREAMS);
        } else {
            // Some are in their set-up by then, others run.
            std::thread::sleep(Duration::from_millis(100 + 150 * (round as u64 % 4)));
        }
        clients.iter_mut().for_each(|client| client.signal("INT"));
        for client in clients {
            client.wait(LIMIT).expect("it was interrupted");
        }
        take(&TURNS[0], server.port());
        samples.push(Footprint::of(server.id()));
    }
    // What an allocator keeps of small blocks for so many threads grows in the first rounds.
    let settled = &samples[WARM_UP..];
    let (first, last) = settled.split_at(settled.len() / 2);
    let growth = Footprint::median(first).growth(&Footprint::median(last));
    assert!(growth.is_empty(), "{growth:?}");
    let ended = server.stop("INT").expect("it ends");
    assert_eq!(ended.code, Some(0), "{ended}");
}

/// Rounds after which an allocator has what it needs.
const WARM_UP: usize = 2;

/// Waits until the server has a thread for each of so many streams.
fn wait_for_threads(server: &Server, streams: u64) {
    let deadline = Instant::now() + LIMIT;
    while Footprint::of(server.id()).threads < streams {
        assert!(Instant::now() < deadline, "the streams did not all begin");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn take(turn: &Turn, port: u16) {
    match turn {
        Turn::Test(Iperf3, _) if !Iperf3.is_here() => {}
        Turn::Test(tool, options) => {
            let options: Vec<_> = options.split(' ').collect();
            let ended = client::run(*tool, "127.0.0.1", port, &options, LIMIT);
            let ended = ended.expect("a short test");
            assert_eq!(ended.code, Some(0), "{ended}");
        }
        Turn::Steps(steps) => {
            let mut peer = Peer::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
            let peer = peer.as_mut().expect("the server listens");
            peer.follow(&honest_client()[..*steps]).expect("an honest exchange so far");
        }
        Turn::Noise(bytes) => {
            let mut peer = Peer::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
            let peer = peer.as_mut().expect("the server listens");
            peer.follow(&[Step::Send(bytes.to_vec())]).expect("it can be sent");
        }
        Turn::Killed(options) => {
            let options: Vec<_> = options.split(' ').collect();
            let mut client = client::start(Linerate, "127.0.0.1", port, &options);
            // Somewhere in its beginning or after it.
            std::thread::sleep(Duration::from_millis(60));
            client.signal("KILL");
            client.wait(LIMIT).expect("it was killed");
        }
    }
}

/// How long it goes on.
enum Plan {
    Tests(usize),
    Until(Duration),
}

impl Plan {
    fn from_env() -> Self {
        let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<f64>().ok());
        match (number("LINERATE_SOAK_HOURS"), number("LINERATE_SOAK_TESTS")) {
            (Some(hours), _) => Self::Until(Duration::from_secs_f64(hours * 3600.0)),
            (_, Some(tests)) => Self::Tests(tests as usize),
            _ if std::env::var_os("LINERATE_LONG").is_some() => Self::Tests(10_000),
            _ => Self::Tests(300),
        }
    }

    fn is_over(&self, done: usize, began: Instant) -> bool {
        done >= 2 * GROUP
            && match self {
                Self::Tests(tests) => done >= *tests,
                Self::Until(time) => began.elapsed() >= *time,
            }
    }
}

/// The tests at the beginning and at the end that are held against each other.
const GROUP: usize = 100;
/// Of all clients of a round.
const STREAMS: u64 = 70;
const LIMIT: Duration = Duration::from_secs(20);
