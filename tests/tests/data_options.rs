//! Options that change how the data moves: without copies, in rows of datagrams, from and to files, on
//! one CPU. What both ends count must stay what it is without them, and a file must arrive as it was.

use std::fs;
use std::time::Duration;

use linerate_tests::case::Case;
use linerate_tests::folder::Folder;
use linerate_tests::process::Ended;
use linerate_tests::rows::run_all;
use linerate_tests::server::Server;
use linerate_tests::tool::Tool;
use linerate_tests::{client, pair};

use serde_json::Value;

use Tool::{Iperf3, Linerate};

#[test]
fn zero_copy_counts_as_every_sender_does() {
    let lines = ["-t 1 -Z", "-t 1 -Z -R", "-n 4M -Z -P 4", "-n 4M -Z -R -b 100M"];
    for (client, server) in [(Linerate, Iperf3), (Iperf3, Linerate), (Linerate, Linerate)] {
        run_pairs(&lines, client, server);
    }
}

#[test]
fn skipped_copies_and_rows_of_datagrams_count_exactly() {
    let lines = [
        "-t 1 --skip-rx-copy",
        "-n 20M --skip-rx-copy -R -b 1000M",
        "-u -t 1 -b 20M -l 1400 --skip-rx-copy",
        "-u -t 1 -b 20M -l 1400 --skip-rx-copy --bidir",
        "-u -t 1 -b 20M -l 1400 --gsro",
        "-u -k 200 -b 20M -l 1400 --gsro -R",
        "-u -t 1 -b 20M -l 1400 --gsro -P 2",
        "-u -n 1M -b 20M -l 100 --gsro --bidir",
        "-u -t 1 -b 20M -l 20000 --gsro --skip-rx-copy",
    ];
    run_pairs(&lines, Linerate, Linerate);
    // A stock server of this release knows nothing of the two.
    run_pairs(&["-u -t 1 -b 20M -l 1400 --gsro"], Linerate, Iperf3);
}

