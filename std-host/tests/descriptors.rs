//! The command takes the descriptors that it may have: a shell's soft limit is for programs that
//! cannot do with more.

#![cfg(target_os = "linux")]

use std::net::TcpListener;
use std::process::Command;
use std::sync::Arc;

use linerate::client::run_client;
use linerate::config::{ClientConfig, ServerConfig};
use linerate::observe::{Cancel, Observer};
use linerate::report::Progress;
use linerate::server::{ObserveTests, Server};
use linerate_core::test::Protocol;

#[test]
fn soft_limit_of_open_files_does_not_limit_the_streams() {
    let ran = Command::new("sh")
        .args(["-c", "ulimit -S -n 16; exec \"$0\" calibrate -t 1 -J"])
        .arg(env!("CARGO_BIN_EXE_linerate"))
        .output()
        .expect("there is a shell");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

/// A program that runs clients again and again, half of them without a server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_in_one_process_leave_no_descriptors_behind() {
    let server = Server::bind(ServerConfig::loopback()).await.expect("a free port");
    let port = server.port();
    let closed = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let closed_port = closed.local_addr().expect("it is bound").port();
    drop(closed);
    let cancel = Cancel::new();
    let serving = tokio::spawn({
        let cancel = cancel.clone();
        async move { server.run(Arc::new(Quiet), &cancel).await }
    });

    let mut counts = Vec::new();
    for _ in 0..100 {
        for (port, works) in [(port, true), (closed_port, false)] {
            let mut config = ClientConfig::new("127.0.0.1", Protocol::Tcp);
            config.port = port;
            config.settings.limits.seconds = None;
            config.settings.limits.bytes = Some(1000);
            let ran = run_client(&config, &mut |_: Progress| (), &cancel).await;
            assert_eq!(ran.is_ok(), works, "{ran:?}");
        }
        counts.push(std::fs::read_dir("/proc/self/fd").expect("this process").count());
    }
    // The server's end of a test closes a moment after the client's.
    let (early, late) = (counts[5..25].iter().max(), counts[75..].iter().min());
    assert!(late <= early, "{counts:?}");
    cancel.cancel();
    serving.await.expect("it ends");
}

struct Quiet;

impl ObserveTests for Quiet {
    fn observe(&self, _test_number: u64) -> Box<dyn Observer> {
        Box::new(|_: Progress| ())
    }
}
