//! Finds a key in a PEM file (RFC 7468) as openssl writes it: text around the block, other blocks
//! before it and the line ends of any system do no harm.

use base64ct::{Base64, Encoding};

/// Why a file gives no key. Read after "the file".
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PemProblem {
    /// No block at all: a key in DER, most likely, or something else.
    NoBlock,
    /// Blocks, but none of the kinds wanted; this one was the first.
    OtherBlock(String),
    /// The key is there, but behind a passphrase.
    Encrypted,
    /// The block breaks off, or what is in it is no base64.
    Broken,
}

/// The first block whose label is one of `wanted`: its label and what is in it.
pub(super) fn find<'a>(text: &str, wanted: &[&'a str]) -> Result<(&'a str, Vec<u8>), PemProblem> {
    let mut lines = text.trim_start_matches('\u{feff}').lines().map(str::trim);
    let mut other = None;
    while let Some(line) = lines.next() {
        let Some(label) = label(line, "-----BEGIN ") else { continue };
        match wanted.iter().find(|&&wanted| wanted == label) {
            Some(wanted) => return Ok((wanted, body(label, &mut lines)?)),
            None if label == "ENCRYPTED PRIVATE KEY" => return Err(PemProblem::Encrypted),
            None => other = other.or(Some(label)),
        }
    }
    Err(other.map_or(PemProblem::NoBlock, |label| PemProblem::OtherBlock(label.into())))
}

/// The kind of block. A key whose lines have run together stands between the dashes as well: what can
/// be no label is none, because problems show it.
fn label<'a>(line: &'a str, begin: &str) -> Option<&'a str> {
    let label = line.strip_prefix(begin)?.strip_suffix("-----")?;
    let is_label = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' ';
    (label.len() <= LONGEST_LABEL && label.bytes().all(is_label)).then_some(label)
}

fn body<'a>(begun: &str, lines: &mut impl Iterator<Item = &'a str>) -> Result<Vec<u8>, PemProblem> {
    let mut base64 = String::new();
    for line in lines {
        if let Some(ended) = label(line, "-----END ") {
            let is_whole = ended == begun;
            let der = is_whole.then(|| Base64::decode_vec(&base64).ok()).flatten();
            return der.ok_or(PemProblem::Broken);
        }
        // Only openssl's old kind of encryption writes headers.
        if line.contains(':') {
            return Err(PemProblem::Encrypted);
        }
        base64.push_str(line);
    }
    Err(PemProblem::Broken)
}

/// More than any kind of block that openssl knows.
const LONGEST_LABEL: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: &str = "-----BEGIN A KEY-----\nAQID\nBA==\n-----END A KEY-----\n";

    #[test]
    fn block_is_found_in_any_surroundings() {
        let texts = [
            BLOCK.to_owned(),
            BLOCK.replace('\n', "\r\n"),
            format!("\u{feff}{BLOCK}"),
            format!("Private-Key: (2048 bit)\n\n{BLOCK}the end"),
            format!("-----BEGIN OTHER-----\nAA==\n-----END OTHER-----\n{BLOCK}"),
            BLOCK.trim_end().to_owned(),
        ];
        for text in texts {
            assert_eq!(find(&text, &["B", "A KEY"]), Ok(("A KEY", vec![1, 2, 3, 4])), "{text:?}");
        }
    }

    #[test]
    fn what_is_no_such_block_says_what_it_is() {
        let rows = [
            ("", PemProblem::NoBlock),
            ("0\u{82}\u{4}\u{a4}", PemProblem::NoBlock),
            (&BLOCK.replace("A KEY", "B KEY"), PemProblem::OtherBlock("B KEY".into())),
            (&BLOCK.replace("A KEY", "ENCRYPTED PRIVATE KEY"), PemProblem::Encrypted),
            (&BLOCK.replace("AQID", "Proc-Type: 4,ENCRYPTED\n\nAQID"), PemProblem::Encrypted),
            (&BLOCK.replace("END A", "END B"), PemProblem::Broken),
            (&BLOCK.replace("AQID", "AQ!D"), PemProblem::Broken),
            (&BLOCK[..40], PemProblem::Broken),
            ("-----BEGIN A KEY-----", PemProblem::Broken),
        ];
        for (text, problem) in rows {
            assert_eq!(find(text, &["A KEY"]), Err(problem), "{text:?}");
        }
    }

    /// What a problem names is printed and logged.
    #[test]
    fn no_problem_tells_what_is_in_a_key() {
        let squeezed = BLOCK.replace('\n', "");
        let cut = squeezed.replace("-----AQID", "AQID");
        let small = "-----BEGIN abcd/+=-----\n";
        for text in [&squeezed, &cut, small, &format!("-----BEGIN {}-----", "A".repeat(65))] {
            assert_eq!(find(text, &["A KEY"]), Err(PemProblem::NoBlock), "{text:?}");
        }
    }
}
