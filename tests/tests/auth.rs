//! Logins between linerate and stock iperf3 in both roles, and clients that try to get in otherwise.
//! The stock iperf3 decides the padding: before 3.17 it knows PKCS#1 v1.5 alone.

use std::ffi::OsStr;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use linerate_tests::process::{Ended, Process};
use linerate_tests::rows::run_all;
#[cfg(unix)]
use linerate_tests::scratch::Scratch;
use linerate_tests::script::{Peer, Step, frame, honest_client};
use linerate_tests::server::Server;
use linerate_tests::tool::Tool;
use serde_json::Value;

/// A client and a server.
type Pair = (Tool, Tool);

const OWN: Pair = (Tool::Linerate, Tool::Linerate);
const PAIRS: [Pair; 3] = [OWN, (Tool::Linerate, Tool::Iperf3), (Tool::Iperf3, Tool::Linerate)];

#[test]
fn right_password_is_let_in() {
    let rows: Vec<_> = PAIRS
        .into_iter()
        .flat_map(|pair| {
            ["-n 1M", "-n 1M -R", "-u -n 100K -b 50M", "-t 1 -P 2"].map(|test| (pair, test))
        })
        .collect();
    run_on_pairs(&rows, |&(pair, test)| {
        let server = start(pair, "");
        let ended = log_in(pair, &server, "mario", "rossi", test)?;
        expect(&ended, Some(0), &[])
    });
}

#[test]
fn wrong_password_is_refused_and_the_next_is_let_in() {
    run_on_pairs(&PAIRS, |&pair| {
        let is_own = pair.1 == Tool::Linerate;
        let code = Some(if pair.0 == Tool::Linerate { 4 } else { 1 });
        let server = start(pair, "");
        for (user, password) in [("mario", "verdi"), ("luigi", "rossi")] {
            let ended = log_in(pair, &server, user, password, "-n 1M")?;
            let said = if is_own { &["test authorization failed"][..] } else { &[] };
            expect(&ended, code, said)?;
        }
        expect(&log_in(pair, &server, "mario", "rossi", "-n 1M")?, Some(0), &[])?;
        if is_own {
            let ended = server.stop("INT")?;
            let log = [
                "127.0.0.1, user \"mario\": wrong password",
                "127.0.0.1, user \"luigi\": no such user",
            ];
            expect(&ended, Some(0), &log)?;
        }
        Ok(())
    });
}

#[test]
fn who_sends_no_credentials_is_refused() {
    let server = start(OWN, "");
    let ended = run(Tool::Linerate, &format!("-c 127.0.0.1 -p {} -n 1M", server.port()), NONE);
    expect(&ended, Some(4), &["error - test authorization failed"]).unwrap();
    let ended = server.stop("INT").unwrap();
    expect(&ended, Some(0), &["127.0.0.1: the client sent no credentials"]).unwrap();
}

#[test]
fn token_is_ignored_where_nobody_has_to_log_in() {
    let server = Server::start(Tool::Linerate, &[]);
    let ended = log_in(OWN, &server, "mario", "verdi", "-n 1M").unwrap();
    expect(&ended, Some(0), &[]).unwrap();
}

#[test]
fn failed_login_does_not_use_up_the_one_test_of_a_server() {
    run_on_pairs(&PAIRS, |&pair| {
        if pair.1 != Tool::Linerate {
            return Ok(());
        }
        let mut server = start(pair, "-1");
        for _ in 0..2 {
            let ended = log_in(pair, &server, "mario", "verdi", "-n 1M")?;
            expect(&ended, Some(if pair.0 == Tool::Linerate { 4 } else { 1 }), &[])?;
        }
        assert!(server.is_running(), "nobody had a test");
        expect(&log_in(pair, &server, "mario", "rossi", "-n 1M")?, Some(0), &[])?;
        expect(&server.wait()?, Some(0), &[])
    });
}

