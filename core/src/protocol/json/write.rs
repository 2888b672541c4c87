//! Writing JSON in pieces: text and numbers as cJSON prints them, through a window onto the piece
//! that is asked for.

use core::fmt::{self, Write};

/// A piece of a document: what is printed before it is dropped, what comes after it stops the
/// printing. So a document of any length is written through one small buffer, the same way each
/// time.
pub(crate) struct Window<'a> {
    out: &'a mut [u8],
    /// Bytes of the document before the window that are still to be dropped.
    before: usize,
    filled: usize,
}

impl<'a> Window<'a> {
    /// The window number `index` of a document, as large as `out`.
    pub(crate) fn new(index: usize, out: &'a mut [u8]) -> Self {
        Self { before: index.saturating_mul(out.len()), out, filled: 0 }
    }

    /// Bytes that fell into the window; none if the document ends before it.
    pub(crate) const fn filled(&self) -> Option<usize> {
        if self.filled == 0 { None } else { Some(self.filled) }
    }
}

impl Write for Window<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let dropped = self.before.min(text.len());
        self.before -= dropped;
        let bytes = &text.as_bytes()[dropped..];
        let room = self.out.len() - self.filled;
        let taken = room.min(bytes.len());
        self.out[self.filled..self.filled + taken].copy_from_slice(&bytes[..taken]);
        self.filled += taken;
        if taken < bytes.len() { Err(fmt::Error) } else { Ok(()) }
    }
}

/// A text between quotes, escaped as cJSON does: what must be, and nothing else.
pub(crate) struct Escaped<'a>(pub(crate) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        let mut rest = self.0;
        while let Some(at) = rest.find(|c: char| c < ' ' || c == '"' || c == '\\') {
            f.write_str(&rest[..at])?;
            match rest.as_bytes()[at] {
                b'"' => f.write_str("\\\"")?,
                b'\\' => f.write_str("\\\\")?,
                8 => f.write_str("\\b")?,
                12 => f.write_str("\\f")?,
                b'\n' => f.write_str("\\n")?,
                b'\r' => f.write_str("\\r")?,
                b'\t' => f.write_str("\\t")?,
                control => write!(f, "\\u{control:04x}")?,
            }
            rest = &rest[at + 1..];
        }
        f.write_str(rest)?;
        f.write_char('"')
    }
}

/// An integer in units of 10^-`digits`, written with a decimal point only where one is needed.
pub(crate) struct Scaled {
    pub(crate) value: u64,
    pub(crate) digits: u32,
}

impl fmt::Display for Scaled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one = 10_u64.pow(self.digits);
        write!(f, "{}", self.value / one)?;
        let mut fraction = self.value % one;
        if fraction == 0 {
            return Ok(());
        }
        let mut width = self.digits as usize;
        while fraction.is_multiple_of(10) {
            fraction /= 10;
            width -= 1;
        }
        write!(f, ".{fraction:0width$}")
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::string::{String, ToString};

    use super::*;

    #[test]
    fn numbers_have_a_point_only_where_needed() {
        let cases = [
            (0, "0"),
            (1_000_000_000, "1"),
            (1_000_559_000, "1.000559"),
            (500_000_000, "0.5"),
            (1, "0.000000001"),
            (u64::MAX, "18446744073.709551615"),
        ];
        for (value, text) in cases {
            assert_eq!(Scaled { value, digits: 9 }.to_string(), text);
        }
    }

    #[test]
    fn text_is_escaped_as_little_as_possible() {
        let text = Escaped("a\"b\\c/d\u{8}\u{c}\n\r\t\u{1}\u{1f}\u{7f}é€😀").to_string();
        assert_eq!(text, r#""a\"b\\c/d\b\f\n\r\t\u0001\u001f"#.to_string() + "\u{7f}é€😀\"");
    }

    #[test]
    fn windows_side_by_side_show_the_whole_text() {
        let print = |window: &mut Window<'_>| write!(window, "{}{}", Escaped("0123456789"), 42);
        let mut whole = String::new();
        for index in 0.. {
            let mut out = [0; 4];
            let mut window = Window::new(index, &mut out);
            let _ = print(&mut window);
            let Some(filled) = window.filled() else { break };
            whole += core::str::from_utf8(&out[..filled]).unwrap();
        }
        assert_eq!(whole, "\"0123456789\"42");
    }
}
