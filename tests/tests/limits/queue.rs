//! One test at a time, and waiting for one's turn.

#[cfg(unix)]
use linerate_tests::scratch::Scratch;

use super::*;

#[test]
fn second_client_of_an_exclusive_server_is_told_at_once() {
    if !Tool::Iperf3.is_here() {
        return;
    }
    let server = Server::start(Tool::Linerate, &["--exclusive"]);
    let running = start_running(Tool::Iperf3, &server, "-t 4 -b 10M");
    for tool in TOOLS {
        for line in ["-t 1", "-t 1 -J", "-t 1 -u"] {
            let second = run(tool, &server, line);
            assert_refused(&second, tool, BUSY, "tests at once: 1");
            assert!(second.took < Duration::from_secs(1), "{second}");
        }
    }
    ends_well(running);
    ends_well(start(Tool::Linerate, &server, "-t 1 -b 10M"));
    let ended = server.stop("INT").expect("the server ends when it is told to");
    let told = ended.stderr.matches("127.0.0.1 was turned away: ").count();
    assert_eq!(told, 6, "{ended}");
    assert!(ended.stderr.contains("tests at once: 1"), "{ended}");
}

#[test]
fn clients_in_the_queue_are_served_in_the_order_they_came() {
    if !Tool::Iperf3.is_here() {
        return;
    }
    let server = Server::start(Tool::Linerate, &["-J", "--queue", "4"]);
    let line = |title| format!("-t 1 -b 10M -T {title}");
    let mut clients = vec![start_running(Tool::Iperf3, &server, &line("first"))];
    for (tool, title) in
        [(Tool::Iperf3, "second"), (Tool::Linerate, "third"), (Tool::Iperf3, "fourth")]
    {
        clients.push(start(tool, &server, &line(title)));
        sleep(Duration::from_millis(100));
    }
    clients.push(start(Tool::Iperf3, &server, "-u -t 1 -b 10M -T fifth"));
    clients.into_iter().for_each(|client| _ = ends_well(client));
    let ended = server.stop("INT").expect("the server ends when it is told to");
    let documents = ended.documents().expect("one document for each test");
    let titles: Vec<_> =
        documents.iter().filter_map(|document| document["title"].as_str()).collect();
    assert_eq!(titles, ["first", "second", "third", "fourth", "fifth"]);
    for document in documents.iter().filter(|document| document["title"].is_string()) {
        assert!(document.get("error").is_none(), "{document}");
        assert_eq!(document["linerate"]["concurrent_tests"], 0, "{document}");
    }
}

#[test]
fn client_that_goes_leaves_the_queue_to_another() {
    if !Tool::Iperf3.is_here() {
        return;
    }
    for signal in ["KILL", "INT"] {
        let server = Server::start(Tool::Linerate, &["-V", "--queue", "2"]);
        let running = start_running(Tool::Iperf3, &server, "-t 3 -b 10M");
        let mut goes = start(Tool::Iperf3, &server, "-t 1 -b 10M");
        sleep(Duration::from_millis(100));
        let stays = start(Tool::Iperf3, &server, "-t 1 -b 10M");
        sleep(Duration::from_millis(100));
        for tool in TOOLS {
            let refused = run(tool, &server, "-t 1");
            assert_refused(&refused, tool, BUSY, "clients in the queue: 2");
        }
        goes.signal(signal);
        sleep(Duration::from_millis(200));
        let comes = start(Tool::Linerate, &server, "-t 1 -b 10M");
        for client in [running, stays, comes] {
            ends_well(client);
        }
        let ended = server.stop("INT").expect("the server ends when it is told to");
        for line in ["127.0.0.1 waits for its turn, 2 in the queue", "it left the queue"] {
            assert!(ended.stderr.contains(line), "{line:?} is missing: {ended}");
        }
    }
}

#[test]
fn who_waits_too_long_is_told_busy() {
    if !Tool::Iperf3.is_here() {
        return;
    }
    let server = Server::start(Tool::Linerate, &["--queue", "2/1"]);
    let running = start_running(Tool::Iperf3, &server, "-t 4 -b 10M");
    for tool in TOOLS {
        let waited = run(tool, &server, "-t 1");
        assert_refused(&waited, tool, BUSY, "waited 1 s in the queue");
        let took = waited.took.as_millis();
        assert!((900..2500).contains(&took), "{waited}");
    }
    ends_well(running);
}

#[test]
fn queue_serves_as_many_at_once_as_there_are_places() {
    let server = Server::start(Tool::Linerate, &["-J", "--queue", "4", "--max-tests", "2"]);
    let clients: Vec<_> = (0..4).map(|_| start(Tool::Linerate, &server, "-t 1 -b 10M")).collect();
    clients.into_iter().for_each(|client| _ = ends_well(client));
    let ended = server.stop("INT").expect("the server ends when it is told to");
    for document in ended.documents().expect("one document for each test").iter().take(4) {
        let beside = document["linerate"]["concurrent_tests"].as_u64();
        assert!(beside <= Some(1), "{document}");
    }
}

#[cfg(unix)]
#[test]
fn policy_with_more_places_lets_the_queue_in_at_once() {
    let scratch = Scratch::new();
    let file = scratch.file("policy.toml");
    let write = |policy: &str| std::fs::write(&file, policy).expect("there is room for a policy");
    write("queue = 4\nmax-tests = 1");
    let options = ["-J", "--policy", file.to_str().expect("a plain name")];
    let mut server = Server::start(Tool::Linerate, &options);
    let running = start_running(Tool::Linerate, &server, "-t 60 -b 1M -T first");
    let waiting = ["second", "third"]
        .map(|title| start(Tool::Linerate, &server, &format!("-t 1 -b 1M -T {title}")));
    sleep(A_MOMENT);
    write("queue = 4\nmax-tests = 3");
    server.signal("HUP");
    waiting.into_iter().for_each(|client| _ = ends_well(client));
    drop(running);
}

#[test]
fn server_that_ends_sends_the_queue_away() {
    let mut server = Server::start(Tool::Linerate, &["--queue", "2"]);
    let running = start_running(Tool::Linerate, &server, "-t 9 -b 10M");
    let waits = start_running(Tool::Linerate, &server, "-t 1");
    server.signal("TERM");
    let waited = waits.wait(TIME_LIMIT).expect("it is sent away");
    assert_refused(&waited, Tool::Linerate, BUSY, "the server takes no further tests");
    assert_eq!(running.wait(TIME_LIMIT).expect("it is told").code, Some(5));
}

#[test]
fn client_waits_for_the_first_word_as_long_as_it_is_told_to() {
    let server = Server::start(Tool::Linerate, &["--queue", "2"]);
    let running = start_running(Tool::Linerate, &server, "-t 8 -b 10M");
    let waited = run(Tool::Linerate, &server, "-t 1 --answer-timeout 6 --explain");
    assert_eq!(waited.code, Some(2), "{waited}");
    assert!(waited.stderr.contains("has not answered yet: it may have a queue"), "{waited}");
    assert!(waited.stderr.contains("--answer-timeout"), "{waited}");
    ends_well(running);
}
