//! Tells the linker what memory there is, and how logs are laid out.

use std::path::Path;
use std::{env, fs};

fn main() {
    let out = env::var("OUT_DIR").expect("cargo sets it");
    // The linker script of cortex-m-rt asks for this name. A file of it beside the manifest would be
    // found before this one, from wherever cargo runs the linker.
    fs::copy("memory.ld", Path::new(&out).join("memory.x")).expect("a file of this package");
    println!("cargo:rustc-link-search={out}");
    println!("cargo:rustc-link-arg-bins=-Tdefmt.x");
    println!("cargo:rerun-if-changed=memory.ld");
}
