//! How the document is laid out on paper: as cJSON, the library behind iperf3, prints. Members are
//! indented with tabs, a tab follows the colon, and elements of arrays share a line with the
//! brackets around them.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{Formatter, Serializer};

/// The document as printed, with a newline at its end.
pub fn to_document_string(document: &Value) -> String {
    let mut text = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut text, Layout::default());
    document.serialize(&mut serializer).expect("a value is written to memory without fail");
    text.push(b'\n');
    String::from_utf8(text).expect("JSON is UTF-8")
}

#[derive(Default)]
struct Layout {
    depth: usize,
    /// The object that is being closed has a member.
    has_member: bool,
}

impl Layout {
    fn indent<W: ?Sized + Write>(&self, writer: &mut W) -> io::Result<()> {
        (0..self.depth).try_for_each(|_| writer.write_all(b"\t"))
    }
}

impl Formatter for Layout {
    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth += 1;
        self.has_member = false;
        writer.write_all(b"{\n")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, w: &mut W, first: bool) -> io::Result<()> {
        if !first {
            w.write_all(b",\n")?;
        }
        self.indent(w)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b":\t")
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_member = true;
        Ok(())
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth -= 1;
        if self.has_member {
            writer.write_all(b"\n")?;
        }
        self.indent(writer)?;
        writer.write_all(b"}")
    }

    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth += 1;
        writer.write_all(b"[")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, w: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { w.write_all(b", ") }
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth -= 1;
        writer.write_all(b"]")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_are_tabbed_and_arrays_share_a_line() {
        let document = json!({
            "none": [], "empty": {}, "list": [1, 0.5], "objects": [{"a": "/\n"}, {"b": {"c": true}}]
        });
        let expected = "{\n\t\"none\":\t[],\n\t\"empty\":\t{\n\t},\n\t\"list\":\t[1, 0.5],\n\
            \t\"objects\":\t[{\n\t\t\t\"a\":\t\"/\\n\"\n\t\t}, {\n\t\t\t\"b\":\t{\n\
            \t\t\t\t\"c\":\ttrue\n\t\t\t}\n\t\t}]\n}\n";
        assert_eq!(to_document_string(&document), expected);
    }
}