#[test]
fn refused_client_leaves_the_one_place_to_others_meanwhile() {
    let server = start(OWN, "-1");
    let mut refused = connect(&server);
    refused.follow(&with_token("no token")).unwrap();
    let began = Instant::now();
    expect(&log_in(OWN, &server, "mario", "rossi", "-n 1M").unwrap(), Some(0), &[]).unwrap();
    assert!(began.elapsed() < Duration::from_millis(900), "it waited for the other's refusal");
    expect(&server.wait().unwrap(), Some(0), &[]).unwrap();
}

#[test]
fn token_of_another_time_is_refused_and_the_log_has_the_skew() {
    let server = start(OWN, "--time-skew-threshold 20");
    let mut peer = connect(&server);
    peer.follow(&with_token(&recorded("token_oaep_sha1"))).unwrap();
    assert_eq!(peer.until_closed().unwrap(), REFUSAL);
    let ended = server.stop("INT").unwrap();
    let log =
        ["user \"mario\": the client's clock is ", " s behind, --time-skew-threshold is 20 s"];
    expect(&ended, Some(0), &log).unwrap();
}

/// All at once, so that their waiting does not add up. The exact time is a unit test's business: how
/// long a process takes on a busy machine says little.
#[test]
fn whatever_is_no_token_is_refused_alike() {
    let lengths = [0, 1, 127, 128, 255, 256, 257, 1024, 4096];
    let sized = lengths.map(|bytes: usize| "AAAA".repeat(bytes.div_ceil(3)));
    let odd = ["====", "AAA", "no base64", "A A=", "\u{fc}", "\\u0000"].map(str::to_owned);
    let others = [recorded("token_pkcs1_v15"), recorded("token_oaep_sha1")];
    let tokens: Vec<String> = sized.into_iter().chain(odd).chain(others).collect();
    for options in ["", "--use-pkcs1-padding"] {
        let server = start(OWN, options);
        let mut peers: Vec<_> = tokens
            .iter()
            .map(|token| {
                let mut peer = connect(&server);
                peer.follow(&with_token(token)).unwrap();
                (token, peer, Instant::now())
            })
            .collect();
        for (token, peer, since) in &mut peers {
            assert_eq!(peer.until_closed().unwrap(), REFUSAL, "{token}");
            assert!(since.elapsed() >= REFUSED_AFTER, "{token}");
        }
        let ended = server.stop("INT").unwrap();
        expect(&ended, Some(0), &["test authorization failed"]).unwrap();
        assert!(!ended.stderr.contains("panicked"), "{ended}");
    }
}

#[test]
fn parameters_too_long_for_any_key_are_refused() {
    let server = start(OWN, "");
    for steps in [with_token(&"A".repeat(100_000)), with_parameters(b"\"authtoken\":\"\xff\xfe\",")]
    {
        let mut peer = connect(&server);
        // The server may close before it has read everything.
        let _ = peer.follow(&steps);
        peer.until_closed().unwrap();
    }
    expect(&log_in(OWN, &server, "mario", "rossi", "-n 1M").unwrap(), Some(0), &[]).unwrap();
}

#[test]
fn server_whose_login_cannot_work_does_not_start() {
    let (key, users) = (recorded_file("auth-private.pem"), recorded_file("auth-users.csv"));
    let public = recorded_file("auth-public.pem");
    let (no_key, no_users) = ("--rsa-private-key-path", "--authorized-users-path");
    let both = "you must specify a path to a valid RSA private key and a user credential file";
    let rows = [
        (format!("{no_key} {key}"), both),
        (format!("{no_users} {users}"), both),
        (
            format!("{no_key} no.pem {no_users} {users}"),
            "--rsa-private-key-path no.pem: No such file",
        ),
        (
            format!("{no_key} {key} {no_users} no.csv"),
            "--authorized-users-path no.csv: cannot access",
        ),
        (format!("{no_key} {key} {no_users} /"), "--authorized-users-path /: cannot access"),
        (
            format!("{no_key} {public} {no_users} {users}"),
            ".pem: holds a PUBLIC KEY; a private RSA",
        ),
        (format!("{no_key} {users} {no_users} {users}"), ".csv: holds no key in PEM"),
    ];
    run_all(&rows, |(options, message)| {
        let ended = run(Tool::Linerate, &format!("-s -p 1 {options}"), NONE);
        expect(&ended, Some(1), &["parameter error - ", message])
    });
}

