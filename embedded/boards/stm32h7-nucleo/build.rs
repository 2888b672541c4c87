//! Gives the linker the board's memory, and the scripts that lay the program out in it.

use std::path::Path;
use std::{env, fs};

fn main() {
    let out = env::var("OUT_DIR").expect("cargo sets it for build scripts");
    fs::write(Path::new(&out).join("memory.x"), include_str!("memory.x")).expect("it is ours");
    println!("cargo:rustc-link-search={out}");
    println!("cargo:rerun-if-changed=memory.x");
    for argument in ["--nmagic", "-Tlink.x", "-Tdefmt.x"] {
        println!("cargo:rustc-link-arg-bins={argument}");
    }
}
