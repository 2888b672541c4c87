//! What is given to others: an archive with the program alone, its checksum, and the manifests of the
//! package managers that name it.

use std::fs;
use std::io::{Cursor, Write};
use std::path::Path;

use sha2::{Digest, Sha256};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::build::{package_folder, stripped};
use super::manifests::{self, Release};
use crate::size::bytes_of;

/// Makes all of it from the last release build, and tells where it is.
pub(super) fn make() -> Result<(), String> {
    let program = stripped()?;
    let program = fs::read(&program).map_err(|e| format!("{}: {e}", program.display()))?;
    let folder = package_folder()?;
    for (name, content) in files(&program)? {
        let path = folder.join(name);
        write(&path, &content).map_err(|e| format!("{}: {e}", path.display()))?;
        println!("  {:>10}  {}", bytes_of(&path)?, path.display());
    }
    Ok(())
}

fn write(path: &Path, content: &[u8]) -> std::io::Result<()> {
    fs::create_dir_all(path.parent().unwrap_or(path))?;
    fs::write(path, content)
}

/// Each file with its path in the folder of packages. The same program makes the same bytes.
fn files(program: &[u8]) -> Result<Vec<(String, Vec<u8>)>, String> {
    let archive = archive(program).map_err(|e| format!("the archive: {e}"))?;
    let release = Release { sha256: hex(&Sha256::digest(&archive)) };
    let name = manifests::archive_name();
    let sum = format!("{}  {name}\n", release.sha256);
    let mut files = vec![(format!("{name}.sha256"), sum.into_bytes()), (name, archive)];
    files.extend(release.manifests().map(|(name, text)| (name.to_owned(), text.into_bytes())));
    Ok(files)
}

/// The program alone, without a time of its making.
fn archive(program: &[u8]) -> zip::result::ZipResult<Vec<u8>> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .last_modified_time(zip::DateTime::default())
        .unix_permissions(0o755);
    archive.start_file(PROGRAM, options)?;
    archive.write_all(program)?;
    archive.finish().map(Cursor::into_inner)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

const PROGRAM: &str = "linerate.exe";

#[cfg(test)]
mod tests {
    use std::io::Read;

    use serde_json::Value;
    use yaml_rust2::{Yaml, YamlLoader};
    use zip::ZipArchive;

    use super::*;

    /// What each kind of manifest must have, by winget's schema 1.10.0.
    const REQUIRED: [(&str, &str, &[&str]); 3] = [
        ("linerate.linerate.yaml", "version", &["DefaultLocale"]),
        ("linerate.linerate.installer.yaml", "installer", &["Installers"]),
        (
            "linerate.linerate.locale.en-US.yaml",
            "defaultLocale",
            &["PackageLocale", "Publisher", "PackageName", "License", "ShortDescription"],
        ),
    ];

    #[test]
    fn archive_holds_the_program_alone() {
        let files = packed();
        let archive = file(&files, &manifests::archive_name());
        let mut archive = ZipArchive::new(Cursor::new(archive)).expect("an archive");
        assert_eq!(archive.len(), 1);
        let mut program = Vec::new();
        let mut entry = archive.by_name(PROGRAM).expect("it is there");
        entry.read_to_end(&mut program).expect("it is whole");
        assert_eq!(program, CONTENT);
    }

    #[test]
    fn the_same_program_makes_the_same_files() {
        assert_eq!(packed(), packed());
    }

    #[test]
    fn checksum_is_that_of_the_archive() {
        let files = packed();
        let name = manifests::archive_name();
        let text = text(&files, &format!("{name}.sha256"));
        assert_eq!(text, format!("{}  {name}\n", sum(&files)));
        assert!(name.contains(env!("CARGO_PKG_VERSION")), "{name}");
    }

    #[test]
    fn winget_manifests_have_what_their_schema_requires() {
        let files = packed();
        for (name, kind, required) in REQUIRED {
            let manifest = yaml(&files, name);
            for member in ["PackageIdentifier", "PackageVersion"].iter().chain(required) {
                assert!(!manifest[*member].is_badvalue(), "{name} lacks {member}");
            }
            assert_eq!(manifest["ManifestType"].as_str(), Some(kind));
            assert_eq!(manifest["ManifestVersion"].as_str(), Some("1.10.0"));
            assert_eq!(manifest["PackageIdentifier"].as_str(), Some("linerate.linerate"));
            assert_eq!(manifest["PackageVersion"].as_str(), Some(env!("CARGO_PKG_VERSION")));
        }
    }

    #[test]
    fn winget_installs_the_program_of_the_archive() {
        let files = packed();
        let manifest = yaml(&files, "linerate.linerate.installer.yaml");
        assert_eq!(manifest["InstallerType"].as_str(), Some("zip"));
        assert_eq!(manifest["NestedInstallerType"].as_str(), Some("portable"));
        let nested = &manifest["NestedInstallerFiles"][0];
        assert_eq!(nested["RelativeFilePath"].as_str(), Some(PROGRAM));
        let installer = &manifest["Installers"][0];
        assert_eq!(installer["Architecture"].as_str(), Some("x64"));
        assert_eq!(
            installer["InstallerSha256"].as_str(),
            Some(sum(&files).to_uppercase().as_str())
        );
        assert_eq!(installer["InstallerUrl"].as_str(), Some(manifests::url().as_str()));
    }

    #[test]
    fn scoop_manifest_names_the_archive() {
        let files = packed();
        let manifest: Value =
            serde_json::from_str(&text(&files, "scoop/linerate.json")).expect("JSON");
        let architecture = &manifest["architecture"]["64bit"];
        assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"));
        assert_eq!(manifest["bin"], PROGRAM);
        assert_eq!(architecture["hash"], sum(&files));
        assert_eq!(architecture["url"], manifests::url());
        // What scoop puts the next version into is the address of this one.
        let next = manifest["autoupdate"]["architecture"]["64bit"]["url"].as_str();
        let next = next.expect("an address").replace("$version", env!("CARGO_PKG_VERSION"));
        assert_eq!(next, manifests::url());
        assert!(["homepage", "license", "checkver"].iter().all(|key| manifest[*key].is_string()));
    }

    #[test]
    fn nothing_of_a_template_is_left_open() {
        for (name, content) in packed() {
            let text = String::from_utf8_lossy(&content);
            assert!(!text.contains("{{"), "{name}");
        }
    }

    fn packed() -> Vec<(String, Vec<u8>)> {
        files(CONTENT).expect("it is packed")
    }

    fn file<'a>(files: &'a [(String, Vec<u8>)], name: &str) -> &'a [u8] {
        let found = files.iter().find(|(other, _)| other == name);
        &found.unwrap_or_else(|| panic!("there is no {name}")).1
    }

    fn text(files: &[(String, Vec<u8>)], name: &str) -> String {
        String::from_utf8(file(files, name).to_vec()).expect("it is text")
    }

    fn yaml(files: &[(String, Vec<u8>)], name: &str) -> Yaml {
        let text = text(files, &format!("winget/{name}"));
        YamlLoader::load_from_str(&text).expect("YAML").remove(0)
    }

    fn sum(files: &[(String, Vec<u8>)]) -> String {
        hex(&Sha256::digest(file(files, &manifests::archive_name())))
    }

    const CONTENT: &[u8] = b"MZ, and what else a program has";
}
