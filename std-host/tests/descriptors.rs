//! The command takes the descriptors that it may have: a shell's soft limit is for programs that
//! cannot do with more.

#![cfg(target_os = "linux")]

use std::process::Command;

#[test]
fn soft_limit_of_open_files_does_not_limit_the_streams() {
    let ran = Command::new("sh")
        .args(["-c", "ulimit -S -n 16; exec \"$0\" calibrate -t 1 -J"])
        .arg(env!("CARGO_BIN_EXE_linerate"))
        .output()
        .expect("there is a shell");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}