#[cfg(target_os = "linux")]
#[test]
fn what_a_full_queue_of_the_sending_host_refuses_is_no_loss() {
    use linerate_tests::namespace::may_make_namespaces;
    use linerate_tests::veth::{Cable, DEVICE, FAR};
    if !may_make_namespaces() {
        return;
    }
    let cable = Cable::new();
    let queue = format!("qdisc add dev {DEVICE} root tbf rate 100mbit burst 32k limit 100k");
    if !cable.near.tc(&queue) {
        println!("skipped: this kernel has no token bucket");
        return;
    }
    let server = Server::start_in(&cable.far, Linerate, &[]);
    for (host, options) in [
        (FAR.v4, "-u -t 1 -l 1400 -b 200M -J"),
        (FAR.v4, "-u -t 1 -l 300 -b 0 -J"),
        (FAR.v6, "-u -t 1 -l 1400 -b 1G -J"),
    ] {
        let options: Vec<&str> = options.split(' ').collect();
        let client = client::start_in(&cable.near, Linerate, host, server.port(), &options);
        let ended = client.wait(TIME_LIMIT).unwrap_or_else(|why| panic!("{why}"));
        let document: Value = serde_json::from_str(&ended.stdout).expect("a document");
        let sums = &document["end"];
        let sent = sums["sum_sent"]["bits_per_second"].as_f64().expect("a rate");
        // A few rows may be cut before the first refusal. iperf3 loses half, and nine of ten.
        let lost = sums["sum_received"]["lost_percent"].as_f64().expect("a share");
        assert!(lost < 5.0 && sent < 130e6, "{host} {options:?}: {lost} % of {sent}");
        assert!(sent > 20e6, "{host} {options:?}: {sent}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_engine_that_ran_is_told() {
    const BATCHES: (&str, &str) = ("/received/jitter_of_batches", "true");
    const TRUE_JITTER: (&str, &str) = ("/received/jitter_of_batches", "false");
    const ROWS: (&str, &str) = ("/sent/method", "\"gso\"");
    const PEER: (&str, &str) = ("/peer/jitter_of_batches", "true");
    const JOINED: (&str, &str) = ("/received/method", "\"gro\"");
    /// What the client's and the server's documents say.
    struct Row(
        &'static str,
        &'static [(&'static str, &'static str)],
        &'static [(&'static str, &'static str)],
    );
    let rows = [
        Row("-u -n 20M -b 0 -l 1400", &[ROWS, PEER], &[JOINED, BATCHES]),
        Row("-u -n 20M -b 0 -l 1400 -P 2 -R", &[JOINED, BATCHES], &[ROWS, PEER]),
        Row("-u -k 20 -b 1M -l 1400", &[("/sent/rows_refused", "false")], &[TRUE_JITTER]),
        Row("-u -k 20 -b 1M -l 1400 --bidir", &[TRUE_JITTER], &[TRUE_JITTER]),
        Row(
            "-u -n 20M -b 0 -l 1400 --skip-rx-copy",
            &[ROWS],
            // Nothing is joined, and the kernel tells the time of each.
            &[("/received/headers_only", "true"), TRUE_JITTER],
        ),
        Row(
            "-u -k 20 -b 1M -l 1400 --skip-rx-copy",
            &[],
            &[("/received/headers_only", "true"), TRUE_JITTER],
        ),
        Row(
            "-n 4M --bidir",
            &[("/sent/method", "\"copy\""), ("/received/method", "\"copy\"")],
            &[("/sent/method", "\"copy\""), ("/received/method", "\"copy\"")],
        ),
        Row(
            "-n 4M -Z --skip-rx-copy",
            &[("/sent/method", "\"sendfile\"")],
            &[("/received/method", "\"discard\"")],
        ),
    ];
    run_all(&rows, |Row(options, client_says, server_says)| {
        let server = Server::start(Linerate, &["-1", "-J"]);
        let ended = run(Linerate, server.port(), options.split_whitespace().chain(["-J"]))?;
        for (ended, says) in [(ended, client_says), (server.wait()?, server_says)] {
            let engine = &ended.document()?["linerate"]["engine"];
            for (place, expected) in *says {
                let told = engine.pointer(place).map(ToString::to_string);
                if told.as_deref() != Some(*expected) {
                    return Err(format!("{options}: {place} is not {expected} in {engine}"));
                }
            }
        }
        Ok(())
    });
}

#[test]
fn packets_per_second_are_bits_to_a_server_and_its_limits() {
    // 1000 a second of 1000 bytes.
    for tool in [Linerate, Iperf3].into_iter().filter(|tool| tool.is_here()) {
        for options in ["-u -l 1000 -k 50 -b 1000pps -J", "-l 1000 -k 50 -b 1kpps/2 -J"] {
            let server = Server::start(tool, &["-1", "-J"]);
            let ended = run(Linerate, server.port(), options.split_whitespace()).expect("it ends");
            for ended in [ended, server.wait().expect("one-off")] {
                let document = ended.document().expect("a document");
                assert_eq!(document["start"]["target_bitrate"], 8_000_000, "{options} {tool}");
            }
        }
    }
    let server = Server::start(Linerate, &["--server-bitrate-limit", "7999K"]);
    let options = "-u -l 1000 -k 50 -b 1000pps".split_whitespace();
    let ended = run(Linerate, server.port(), options).expect("it ends");
    assert!(ended.stderr.contains("total required bandwidth is larger"), "{ended}");
}

#[cfg(target_os = "linux")]
#[test]
fn people_are_told_when_jitter_is_that_of_batches() {
    for (options, is_of_batches) in
        [("-u -n 20M -b 0 -l 1400", true), ("-u -k 20 -b 1M -l 1400", false)]
    {
        let server = Server::start(Linerate, &["-1", "-V"]);
        let options = options.split_whitespace().chain(["-V"]);
        let client = run(Linerate, server.port(), options).expect("it ends");
        let server = server.wait().expect("one-off");
        assert!(client.stdout.contains("\nDatagrams sent: "), "{client}");
        let other = "\nDatagrams received by the other end: its jitter is that of batches\n";
        assert_eq!(client.stdout.contains(other), is_of_batches, "{client}");
        let line = server.stdout.lines().find(|line| line.starts_with("Datagrams received: "));
        let line = line.unwrap_or_else(|| panic!("no line: {server}"));
        assert_eq!(line.ends_with("jitter is that of batches"), is_of_batches, "{line}");
    }
}

#[test]
fn a_file_arrives_as_it_was() {
    struct Row(Tool, Tool, &'static str, usize);
    let mut rows = Vec::new();
    for (client, server) in [(Linerate, Linerate), (Linerate, Iperf3), (Iperf3, Linerate)] {
        // A part of a block, whole blocks, and many blocks with a part of one.
        for bytes in [1, 262_144, 3_000_017] {
            rows.push(Row(client, server, "", bytes));
            rows.push(Row(client, server, "-R -t 1", bytes));
        }
    }
    rows.push(Row(Linerate, Linerate, "-Z", 3_000_017));
    rows.push(Row(Linerate, Linerate, "--bidir", 3_000_017));
    rows.push(Row(Linerate, Linerate, "-b 50M -l 1000", 1_000_001));
    run_all(&rows, |Row(client_tool, server_tool, options, bytes)| {
        if !client_tool.is_here() || !server_tool.is_here() {
            return Ok(());
        }
        let folder = Folder::new();
        let (from, to) = (folder.word("from"), folder.word("to"));
        let content: Vec<u8> = (0..*bytes).map(|at| (at * 31 + at / 253) as u8).collect();
        fs::write(&from, &content).map_err(|e| e.to_string())?;
        let is_reverse = options.contains("-R");
        let (own, theirs) = if is_reverse { (&to, &from) } else { (&from, &to) };
        let server = Server::start(*server_tool, &["-1", "-F", theirs]);
        let options = options.split_whitespace().chain(["-F", own]);
        let ended = run(*client_tool, server.port(), options)?;
        let server = server.wait()?;
        let case = format!("{client_tool} to {server_tool}, {bytes} bytes: {ended}\n{server}");
        if ended.code != Some(0) {
            return Err(format!("it failed, {case}"));
        }
        let stored = fs::read(&to).map_err(|e| format!("{e}, {case}"))?;
        if stored != content {
            return Err(format!("{} bytes were stored, {case}", stored.len()));
        }
        let told = if *client_tool == Linerate { &ended } else { &server };
        let name = if *client_tool == Linerate { own } else { theirs };
        let line = told.stdout.lines().find(|line| line.contains("Sent "));
        match line {
            Some(line) if line.ends_with(&format!("(100%) of {name}")) => Ok(()),
            line => Err(format!("the report says {line:?}, {case}")),
        }
    });
}

#[cfg(unix)]
#[test]
fn a_stored_file_is_its_owners_and_replaces_what_was_there() {
    use std::os::unix::fs::PermissionsExt;

    let folder = Folder::new();
    fs::write(folder.word("from"), "short").expect("room for it");
    let (stored, again) = (folder.word("new"), folder.word("old"));
    fs::write(&again, "something that is longer").expect("room for it");
    for to in [&stored, &again] {
        let server = Server::start(Linerate, &["-1", "-F", to]);
        let ended = run(Linerate, server.port(), ["-F", &folder.word("from")]).expect("it ends");
        assert_eq!(ended.code, Some(0), "{ended}");
        server.wait().expect("one test");
        assert_eq!(fs::read(to).expect("it is there"), b"short");
    }
    let mode = fs::metadata(&stored).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn an_empty_file_is_sent_at_once() {
    let folder = Folder::new();
    fs::write(folder.word("empty"), "").expect("room for it");
    let server = Server::start(Linerate, &["-1", "-F", &folder.word("to")]);
    let options = ["-J", "-F", &folder.word("empty")];
    let ended = run(Linerate, server.port(), options).expect("it ends");
    server.wait().expect("one test");
    assert_eq!(ended.code, Some(0), "{ended}");
    assert!(ended.took < Duration::from_secs(5), "{ended}");
    let document = ended.document().expect("a document");
    let file = &document["end"]["streams"][0]["diskfile"];
    let fields = ["sent", "received", "size", "percent_sent", "percent_received"];
    assert_eq!(fields.map(|field| file[field].as_i64()), [0, 0, 0, 100, 100].map(Some), "{ended}");
    assert!(!ended.stdout.contains("null") && !ended.stdout.contains("nan"), "{ended}");
    assert_eq!(fs::read(folder.word("to")).expect("it was made"), b"");
}

#[test]
fn a_file_that_cannot_be_opened_fails_before_the_test() {
    let folder = Folder::new();
    let missing = folder.word("no/such");
    // Nobody listens there: the file comes first.
    for options in [&["-F", &missing][..], &["-R", "-F", &missing], &["-F", &folder.word("")]] {
        let ended = run(Linerate, 1, options.iter().copied()).expect("it ends");
        assert_eq!(ended.code, Some(1), "{ended}");
        assert!(ended.stderr.contains("unable to open -F file"), "{ended}");
        assert!(ended.stderr.contains(options[options.len() - 1]), "{ended}");
    }
    let server = Server::start(Linerate, &["-F", &missing]);
    for client in [Linerate, Iperf3, Linerate] {
        if client.is_here() {
            let ended = run(client, server.port(), ["-t", "1"]).expect("it ends");
            assert_ne!(ended.code, Some(0), "{ended}");
            assert!(ended.stderr.contains("unable to open -F file: No such file"), "{ended}");
        }
    }
    let log = server.stop("INT").expect("it lives until then");
    assert!(log.stderr.contains(&missing), "{log}");
}

#[test]
fn a_file_is_not_moved_by_udp() {
    let folder = Folder::new();
    for direction in ["-u", "-R", "--bidir"] {
        let options = ["-u", direction, "-F", &folder.word("x")];
        let ended = run(Linerate, 1, options).expect("it ends");
        assert_eq!(ended.code, Some(1), "{ended}");
        assert!(ended.stderr.contains("cannot transfer file using UDP"), "{ended}");
    }
    let server = Server::start(Linerate, &["-F", &folder.word("to")]);
    for client in [Linerate, Iperf3] {
        if client.is_here() {
            let ended = run(client, server.port(), ["-u", "-t", "1"]).expect("it ends");
            assert_ne!(ended.code, Some(0), "{ended}");
            // The release of iperf3 may be older than the number.
            let is_told = ended.stderr.contains("file using UDP") || client == Iperf3;
            assert!(is_told, "{ended}");
        }
    }
    let ended = run(Linerate, server.port(), ["-n", "1000"]).expect("it ends");
    assert_eq!(ended.code, Some(0), "TCP is served after it: {ended}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_is_full_ends_the_test_with_an_error() {
    let server = Server::start(Linerate, &["-F", "/dev/full"]);
    for client in [Linerate, Iperf3] {
        if client.is_here() {
            let ended = run(client, server.port(), ["-t", "20"]).expect("it ends");
            assert_ne!(ended.code, Some(0), "{ended}");
            assert!(ended.took < Duration::from_secs(10), "{ended}");
            if client == Linerate {
                assert!(ended.stderr.contains("unable to write -F file: No space left"), "{ended}");
            }
        }
    }
    let log = server.stop("INT").expect("it lives until then");
    let words = "unable to write -F file /dev/full: No space left";
    assert!(log.stderr.contains(words) && !log.stderr.contains("open"), "{log}");

    let server = Server::start(Linerate, &[]);
    let options = ["-R", "-J", "-P", "2", "-t", "20", "-F", "/dev/full"];
    let ended = run(Linerate, server.port(), options).expect("it ends");
    assert_eq!(ended.code, Some(1), "{ended}");
    assert!(ended.took < Duration::from_secs(10), "{ended}");
    let document = ended.document().expect("a document");
    let error = document["error"].as_str().unwrap_or_default();
    assert!(error.starts_with(words), "{error}");
}

#[cfg(target_os = "linux")]
#[test]
fn streams_run_on_the_cpu_that_was_asked_for_and_nothing_else_does() {
    let cpus = cpus_of(std::process::id(), &format!("{}", std::process::id()));
    if !cpus.contains(&1) {
        return linerate_tests::tool::skipped("there is one CPU only");
    }
    let server = Server::start(Linerate, &[]);
    let options = ["-t", "2", "-b", "10M", "-A", "0,1"];
    let pinned = client::start(Linerate, "127.0.0.1", server.port(), &options);
    let stream = |process| thread_of(process, "receive-1").or(thread_of(process, "send-1"));
    let on = |process: u32| stream(process).map_or(vec![], |thread| cpus_of(process, &thread));
    // A thread is there before it is where it should be.
    wait_for(|| (on(pinned.id()), on(server.id())) == (vec![0], vec![1]));
    assert_eq!(cpus_of(server.id(), &server.id().to_string()), cpus, "the server itself");
    let ended = pinned.wait(TIME_LIMIT).expect("it ends");
    assert_eq!(ended.code, Some(0), "{ended}");

    let free = client::start(Linerate, "127.0.0.1", server.port(), &["-t", "2", "-b", "10M"]);
    wait_for(|| stream(server.id()).is_some());
    assert_eq!(on(server.id()), cpus, "the next test");
    assert_eq!(free.wait(TIME_LIMIT).expect("it ends").code, Some(0));

    let server = Server::start(Linerate, &["-A", "1"]);
    let options = ["-t", "2", "-b", "10M", "-R"];
    let client = client::start(Linerate, "127.0.0.1", server.port(), &options);
    wait_for(|| (on(server.id()), on(client.id())) == (vec![1], cpus.clone()));
    assert_eq!(client.wait(TIME_LIMIT).expect("it ends").code, Some(0));
}

#[cfg(target_os = "linux")]
#[test]
fn a_cpu_that_is_not_there_is_refused_at_either_end() {
    let server = Server::start(Linerate, &[]);
    for (client, cpus, code) in
        [(Linerate, "1000", 1), (Linerate, "0,1000", 3), (Iperf3, "0,1000", 1)]
    {
        if client.is_here() {
            let ended = run(client, server.port(), ["-t", "1", "-A", cpus]).expect("it ends");
            assert_eq!(ended.code, Some(code), "{ended}");
            assert!(ended.stderr.contains("unable to set CPU affinity"), "{ended}");
        }
    }
    let ended = run(Linerate, server.port(), ["-n", "1000"]).expect("it ends");
    assert_eq!(ended.code, Some(0), "the server goes on: {ended}");
}

#[cfg(target_os = "linux")]
#[test]
fn datagrams_that_may_not_be_cut_are_refused_with_the_reason() {
    use linerate_tests::namespace::{Namespace, may_make_namespaces};

    if !may_make_namespaces() {
        return;
    }
    let namespace = Namespace::new();
    namespace.ip("link set lo mtu 1500");
    let server = Server::start_in(&namespace, Linerate, &[]);
    let run = |options: &str| {
        let options: Vec<_> = options.split_whitespace().collect();
        let client = client::start_in(&namespace, Linerate, "127.0.0.1", server.port(), &options);
        client.wait(TIME_LIMIT).expect("it ends")
    };
    let ended = run("-u -t 5 -b 1M -l 3000 --dont-fragment --explain");
    assert_eq!(ended.code, Some(6), "{ended}");
    assert!(ended.took < Duration::from_secs(4), "nothing is waited for: {ended}");
    for words in ["-l 1472 is the largest that fits", "Message too long", "--dont-fragment"] {
        assert!(ended.stderr.contains(words), "{words}: {ended}");
    }
    // A server keeps to it as well, and has nothing to send.
    let ended = run("-u -t 1 -b 1M -l 3000 --dont-fragment -R -J");
    let document = ended.document().expect("a document");
    assert_eq!(document["end"]["sum_received"]["packets"], 0, "{ended}");
    // Without it they are cut, by the system or from a row that it refuses.
    for options in ["-u -k 50 -b 5M -l 3000 -J", "-u -k 50 -b 5M -l 3000 --gsro -J"] {
        let ended = run(options);
        let document = ended.document().expect("a document");
        let received = &document["end"]["sum_received"];
        let counts = ["packets", "lost_packets"].map(|key| received[key].as_i64());
        assert_eq!(counts, [Some(50), Some(0)], "{ended}");
    }
}

fn run_pairs(lines: &[&'static str], client: Tool, server: Tool) {
    if client.is_here() && server.is_here() {
        run_all(lines, |line| pair::run(&Case::new(line), client, server));
    }
}

fn run<'a>(
    tool: Tool,
    port: u16,
    options: impl IntoIterator<Item = &'a str>,
) -> Result<Ended, String> {
    let options: Vec<_> = options.into_iter().collect();
    client::run(tool, "127.0.0.1", port, &options, TIME_LIMIT)
}

/// The thread of a process with this name.
#[cfg(target_os = "linux")]
fn thread_of(process: u32, name: &str) -> Option<String> {
    fs::read_dir(format!("/proc/{process}/task")).ok()?.flatten().find_map(|thread| {
        let found = fs::read_to_string(thread.path().join("comm")).ok()?;
        (found.trim() == name).then(|| thread.file_name().to_string_lossy().into_owned())
    })
}

/// The CPUs that a thread may run on, by their numbers; none if it is gone.
#[cfg(target_os = "linux")]
fn cpus_of(process: u32, thread: &str) -> Vec<u32> {
    let status = fs::read_to_string(format!("/proc/{process}/task/{thread}/status"));
    let Ok(status) = status else { return vec![] };
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let number = |text: &str| text.trim().parse::<u32>().expect("a number");
    let range = |part: &str| match part.split_once('-') {
        Some((first, last)) => number(first)..=number(last),
        None => number(part)..=number(part),
    };
    list.expect("Linux tells").split(',').flat_map(range).collect()
}

#[cfg(target_os = "linux")]
fn wait_for(condition: impl Fn() -> bool) {
    let deadline = std::time::Instant::now() + TIME_LIMIT;
    while !condition() {
        assert!(std::time::Instant::now() < deadline, "it never came");
        std::thread::sleep(Duration::from_millis(5));
    }
}

const TIME_LIMIT: Duration = Duration::from_secs(30);
