//! What makes the Windows build a citizen of its system: services, files by any path, texts in any
//! script. Under Wine; `cargo xtask windows` runs these.

use std::process::Command;
use std::time::{Duration, Instant};

use linerate_tests::client;
use linerate_tests::process::{Ended, Process};
use linerate_tests::rows::run_all;
use linerate_tests::scratch::Scratch;
use linerate_tests::server::{Server, free_port};
use linerate_tests::tool::Tool;

/// A service of its own for one test, removed when dropped.
struct Service {
    name: String,
}

impl Service {
    fn install(words: &[&str]) -> Self {
        let service =
            Self { name: format!("linerate-test-{}-{}", std::process::id(), free_port()) };
        let ended = service.run("install", &[&["--"], words].concat());
        assert_eq!(ended.code, Some(0), "{ended}");
        let rule = format!("netsh advfirewall firewall add rule name=\"{}\" dir=in", service.name);
        assert!(ended.stdout.contains(&rule), "{ended}");
        service
    }

    /// Starts it as long as Wine still starts others.
    fn start(&self) -> Ended {
        let began = Instant::now();
        loop {
            let ended = self.run("start", &[]);
            if !ended.stderr.contains("locked") || began.elapsed() > TIME_LIMIT {
                return ended;
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    fn run(&self, what: &str, words: &[&str]) -> Ended {
        linerate(&[&["service", what, "--name", &self.name], words].concat())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.run("uninstall", &[]);
    }
}

#[test]
#[ignore = "needs Wine; `cargo xtask windows` runs it"]
fn a_service_serves_until_it_is_stopped() {
    let scratch = Scratch::new();
    let (port, log) = (free_port(), windows_path(&scratch, "log"));
    let service = Service::install(&["-s", "-p", &port.to_string(), "--logfile", &log]);
    let status = service.run("status", &[]);
    assert!(status.stdout.contains("stopped"), "{status}");

    let started = service.start();
    assert_eq!(started.code, Some(0), "{started}");
    let status = service.run("status", &[]);
    assert!(status.stdout.contains(": running, as process "), "{status}");
    assert!(status.stdout.contains("linerate.exe"), "{status}");
    assert_eq!(service.run("start", &[]).code, Some(0), "it runs already");

    let options = ["-n", "1M"];
    let ended = client::run(Tool::Iperf3, "127.0.0.1", port, &options, TIME_LIMIT);
    assert_eq!(ended.expect("it ends").code, Some(0));

    // What runs when it is stopped has its result so far.
    let options = ["-t", "20", "-b", "10M"];
    let running = client::start(Tool::Iperf3, "127.0.0.1", port, &options);
    std::thread::sleep(Duration::from_secs(1));
    let stopped = service.run("stop", &[]);
    assert_eq!(stopped.code, Some(0), "{stopped}");
    let ended = running.wait(TIME_LIMIT).expect("its server has ended");
    assert!(
        ended.stdout.contains("error - the server has terminated")
            || ended.stderr.contains("error - the server has terminated"),
        "{ended}"
    );
    let status = service.run("status", &[]);
    assert!(status.stdout.contains(": stopped\n"), "{status}");
    assert_eq!(service.run("stop", &[]).code, Some(0), "it is stopped already");

    let log = scratch.read("log");
    let events: Vec<_> = log
        .lines()
        .filter(|line| line.starts_with("20"))
        .filter_map(|line| line.split(' ').nth(1))
        .collect();
    assert_eq!(events, ["start", "begin", "end", "begin", "end", "stop"], "{log}");
    assert!(log.contains(r#"stop reason="interrupted by the service manager""#), "{log}");
    assert!(log.contains("outcome=interrupted by=server"), "{log}");
}

#[test]
#[ignore = "needs Wine; `cargo xtask windows` runs it"]
fn a_service_that_cannot_start_says_why() {
    let taken = Server::start(Tool::Linerate, &[]);
    let service = Service::install(&["-s", "-p", &taken.port().to_string()]);
    let started = service.start();
    assert_eq!(started.code, Some(1), "{started}");
    // WSAEADDRINUSE
    assert!(started.stderr.contains("(os error 10048)"), "{started}");
    let status = service.run("status", &[]);
    assert!(status.stdout.contains(": stopped: "), "{status}");
    assert!(status.stdout.contains("(os error 10048)"), "{status}");
}

#[test]
#[ignore = "needs Wine; `cargo xtask windows` runs it"]
fn a_service_that_is_not_ours_is_left_alone() {
    for what in ["start", "stop", "status", "uninstall"] {
        let ended = linerate(&["service", what, "--name", "EventLog"]);
        assert_eq!(ended.code, Some(1), "{ended}");
        assert!(ended.stderr.contains("it is no service of linerate"), "{ended}");
    }
    let ended = linerate(&["service", "run"]);
    assert_eq!(ended.code, Some(1), "{ended}");
    assert!(ended.stderr.contains("service run is what the service manager starts"), "{ended}");
}

#[test]
#[ignore = "needs Wine; `cargo xtask windows` runs it"]
fn names_and_titles_may_have_any_letters() {
    let server = Server::start(Tool::Linerate, &[]);
    let scratch = Scratch::new();
    let title = "Prüfung \u{2713} \u{8a66}\u{9a13}";
    let log = windows_path(&scratch, "lóg-\u{2713}");
    let run = |options: &[&str]| {
        let options = [&["-n", "64K", "-T", title], options].concat();
        let ended = client(server.port(), &options);
        assert_eq!(ended.code, Some(0), "{ended}");
        ended
    };
    assert!(run(&[]).stdout.starts_with(&format!("{title}:  Connecting to host")));
    assert_eq!(run(&["-J"]).document().expect("one document")["title"], title);
    run(&["--logfile", &log]);
    assert!(scratch.read("lóg-\u{2713}").starts_with(&format!("{title}:  Connecting to host")));
}

#[test]
#[ignore = "needs Wine; `cargo xtask windows` runs it"]
fn files_may_lie_anywhere() {
    let server = Server::start(Tool::Linerate, &[]);
    let scratch = Scratch::new();
    let deep = scratch.file("d".repeat(60).as_str()).join("e".repeat(100)).join("f".repeat(120));
    std::fs::create_dir_all(&deep).expect("a folder of its own");
    std::fs::write(deep.join("file"), [b'x'; 100_000]).expect("a file of its own");
    let windows = format!("Z:{}", deep.display().to_string().replace('/', "\\"));
    assert!(windows.len() > 260);
    for path in [
        format!("{windows}\\file"),
        format!("{}/file", windows.replace('\\', "/")),
        format!("\\\\?\\{windows}\\file"),
    ] {
        let ended = client(server.port(), &["-F", &path]);
        assert_eq!(ended.code, Some(0), "{ended}");
        assert!(ended.stdout.contains("Sent 97.7 KByte / 97.7 KByte (100%)"), "{ended}");
    }
    let ended = client(server.port(), &["-n", "64K", "--logfile", &format!("{windows}\\log")]);
    assert_eq!(ended.code, Some(0), "{ended}");
    assert!(deep.join("log").exists());
}

/// What has no end, or is none of what it should be, is told in a line.
#[test]
#[ignore = "needs Wine; `cargo xtask windows` runs it"]
fn devices_and_folders_are_what_they_are() {
    let server = Server::start(Tool::Linerate, &[]);
    let (scratch, port) = (Scratch::new(), server.port().to_string());
    let folder = windows_path(&scratch, "");
    let client = ["-c", "127.0.0.1", "-p", &port, "-n", "64K"];
    let server = ["-s", "-1", "--idle-timeout", "1", "-p", &free_port().to_string()];
    let rows: [(&[&str], [&str; 2], i32, &str); 7] = [
        (&client, ["--logfile", "NUL"], 0, ""),
        (&[&client[..], &["-R"]].concat(), ["-F", "NUL"], 0, ""),
        (&client, ["--logfile", &folder], 1, "unable to open log file"),
        (&client, ["-F", &folder], 1, "unable to open -F file"),
        (&server, ["--policy", "NUL"], 1, "must be a regular file, not a device"),
        (&server, ["--policy", &folder], 1, "must be a regular file, not a folder"),
        (&server, ["-D", "-4"], 1, "-D: this system has no daemons"),
    ];
    run_all(&rows, |(role, options, code, told)| {
        let ended = linerate(&[*role, options].concat());
        if ended.code == Some(*code) && ended.stderr.contains(told) {
            return Ok(());
        }
        Err(ended.to_string())
    });
}

#[test]
#[ignore = "needs Wine; `cargo xtask windows` runs it"]
fn a_pid_file_names_a_process_that_runs() {
    let scratch = Scratch::new();
    let path = windows_path(&scratch, "pid");
    let server = Server::start(Tool::LinerateWindows, &["-I", &path]);
    let number: u32 = scratch.read("pid").parse().expect("a number and nothing else");
    let second = |port: u16| {
        let port = port.to_string();
        linerate(&["-s", "-1", "--idle-timeout", "1", "-p", &port, "-I", &path])
    };
    let ended = second(free_port());
    assert_eq!(ended.code, Some(1), "{ended}");
    assert!(ended.stderr.contains("Another instance of iperf3 appears to be running"), "{ended}");
    // The system takes it for the same process.
    std::fs::write(scratch.file("pid"), (number + 1).to_string()).expect("own file");
    assert_eq!(second(free_port()).code, Some(0));
    let ended = server.stop("INT").expect("it ends");
    assert_eq!(ended.code, Some(0), "{ended}");
}

#[test]
#[ignore = "needs Wine; `cargo xtask windows` runs it"]
fn an_interrupt_ends_a_test_with_its_summary() {
    let server = Server::start(Tool::Linerate, &[]);
    let options = ["-t", "20", "-b", "10M"];
    let mut client = client::start(Tool::LinerateWindows, "127.0.0.1", server.port(), &options);
    // The test is to be in its middle.
    std::thread::sleep(Duration::from_secs(2));
    client.signal("INT");
    let ended = client.wait(TIME_LIMIT).expect("a signal ends it");
    assert_eq!(ended.code, Some(5), "{ended}");
    assert!(ended.stdout.contains("sender"), "{ended}");
    assert!(ended.stderr.contains("terminated by signal Interrupt(2)"), "{ended}");
}

fn linerate(words: &[&str]) -> Ended {
    let mut command: Command = Tool::LinerateWindows.command();
    command.args(words).env("LC_ALL", "C.UTF-8");
    Process::start(&mut command).wait(TIME_LIMIT).expect("it ends by itself")
}

fn client(port: u16, options: &[&str]) -> Ended {
    linerate(&[&["-c", "127.0.0.1", "-p", &port.to_string()], options].concat())
}

/// The path that Wine has for a file.
fn windows_path(scratch: &Scratch, name: &str) -> String {
    format!("Z:{}", scratch.file(name).display().to_string().replace('/', "\\"))
}

/// Wine waits so long for a service, and more.
const TIME_LIMIT: Duration = Duration::from_secs(90);
