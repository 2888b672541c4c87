//! Options that the Windows build hands to another system than the others do: sizes of buffers, what
//! moves without a copy, files, the other address family.

use std::fs;
use std::time::Duration;

use linerate_tests::case::Case;
use linerate_tests::folder::Folder;
use linerate_tests::rows::run_all;
use linerate_tests::server::Server;
use linerate_tests::tool::Tool;
use linerate_tests::{client, pair};

use Tool::{Iperf3, Linerate, LinerateWindows};

/// Client and server.
const PAIRS: [(Tool, Tool); 4] = [
    (LinerateWindows, Iperf3),
    (Iperf3, LinerateWindows),
    (LinerateWindows, Linerate),
    (Linerate, LinerateWindows),
];

const LINES: [&str; 9] = [
    "-t 1 -O 1 -b 100M",
    "-t 1 -O 1 -b 100M -R",
    "-u -t 1 -O 1 -b 20M -l 1400 -R",
    "-n 64M -Z",
    "-n 64M -Z -R",
    "-t 1 -N -l 1K -b 10M",
    "-6 -n 16M -R",
    "-6 -u -t 1 -b 10M -l 1400 --bidir",
    "-t 1 -b 50M -R --get-server-output",
];

#[test]
#[ignore = "needs Wine; `cargo xtask windows` runs it"]
fn options_are_kept_by_both_ends() {
    let rows: Vec<_> = PAIRS.iter().flat_map(|pair| LINES.map(|line| (pair, line))).collect();
    run_all(&rows, |((client, server), line)| pair::run(&Case::new(line), *client, *server));
}

/// Linux gives its own end what its administrator allows; iperf3 gives up when that is less.
#[test]
#[ignore = "needs Wine; `cargo xtask windows` runs it"]
fn buffers_have_the_size_that_was_asked_for() {
    let lines = ["-t 1 -b 100M -w 16M", "-t 1 -b 100M -w 16M -R", "-u -t 1 -b 10M -l 1400 -w 16M"];
    let ends = [(LinerateWindows, Linerate, 0), (Linerate, LinerateWindows, 1)];
    let rows: Vec<_> = ends.iter().flat_map(|ends| lines.map(|line| (ends, line))).collect();
    run_all(&rows, |((client, server, windows), line)| {
        let both = pair::documents(&Case::new(line), *client, *server)?;
        let start = &both[*windows]["start"];
        let granted = ["sndbuf_actual", "rcvbuf_actual"].map(|key| start[key].as_u64());
        if granted.iter().all(|bytes| *bytes >= Some(16 << 20)) {
            return Ok(());
        }
        Err(format!("`{line}` from {client} to {server}: granted are {granted:?}"))
    });
}

#[test]
#[ignore = "needs Wine; `cargo xtask windows` runs it"]
fn a_file_arrives_as_it_was() {
    // What iperf3 sends of a file without a copy is not the file.
    let own = [(LinerateWindows, Linerate), (Linerate, LinerateWindows)];
    let rows = PAIRS.iter().flat_map(|pair| ["", "-R -t 1"].map(|line| (pair, line)));
    let more = own.iter().flat_map(|pair| ["-Z", "--bidir"].map(|line| (pair, line)));
    let rows: Vec<_> = rows.chain(more).collect();
    run_all(&rows, |((client_tool, server_tool), line)| {
        let folder = Folder::new();
        let (from, to) = (folder.word("from \u{e4}\u{4e2d}"), folder.word("to"));
        // Many blocks with a part of one.
        let content: Vec<u8> = (0..3_000_017).map(|at| (at * 31 + at / 253) as u8).collect();
        fs::write(&from, &content).map_err(|e| e.to_string())?;
        let (own, theirs) = if line.contains("-R") { (&to, &from) } else { (&from, &to) };
        let server = Server::start(*server_tool, &["-1", "-F", theirs]);
        let options: Vec<_> = line.split_whitespace().chain(["-F", own]).collect();
        let client = client::run(*client_tool, "127.0.0.1", server.port(), &options, TIME_LIMIT)?;
        let server = server.wait()?;
        let stored = fs::read(&to).map_err(|e| e.to_string())?;
        if (client.code, server.code) == (Some(0), Some(0)) && stored == content {
            return Ok(());
        }
        let (bytes, case) = (stored.len(), format!("`{line}` from {client_tool} to {server_tool}"));
        Err(format!("{case}: {bytes} bytes were stored\n{client}\n{server}"))
    });
}

const TIME_LIMIT: Duration = Duration::from_secs(30);
