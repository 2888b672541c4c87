//! A report that cannot be written: the command says so and does not end as a success.

#![cfg(target_os = "linux")]

use std::fs::OpenOptions;
use std::process::{Command, Stdio};

#[test]
fn output_that_is_lost_is_no_success() {
    for options in [&["--help"][..], &["--version"], &["calibrate", "-t", "1", "-J"]] {
        let full = OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
        let ran = Command::new(env!("CARGO_BIN_EXE_linerate"))
            .args(options)
            .stdout(full)
            .output()
            .expect("the command starts");
        let complaint = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(1), "{options:?}: {complaint}");
        assert_eq!(
            complaint, "linerate: error - unable to write the output: No space left on device\n",
            "{options:?}"
        );
    }
}

#[test]
fn reader_that_has_gone_is_no_error() {
    let (reader, writer) = std::io::pipe().expect("the system has pipes");
    drop(reader);
    let ran = Command::new(env!("CARGO_BIN_EXE_linerate"))
        .arg("--help")
        .stdout(writer)
        .stderr(Stdio::piped())
        .output()
        .expect("the command starts");
    assert_eq!(ran.status.code(), Some(0));
    assert!(ran.stderr.is_empty());
}