/// Nothing may ever be written to a pipe, and two logins would wait for it for ever.
#[cfg(unix)]
#[test]
fn users_file_that_is_a_pipe_holds_no_login_up() {
    let scratch = Scratch::new();
    let users = scratch.file("users.csv");
    let (name, recorded) = (users.display().to_string(), recorded_file("auth-users.csv"));
    let key = recorded_file("auth-private.pem");
    let pipe = || {
        let made = Command::new("mkfifo").arg(&users).status().expect("mkfifo runs");
        assert!(made.success());
    };
    pipe();
    for login in [(&key, &name), (&name, &recorded)] {
        let (key, users) = login;
        let line = format!("-s -p 1 --rsa-private-key-path {key} --authorized-users-path {users}");
        let ended = run(Tool::Linerate, &line, NONE);
        expect(&ended, Some(1), &[&name, ": must be a regular file, not a pipe"]).unwrap();
    }
    std::fs::remove_file(&users).expect("own file");
    std::fs::copy(&recorded, &users).expect("own folder");
    let options = ["--rsa-private-key-path", &key, "--authorized-users-path", &name];
    let server = Server::start(Tool::Linerate, &options);
    std::fs::remove_file(&users).expect("own file");
    pipe();
    for _ in 0..3 {
        let ended = log_in(OWN, &server, "mario", "rossi", "-n 1M").unwrap();
        expect(&ended, Some(4), &["test authorization failed"]).unwrap();
    }
    std::fs::remove_file(&users).expect("own file");
    std::fs::copy(&recorded, &users).expect("own folder");
    expect(&log_in(OWN, &server, "mario", "rossi", "-n 1M").unwrap(), Some(0), &[]).unwrap();
    let ended = server.stop("INT").unwrap();
    let said = "user \"mario\": the users file cannot be read: must be a regular file, not a pipe";
    expect(&ended, Some(0), &[said]).unwrap();
}

#[test]
fn client_whose_login_cannot_work_does_not_connect() {
    let (key, users) = (recorded_file("auth-public.pem"), recorded_file("auth-users.csv"));
    let private = recorded_file("auth-private.pem");
    let both = "you must specify a username, password, and path to a valid RSA public key";
    let long = "x".repeat(180);
    let rows = [
        ("--username mario".to_owned(), "rossi", both),
        (format!("--rsa-public-key-path {key}"), "rossi", both),
        (
            "--username mario --rsa-public-key-path no.pem".into(),
            "rossi",
            "path no.pem: No such file",
        ),
        (
            format!("--username mario --rsa-public-key-path {users}"),
            "rossi",
            ": holds no key in PEM",
        ),
        (
            format!("--username mario --rsa-public-key-path {private}"),
            "rossi",
            ": holds a PRIVATE KEY",
        ),
        (format!("--username mario --rsa-public-key-path {key}"), "", "the password is empty"),
        (
            format!("--username mario --rsa-public-key-path {key}"),
            "ros si",
            "the password has a blank",
        ),
        (format!("--username mario --rsa-public-key-path {key}"), &long, "takes at most 184"),
        (format!("--username a,b --rsa-public-key-path {key}"), "rossi", "--username \"a,b\": "),
    ];
    run_all(&rows, |(options, password, message)| {
        // A port that nobody listens on: who connected would end with another code.
        let line = format!("-c 127.0.0.1 -p 1 {options}");
        let ended = run(Tool::Linerate, &line, &[("IPERF3_PASSWORD", password)]);
        expect(&ended, Some(1), &["parameter error - ", message])
    });
}

#[cfg(unix)]
#[test]
fn password_that_is_no_text_is_refused() {
    use std::os::unix::ffi::OsStrExt;
    let key = recorded_file("auth-public.pem");
    let line = format!("-c 127.0.0.1 -p 1 --username mario --rsa-public-key-path {key}");
    let ended = run(Tool::Linerate, &line, &[("IPERF3_PASSWORD", OsStr::from_bytes(b"\xff"))]);
    expect(&ended, Some(1), &["IPERF3_PASSWORD must be valid UTF-8"]).unwrap();
}

