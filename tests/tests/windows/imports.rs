//! What the program needs of a Windows: the libraries that it names in its imports, which the system
//! looks for before it starts. Each comes with every Windows from 10 and Server 2016 on; what does not is
//! loaded while the program runs, or is not used.

use std::collections::BTreeSet;
use std::fs;

use linerate_tests::tool::windows_build;
use object::LittleEndian;
use object::read::pe::PeFile64;

/// Whatever is new here is in everybody's Windows.
const SYSTEM: [&str; 6] = [
    // Synchronisation of threads, by the name that Windows gives to a part of its kernel library.
    "api-ms-win-core-synch-l1-2-0.dll",
    // Random numbers of Rust's library.
    "bcryptprimitives.dll",
    "kernel32.dll",
    // The C library that mingw builds upon.
    "msvcrt.dll",
    "ntdll.dll",
    "ws2_32.dll",
];

/// What Rust's library has and the program does not call stays in a debug build.
const DEBUG_ONLY: [&str; 1] = ["userenv.dll"];

#[test]
#[ignore = "needs the Windows build; `cargo xtask windows` runs it"]
fn imports_are_libraries_of_every_windows() {
    let program = fs::read(windows_build()).expect("it was built");
    let file = PeFile64::parse(&*program).expect("a program for 64-bit Windows");
    let mut found = imports(&file).expect("imports can be read");
    found.retain(|name| !DEBUG_ONLY.contains(&name.as_str()));
    assert_eq!(found, SYSTEM.map(str::to_owned).into());
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
