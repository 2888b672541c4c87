//! What options do once a test runs: values as they go over the wire, sizes as they are reported,
//! lengths as they are kept. Spellings and limits are the command line's own tests.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use linerate_tests::client;
use linerate_tests::process::Ended;
use linerate_tests::rows::run_all;
use linerate_tests::server::Server;
use linerate_tests::tool::Tool;
use serde_json::Value;

#[test]
fn a_datagram_has_its_size_wherever_the_option_stands() {
    let server = Server::start(Tool::Linerate, &[]);
    let lines = ["-u --length 128 -t 1 -b 1M", "--length 128 -u -t 1 -b 1M", "-b 1M -l128 -t1 -u"];
    run_all(&lines, |line| {
        let document = run(&server, line)?.document()?;
        let udp = &document["end"]["streams"][0]["udp"];
        let (bytes, packets) = (number(&udp["bytes"])?, number(&udp["packets"])?);
        let block = number(&document["start"]["test_start"]["blksize"])?;
        if block == 128 && packets > 0 && bytes == packets * 128 {
            return Ok(());
        }
        Err(format!("{line}: blocks of {block}, {bytes} bytes in {packets} datagrams"))
    });
}

#[test]
fn an_omitted_start_lengthens_the_test() {
    let server = Server::start(Tool::Linerate, &[]);
    let ended = run(&server, "-t 1 -O 2 -b 10M").expect("it ends");
    assert!(ended.took >= Duration::from_secs(3), "2 s left out and 1 s measured: {ended}");
    let document = ended.document().expect("a document");
    let intervals = document["intervals"].as_array().expect("a list");
    let omitted = |interval: &&Value| interval["sum"]["omitted"] == true;
    let left_out = intervals.iter().filter(omitted).count();
    assert_eq!((left_out, intervals.len() - left_out), (2, 1), "{document:#}");
    let seconds = document["end"]["sum_sent"]["seconds"].as_f64().expect("a number");
    assert!((0.9..1.9).contains(&seconds), "{seconds} s are reported");
}

#[cfg(unix)]
#[test]
fn a_test_without_an_end_runs_until_it_is_interrupted() {
    let server = Server::start(Tool::Linerate, &[]);
    let options = ["-t", "0", "-b", "10M", "-J"];
    let mut endless = client::start(Tool::Linerate, "127.0.0.1", server.port(), &options);
    // Long enough for two intervals: whatever is shorter could be the end of a set-up.
    std::thread::sleep(Duration::from_millis(2500));
    assert!(endless.is_running(), "nothing ends it");
    endless.signal("INT");
    let ended = endless.wait(TIME_LIMIT).expect("an interrupt ends it");
    assert_eq!(ended.code, Some(5), "{ended}");
    let document = ended.document().expect("a document all the same");
    assert!(document["error"].as_str().is_some_and(|error| error.contains("Interrupt(2)")));
    assert!(document["intervals"].as_array().is_some_and(|list| list.len() >= 2), "{document:#}");
    assert!(number(&document["end"]["sum_sent"]["bytes"]).is_ok_and(|bytes| bytes > 0));
}

#[test]
fn as_many_streams_as_there_can_be() {
    let server = Server::start(Tool::Linerate, &[]);
    let lines = ["-P 128 -n 16M", "-P 128 -n 16M -R", "-u -P 128 -t 1 -b 200K -l 500"];
    run_all(&lines, |line| {
        let document = run(&server, line)?.document()?;
        let streams = document["end"]["streams"].as_array().map_or(0, Vec::len);
        if streams == 128 { Ok(()) } else { Err(format!("{line}: {streams} streams")) }
    });
}