#[test]
fn password_is_read_from_standard_input_where_there_is_no_terminal() {
    let server = start(OWN, "");
    for (input, code) in [("rossi\n", 0), ("rossi", 0), ("verdi\nrossi\n", 4), ("", 1)] {
        let mut command = client_command(OWN, &server, "mario", "-n 1M");
        let command = command.env_remove("IPERF3_PASSWORD").stdin(Stdio::piped());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code), "{input:?}");
    }
}

/// A program that waits for the prompt answers at once, before a person could: the terminal must not
/// show it, and Ctrl-C must end the question.
#[cfg(target_os = "linux")]
#[test]
fn who_answers_the_prompt_at_once_is_not_shown_and_not_ignored() {
    use std::io::Read;
    use std::os::unix::ffi::OsStrExt;

    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    let server = start(OWN, "");
    for (answer, code) in [("rossi\r", 0), ("verdi\r", 4), ("\u{3}", 5)] {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        let name = ptsname(&terminal, Vec::new()).unwrap();
        let inner = std::fs::File::options()
            .read(true)
            .write(true)
            .open(OsStr::from_bytes(name.to_bytes()))
            .unwrap();
        let client = client_command(OWN, &server, "mario", "-n 1M");
        // The question is put to the terminal that the session belongs to.
        let mut command = Command::new("setsid");
        command.args(["--ctty", "--wait", "timeout", "--foreground", "20"]);
        command.arg(client.get_program()).args(client.get_args());
        command.env_remove("IPERF3_PASSWORD").stdin(inner.try_clone().unwrap());
        command.stdout(inner.try_clone().unwrap()).stderr(inner);
        let mut child = command.spawn().unwrap();
        drop(command);

        let mut terminal = std::fs::File::from(terminal);
        let (mut shown, mut part) = (Vec::new(), [0; 4096]);
        let mut is_answered = false;
        // Reading fails when nobody has the terminal any more.
        while let Ok(bytes @ 1..) = terminal.read(&mut part) {
            shown.extend_from_slice(&part[..bytes]);
            if !is_answered && shown.windows(10).any(|word| word == b"Password: ") {
                terminal.write_all(answer.as_bytes()).unwrap();
                is_answered = true;
            }
        }
        let shown = String::from_utf8_lossy(&shown);
        assert_eq!(child.wait().unwrap().code(), Some(code), "{answer:?}: {shown}");
        assert!(!shown.contains(answer.trim_end()), "{answer:?}: {shown}");
    }
}

