//! What `--debug`, `--timestamps` and the name of the program change in the output, and what they
//! leave alone.

use linerate_tests::both::{End, Outcome, Run};
use linerate_tests::json::strict;
use linerate_tests::tool::Tool;

#[test]
fn each_level_of_debug_tells_more_and_only_on_the_error_stream() {
    let mut before = 0;
    for (option, words) in [
        ("--debug=1", "received PARAM_EXCHANGE"),
        ("--debug=2", "sent {\"tcp\":true"),
        ("--debug=3", "send buffer"),
        ("--debug=4", "StartStreams"),
    ] {
        let outcome = run(&format!("-n 1M -b 50M {option}"), "");
        let Outcome { client, .. } = &outcome;
        let lines = client.stderr.lines().count();
        assert!(lines > before, "{option}: {client}");
        before = lines;
        assert!(client.stderr.contains(words), "{option}: {client}");
        assert!(
            client.stderr.lines().all(|line| line.starts_with("linerate: debug: ")),
            "{client}"
        );
        assert!(!client.stdout.contains("debug"), "{client}");
    }
    let most = run("-n 1M -b 50M -d", "-d");
    assert_eq!(most.client.stderr.lines().count(), before);
    assert!(most.server.stderr.contains("debug: #1 received TEST_END"), "{}", most.server);
}

#[test]
fn documents_stay_documents_with_every_option_for_text() {
    let outcome = run("-t 1 -b 10M -J -d -V -f k -T title --timestamps", "-J -d -V --timestamps");
    for end in [End::Client, End::Server] {
        let ended = outcome.of(end);
        let document = strict(&ended.stdout).expect("one document");
        assert_eq!(document["title"], "title", "{end:?}");
        assert!(ended.stderr.contains("linerate: debug: "), "{ended}");
    }
    let first = outcome.client.stderr.lines().next();
    let words = "warning: Report format (-f) flag ignored with JSON output (-J)";
    assert_eq!(first, Some(words));
}

/// Under iperf3's name nothing is said that iperf3 would not say.
#[cfg(unix)]
#[test]
fn under_iperf3s_name_its_words_are_used_and_no_others() {
    use std::process::Command;
    use std::time::Duration;

    use linerate_tests::process::Process;
    use linerate_tests::scratch::Scratch;
    use linerate_tests::server::Server;

    let scratch = Scratch::new();
    let link = scratch.file("iperf3");
    let program = Tool::Linerate.command().get_program().to_owned();
    std::os::unix::fs::symlink(program, &link).expect("a link");
    let command = || Command::new(&link);
    let limit = Duration::from_secs(10);
    let run = |port: u16, options: &[&str]| {
        let mut command = command();
        command.args(["-c", "127.0.0.1", "-p", &port.to_string()]).args(options);
        Process::start(&mut command).wait(limit).expect("it ends")
    };

    for options in
        [&["-u", "-n", "100K", "-V"][..], &["-n", "1M", "-J"], &["-n", "1M", "--json-stream"]]
    {
        let server_options = [&["-1"], &options[options.len() - 1..]].concat();
        let server = Server::start_as(Tool::Linerate, command, &server_options);
        let client = run(server.port(), options);
        for ended in [client, server.wait().expect("one-off")] {
            assert_eq!(ended.code, Some(0), "{ended}");
            assert!(ended.stdout.contains("iperf 3."), "{ended}");
            assert!(!ended.stdout.contains("linerate"), "{ended}");
            assert!(!ended.stdout.contains("a call"), "{ended}");
            assert_eq!(ended.stderr, "", "{ended}");
        }
    }
    let refused = run(linerate_tests::server::free_port(), &[]);
    assert!(refused.stderr.starts_with("iperf3: error - unable to connect to server"), "{refused}");

    let version = command().arg("--version").output().expect("it starts").stdout;
    let version = String::from_utf8_lossy(&version).into_owned();
    let words: Vec<_> = version.lines().next().expect("a line").split(' ').collect();
    assert_eq!(words[0], "iperf");
    assert!(words[1].starts_with("3."), "{version}");
}

fn run(client: &str, server: &str) -> Outcome {
    Run { client, server, stopped: None }.by(Tool::Linerate, "127.0.0.1").expect("it ends")
}
