//! What the program needs of a Windows: the libraries that it names in its imports, which the system
//! looks for before it starts. Each comes with every Windows from 10 and Server 2016 on; what does not is
//! loaded while the program runs, or is not used.

use std::collections::BTreeSet;
use std::fs;

use linerate_tests::tool::windows_build;
use object::read::pe::PeFile64;
use object::{Architecture, LittleEndian, Object};

/// Whatever is new here is in everybody's Windows.
const SYSTEM: [&str; 7] = [
    // Services and the event log.
    "advapi32.dll",
    // Synchronisation of threads, by the name that Windows gives to a part of its kernel library.
    "api-ms-win-core-synch-l1-2-0.dll",
    // Random numbers of Rust's library.
    "bcryptprimitives.dll",
    "kernel32.dll",
    // Files that the system sends by itself.
    "mswsock.dll",
    "ntdll.dll",
    "ws2_32.dll",
];

/// The C library that Debian's mingw builds upon.
const C_LIBRARY: [&str; 1] = ["msvcrt.dll"];

/// The parts of the C library of Windows 10 that Zig's mingw builds upon.
const C_LIBRARY_ON_ARM: [&str; 7] = [
    "api-ms-win-crt-environment-l1-1-0.dll",
    "api-ms-win-crt-heap-l1-1-0.dll",
    "api-ms-win-crt-locale-l1-1-0.dll",
    "api-ms-win-crt-math-l1-1-0.dll",
    "api-ms-win-crt-runtime-l1-1-0.dll",
    "api-ms-win-crt-stdio-l1-1-0.dll",
    "api-ms-win-crt-string-l1-1-0.dll",
];

/// What Rust's library has and the program does not call stays in a debug build.
const DEBUG_ONLY: [&str; 1] = ["userenv.dll"];

#[test]
#[ignore = "needs the Windows build; `cargo xtask windows` runs it"]
fn imports_are_libraries_of_every_windows() {
    let program = fs::read(windows_build()).expect("it was built");
    let file = PeFile64::parse(&*program).expect("a program for 64-bit Windows");
    let of_c: &[&str] = match file.architecture() {
        Architecture::X86_64 => &C_LIBRARY,
        Architecture::Aarch64 => &C_LIBRARY_ON_ARM,
        other => panic!("a program for {other:?}"),
    };
    let known = SYSTEM.iter().chain(of_c).map(|name| (*name).to_owned()).collect();
    let mut found = imports(&file).expect("imports can be read");
    found.retain(|name| !DEBUG_ONLY.contains(&name.as_str()));
    assert_eq!(found, known);
}

/// Imports that are looked up late need their library all the same.
fn imports(file: &PeFile64<'_>) -> object::Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    let mut add = |name: &[u8]| names.insert(String::from_utf8_lossy(name).to_lowercase());
    let (data, sections) = (file.data(), file.section_table());
    let directories = file.data_directories();
    if let Some(table) = directories.import_table(data, &sections)? {
        let mut descriptors = table.descriptors()?;
        while let Some(descriptor) = descriptors.next()? {
            add(table.name(descriptor.name.get(LittleEndian))?);
        }
    }
    if let Some(table) = directories.delay_load_import_table(data, &sections)? {
        let mut descriptors = table.descriptors()?;
        while let Some(descriptor) = descriptors.next()? {
            add(table.name(descriptor.dll_name_rva.get(LittleEndian))?);
        }
    }
    Ok(names)
}