/// The whole way of somebody who begins: keys, a user, a server, a login. Long keys have long tokens.
#[test]
fn what_the_auth_command_makes_lets_in() {
    let folder = std::env::temp_dir().join(format!("linerate-auth-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (prefix, users) =
        (folder.join("lab").display().to_string(), folder.join("users.csv").display().to_string());
    let password = [("IPERF3_PASSWORD", "pass,word{}")];
    let made = run(Tool::Linerate, &format!("auth keys --bits 4096 --out {prefix}"), NONE);
    expect(&made, Some(0), &["--rsa-private-key-path", "lab-private.pem"]).unwrap();
    let added = run(Tool::Linerate, &format!("auth user anna --file {users}"), &password);
    expect(&added, Some(0), &["anna"]).unwrap();
    let again = run(Tool::Linerate, &format!("auth user anna --file {users}"), &password);
    expect(&again, Some(1), &["users.csv: has the user \"anna\" already"]).unwrap();

    let login =
        format!("--rsa-private-key-path {prefix}-private.pem --authorized-users-path {users}");
    let server = Server::start(Tool::Linerate, &words(&login));
    let line = format!(
        "-c 127.0.0.1 -p {} -n 1M --username anna --rsa-public-key-path {prefix}-public.pem",
        server.port()
    );
    expect(&run(Tool::Linerate, &line, &password), Some(0), &[]).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
}

fn run_on_pairs<R: Sync>(rows: &[R], one: impl Fn(&R) -> Result<(), String> + Sync) {
    if Tool::Iperf3.is_here() {
        run_all(rows, one);
    }
}

/// A run to its end that has these words in what it printed.
fn expect(ended: &Ended, code: Option<i32>, said: &[&str]) -> Result<(), String> {
    let printed = format!("{}{}", ended.stdout, ended.stderr);
    match said.iter().find(|words| !printed.contains(**words)) {
        Some(words) => Err(format!("no {words:?} in {ended}")),
        None if ended.code != code => Err(format!("expected exit code {code:?} of {ended}")),
        None => Ok(()),
    }
}

fn run<V: AsRef<OsStr>>(tool: Tool, line: &str, variables: &[(&str, V)]) -> Ended {
    let mut command = tool.command();
    command.args(words(line)).env_remove("IPERF3_PASSWORD");
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    Process::start(&mut command).wait(TIME_LIMIT).unwrap()
}

fn log_in(
    pair: Pair,
    server: &Server,
    user: &str,
    password: &str,
    test: &str,
) -> Result<Ended, String> {
    let mut command = client_command(pair, server, user, test);
    Process::start(command.env("IPERF3_PASSWORD", password)).wait(TIME_LIMIT)
}

fn client_command(pair: Pair, server: &Server, user: &str, test: &str) -> Command {
    let mut command = pair.0.command();
    command.args(["-c", "127.0.0.1", "-p", &server.port().to_string(), "--username", user]);
    command.args(["--rsa-public-key-path", &recorded_file("auth-public.pem")]);
    command.args(words(padding(pair, pair.0))).args(words(test));
    command
}

fn start(pair: Pair, options: &str) -> Server {
    let (key, users) = (recorded_file("auth-private.pem"), recorded_file("auth-users.csv"));
    let login = format!("--rsa-private-key-path {key} --authorized-users-path {users}");
    let padding = padding(pair, pair.1);
    Server::start(pair.1, &words(&format!("{login} {padding} {options}")))
}

/// The option that this end of a pair needs: linerate does as a stock iperf3 that is too old.
fn padding(pair: Pair, end: Tool) -> &'static str {
    let is_old = (pair.0 == Tool::Iperf3 || pair.1 == Tool::Iperf3) && !iperf3_knows_oaep();
    if is_old && end == Tool::Linerate { "--use-pkcs1-padding" } else { "" }
}

fn iperf3_knows_oaep() -> bool {
    static KNOWS: OnceLock<bool> = OnceLock::new();
    *KNOWS.get_or_init(|| {
        let ended = run(Tool::Iperf3, "--version", NONE);
        let minor = ended
            .stdout
            .split_once("iperf 3.")
            .map(|(_, rest)| rest.chars().take_while(char::is_ascii_digit).collect::<String>());
        minor.and_then(|minor| minor.parse::<u32>().ok()).expect("iperf3 says its version") >= 17
    })
}

fn connect(server: &Server) -> Peer {
    Peer::connect(SocketAddr::from(([127, 0, 0, 1], server.port()))).expect("a server that listens")
}

/// The steps of a client with this token, up to the parameters.
fn with_token(token: &str) -> Vec<Step> {
    with_parameters(format!("\"authtoken\":\"{token}\",").as_bytes())
}

fn with_parameters(first: &[u8]) -> Vec<Step> {
    let document = [b"{", first, b"\"tcp\":true,\"time\":1,\"parallel\":1,\"len\":4096}"].concat();
    [&honest_client()[..2], &[frame(document)]].concat()
}

fn recorded(key: &str) -> String {
    let vector = include_str!("../recorded/auth-vector.json");
    let vector: Value = serde_json::from_str(vector).expect("recorded");
    vector[key].as_str().expect("a text").to_owned()
}

fn recorded_file(name: &str) -> String {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "recorded", name].iter().collect();
    path.display().to_string()
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

const NONE: &[(&str, &str)] = &[];
/// iperf3's error 142, which is all that a refused client is told.
const REFUSAL: [u8; 9] = [0xfe, 0, 0, 0, 142, 0, 0, 0, 0];
/// And when.
const REFUSED_AFTER: Duration = Duration::from_millis(990);
const TIME_LIMIT: Duration = Duration::from_secs(20);
