//! With `-J` whatever happens stands in a document, a port that is taken too.

use std::net::TcpListener;
use std::process::Command;

use serde_json::Value;

#[test]
fn server_whose_port_is_taken_prints_a_document() {
    let taken = TcpListener::bind("[::]:0").or_else(|_| TcpListener::bind("0.0.0.0:0"));
    let taken = taken.expect("there is a free port");
    let port = taken.local_addr().expect("it is bound").port().to_string();
    let ran = Command::new(env!("CARGO_BIN_EXE_linerate"))
        .args(["-s", "-J", "-p", &port])
        .output()
        .expect("the command starts");
    assert_eq!(ran.status.code(), Some(1));
    assert!(ran.stderr.is_empty(), "{}", String::from_utf8_lossy(&ran.stderr));
    let document: Value = serde_json::from_slice(&ran.stdout).expect("one document");
    let error = document["error"].as_str().expect("a text");
    assert!(error.starts_with("error - unable to start listener for connections"), "{error}");
}