/// Each row: options, and what the parameters say because of them.
#[test]
fn values_reach_the_server_in_the_units_of_the_protocol() {
    let rows: &[(&str, &[(&str, Value)])] = &[
        ("-b 10M", &[("bandwidth", 10_000_000.into())]),
        ("-b 2.5G/10", &[("bandwidth", 2_500_000_000_u64.into()), ("burst", 10.into())]),
        ("-n 10M", &[("num", 10_485_760.into()), ("time", 0.into())]),
        ("-k 2K", &[("blockcount", 2048.into()), ("time", 0.into())]),
        ("-l 10K", &[("len", 10_240.into())]),
        ("-w 1M", &[("window", 1_048_576.into())]),
        ("-w 0", &[("window", Value::Null)]),
        ("-M 0", &[("MSS", Value::Null)]),
        ("-n 0 -k 0", &[("num", 0.into()), ("blockcount", 0.into()), ("time", 10.into())]),
        ("-u", &[("udp", true.into()), ("tcp", Value::Null), ("bandwidth", 1_048_576.into())]),
        ("-u -b 0", &[("bandwidth", Value::Null)]),
        ("--fq-rate 1G", &[("fqrate", 1_000_000_000.into())]),
        ("--dscp ef", &[("TOS", 184.into())]),
        ("-S 0110", &[("TOS", 72.into())]),
        ("-R", &[("reverse", true.into()), ("bidirectional", Value::Null)]),
        ("--bidir", &[("bidirectional", true.into()), ("reverse", Value::Null)]),
        ("-A 0,1", &[("server_affinity", 1.into())]),
        ("-A 0", &[("server_affinity", Value::Null)]),
        ("-m", &[("mptcp", true.into())]),
        ("-Z", &[("zerocopy", 1.into())]),
        ("--skip-rx-copy", &[("skip_rx_copy", 1.into())]),
        ("-u --dont-fragment", &[("dont_fragment", 1.into())]),
        ("--repeating-payload", &[("repeating_payload", 1.into())]),
        ("-u --udp-counters-64bit", &[("udp_counters_64bit", 1.into())]),
        (
            "-u --gsro -l 1000",
            &[("gso", 1.into()), ("gro", 1.into()), ("gso_dg_size", 1000.into())],
        ),
        ("--pacing-timer 2K", &[("pacing_timer", 2048.into())]),
        ("--get-server-output", &[("get_server_output", 1.into())]),
        ("-T x --extra-data y", &[("title", "x".into()), ("extra_data", "y".into())]),
        ("-t 1 -O 2", &[("time", 1.into()), ("omit", 2.into())]),
    ];
    run_all(rows, |(line, expected)| {
        let parameters = parameters_of(line)?;
        for (key, value) in *expected {
            if parameters[key] != *value {
                return Err(format!("{line}: {key} should be {value}: {parameters}"));
            }
        }
        Ok(())
    });
}

/// The parameters that a client with these options sends, to a server that then refuses.
fn parameters_of(line: &str) -> Result<Value, String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|e| e.to_string())?;
    let port = listener.local_addr().map_err(|e| e.to_string())?.port();
    let server = std::thread::spawn(move || -> std::io::Result<Vec<u8>> {
        let (mut control, _) = listener.accept()?;
        control.set_read_timeout(Some(TIME_LIMIT))?;
        control.read_exact(&mut [0; 37])?;
        control.write_all(&[9])?;
        let mut length = [0; 4];
        control.read_exact(&mut length)?;
        let mut text = vec![0; u32::from_be_bytes(length) as usize];
        control.read_exact(&mut text)?;
        control.write_all(&[0xfe, 0, 0, 0, 5, 0, 0, 0, 0])?;
        Ok(text)
    });
    let options: Vec<&str> = line.split_whitespace().collect();
    let ended = client::run(Tool::Linerate, "127.0.0.1", port, &options, TIME_LIMIT)?;
    if ended.code != Some(3) {
        // It may never have connected, and then nobody will.
        return Err(format!("a refusal was expected: {ended}"));
    }
    let text = server.join().expect("it does not panic").map_err(|e| format!("{e}: {ended}"))?;
    serde_json::from_slice(&text).map_err(|e| e.to_string())
}

fn run(server: &Server, line: &str) -> Result<Ended, String> {
    let options: Vec<&str> = line.split_whitespace().chain(["-J"]).collect();
    let ended = client::run(Tool::Linerate, "127.0.0.1", server.port(), &options, TIME_LIMIT)?;
    if ended.code == Some(0) { Ok(ended) } else { Err(ended.to_string()) }
}

fn number(value: &Value) -> Result<u64, String> {
    value.as_u64().ok_or_else(|| format!("{value} is no number"))
}

const TIME_LIMIT: Duration = Duration::from_secs(30);
