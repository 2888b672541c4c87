//! Amounts to the byte: what a server may send at most, and what a client asked for.

use super::*;

#[test]
fn server_sends_no_byte_more_than_it_allows() {
    let server = Server::start(Tool::Linerate, &["--test-log", "text", "--max-test-bytes", "1M"]);
    let lines = ["-R -t 9", "-R -P 4 -t 9", "-R -O 1 -t 9", "-u -b 0 -l 1K -R -P 4 -t 9"];
    let tools: Vec<_> = TOOLS.into_iter().filter(|tool| tool.is_here()).collect();
    for &tool in &tools {
        for line in lines {
            let ended = run(tool, &server, line);
            assert_refused(&ended, tool, TOO_FAST, "moved 1");
        }
    }
    let ended = server.stop("INT").expect("the server ends when it is told to");
    assert_eq!(
        ended.stderr.matches("outcome=limited").count(),
        tools.len() * lines.len(),
        "{ended}"
    );
    // Of the omitted start the log says nothing.
    let told = ended.stderr.matches(" sent_bytes=1048576 ").count();
    assert_eq!(told, tools.len() * (lines.len() - 1), "{ended}");
}

#[test]
fn client_receives_the_amount_and_no_byte_more() {
    let server = Server::start(Tool::Linerate, &["--max-test-bytes", "5M"]);
    for line in ["-u -R -b 0 -l 1K -n 5M -P 5 -J", "-R -n 5M -P 5 -J", "-R -n 5M -J"] {
        let ended = ends_well(start(Tool::Linerate, &server, line));
        let document = ended.document().expect("one document");
        assert_eq!(document["end"]["sum_received"]["bytes"], 5 << 20, "{ended}");
    }
}

const TOO_FAST: &str = "total required bandwidth is larger than server limit";
