//! Hostile servers. Each meets a client of its own.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

use linerate_tests::client;
use linerate_tests::process::Ended;
use linerate_tests::rows::run_all;
use linerate_tests::script::{Peer, Step, frame, honest_server, honest_server_end, server_error};
use linerate_tests::server::free_port;
use linerate_tests::tool::Tool;

struct Row {
    name: String,
    steps: Vec<Step>,
}

#[test]
fn server_that_leaves_at_any_point_ends_the_client() {
    let whole = honest_server();
    let rows = (0..=whole.len())
        .map(|kept| row(format!("closes after {kept} steps"), whole[..kept].to_vec()));
    meet(rows.collect());
}

#[test]
fn server_that_sends_garbage_at_any_point_ends_the_client() {
    let whole = honest_server();
    let rows = (1..whole.len()).map(|kept| {
        let steps = [&whole[..kept], &[Step::Send(vec![0xaa; 64])]].concat();
        row(format!("garbage after {kept} steps"), steps)
    });
    meet(rows.collect());
}

#[test]
fn server_that_refuses_at_any_point_ends_the_client() {
    let whole = honest_server();
    let refusals = [
        ("busy", Step::Send(vec![0xff])),
        ("terminates", Step::Send(vec![11])),
        ("rate limit", server_error(27)),
        ("authentication", server_error(142)),
        ("unknown error", server_error(-12345)),
    ];
    // Where the client waits for a code: after the cookie, the parameters, the streams, in the test.
    let rows = [1, 3, 5, 7].into_iter().flat_map(|kept| {
        refusals.iter().map({
            let whole = &whole;
            move |(name, step)| {
                let steps = [&whole[..kept], std::slice::from_ref(step)].concat();
                row(format!("{name} after {kept} steps"), steps)
            }
        })
    });
    meet(rows.collect());
}

/// As stock servers do it: the cookie is never read, so that the close resets the connection.
#[test]
fn server_that_is_busy_before_it_reads_the_cookie_is_called_busy() {
    for _ in 0..10 {
        let ended = run(&[Step::Send(vec![0xff])]).expect("the client ends");
        assert_eq!(ended.code, Some(3), "{ended}");
        assert!(ended.stderr.contains("the server is busy"), "{ended}");
    }
}

#[test]
fn server_with_impossible_results_ends_the_client() {
    let before = &honest_server()[..honest_server().len() - 1];
    let documents = [
        ("nothing at all", frame("")),
        ("no JSON", frame("well done")),
        ("cut off", frame(r#"{"cpu_util_total":1,"streams":[{"id":1,"#)),
        ("nested too deeply", frame("[".repeat(100_000))),
        ("unknown stream", frame(r#"{"streams":[{"id":77,"bytes":1}]}"#)),
        ("endless", Step::Send(u32::MAX.to_be_bytes().to_vec())),
    ];
    let rows = documents.into_iter().map(|(name, document)| {
        let steps = [before, &[document], &honest_server_end()].concat();
        row(name, steps)
    });
    meet(rows.collect());
}

/// A server's own output may be long; beyond the limit of a results document the client says so and
/// shows what it has measured itself.
#[test]
fn output_of_a_server_has_a_stated_limit() {
    let before = &honest_server()[..honest_server().len() - 1];
    for (bytes, code) in [(20 << 20, 0), (65 << 20, 6)] {
        let results = frame(format!(
            "{{\"cpu_util_total\":1,\"cpu_util_user\":1,\"cpu_util_system\":0,\
             \"sender_has_retransmits\":-1,\"server_output_text\":\"{}\",\
             \"streams\":[{{\"id\":1,\"bytes\":65536,\"retransmits\":-1,\"jitter\":0,\
             \"errors\":0,\"packets\":0}}]}}",
            "x".repeat(bytes)
        ));
        let steps = [before, &[results], &honest_server_end()].concat();
        let ended = run_with(&steps, &["-n", "64K", "--get-server-output"]).expect("it ends");
        assert_eq!(ended.code, Some(code), "{bytes} bytes: {}", ended.stderr);
        assert!(ended.stdout.contains("64.0 KBytes"), "{bytes} bytes: what the client measured");
        let output = ended.stdout.matches('x').count();
        assert_eq!(output >= bytes, code == 0, "{bytes} bytes: {output} shown");
        if code != 0 {
            complains_in_one_line(&ended).expect("one clear line");
            assert!(ended.stderr.contains("allowed: 1 to 67108864"), "{}", ended.stderr);
        }
    }
}

#[test]
fn missing_server_is_named_at_once() {
    let port = free_port();
    let ended = client::run(Tool::Linerate, "127.0.0.1", port, &[], TIME_LIMIT)
        .expect("a refused connection needs no waiting");
    complains_in_one_line(&ended).expect("one clear line");
}

/// The script plays the whole of an honest test, or the rows above prove nothing.
#[test]
fn honest_script_ends_the_client_well() {
    let steps = [honest_server(), honest_server_end()].concat();
    let ended = run(&steps).expect("the client ends");
    assert_eq!(ended.code, Some(0), "{ended}");
    assert!(ended.stdout.contains("receiver"), "a summary with the server's numbers: {ended}");
}

fn row(name: impl Into<String>, steps: Vec<Step>) -> Row {
    Row { name: name.into(), steps }
}

fn meet(rows: Vec<Row>) {
    run_all(&rows, |row| {
        run(&row.steps)
            .and_then(|ended| complains_in_one_line(&ended))
            .map_err(|e| format!("{}: {e}", row.name))
    });
}

/// A client against a server that follows the steps and then closes.
fn run(steps: &[Step]) -> Result<Ended, String> {
    run_with(steps, &["-n", "64K"])
}

fn run_with(steps: &[Step], options: &[&str]) -> Result<Ended, String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|e| e.to_string())?;
    let address = listener.local_addr().map_err(|e| e.to_string())?;
    let steps = steps.to_vec();
    let server = std::thread::spawn(move || {
        // A client that leaves early ends the script early; what it says then is what counts.
        Peer::accept(listener).and_then(|mut peer| peer.follow(&steps))
    });
    let ended = client::run(Tool::Linerate, "127.0.0.1", address.port(), options, TIME_LIMIT);
    // A script that still waits for the client's connection gets one that says nothing.
    drop(TcpStream::connect(address));
    drop(server.join());
    ended
}

fn complains_in_one_line(ended: &Ended) -> Result<(), String> {
    let code = ended.code.ok_or_else(|| format!("a signal ended {ended}"))?;
    let mut lines = ended.stderr.lines();
    let (line, more) = (lines.next().unwrap_or_default(), lines.next());
    let clear = line.len() > "linerate: ".len() && !line.contains("panicked");
    if code != 0 && clear && more.is_none() {
        Ok(())
    } else {
        Err(format!("not well said: {ended}"))
    }
}

const TIME_LIMIT: Duration = Duration::from_secs(20);
