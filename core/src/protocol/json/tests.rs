//! The filter against a small table of every kind, and against hostile bytes.

extern crate std;
use std::string::{String, ToString};
use std::vec::Vec;
use std::{format, vec};

use proptest::prelude::*;

use super::*;

const INNER: &[Member] = &[Member::new("a", Kind::Number), Member::new("b", Kind::Flag)];
const HANDED_ON: &[Member] = &[Member::new("n", Kind::Number), Member::new("m", Kind::Number)];
const TABLE: &[Member] = &[
    Member::new("int", Kind::Int32),
    Member::new("long", Kind::Number),
    Member::new("ns", Kind::Scaled(9)),
    Member::new("flag", Kind::Flag),
    Member::new("any", Kind::NumberFlag),
    Member::new("nonzero", Kind::NonZeroFlag),
    Member::new("text", Kind::Text),
    Member::new("raw", Kind::RawText),
    Member::new("object", Kind::Object(&INNER)),
    Member::new("array", Kind::Elements(&INNER)),
    Member::new("numbers", Kind::Elements(&HANDED_ON)),
];

/// Everything that comes out, in the order in which it does: numbers and flags by their keys, texts in
/// quotes, a semicolon behind each element.
#[derive(Default)]
struct Log(Vec<u8>);

impl Taker for Log {
    fn handle_text(&mut self, key: &'static str, part: TextPart) -> Result<(), DocumentError> {
        match part {
            TextPart::Begin => self.0.extend(key.bytes().chain(*b"='")),
            TextPart::Byte(byte) => self.0.push(byte),
            TextPart::End { .. } => self.0.extend(b"' "),
        }
        Ok(())
    }

    fn handle_number(&mut self, object: &'static str, place: usize, value: i64) {
        let table = match object {
            "" => TABLE,
            "numbers" => HANDED_ON,
            _ => INNER,
        };
        let within = if object.is_empty() { "" } else { "." };
        self.0.extend(format!("{object}{within}{}={value} ", table[place].key).bytes());
    }

    fn handle_element(&mut self, array: &'static str) -> Result<(), DocumentError> {
        self.0.extend(format!("{array}; ").bytes());
        Ok(())
    }
}

fn filtered(document: &[u8], wrong_type: WrongType) -> Result<String, DocumentError> {
    let mut filter = Filter::new(TABLE, wrong_type);
    let mut log = Log::default();
    filter.handle_bytes(document, &mut log)?;
    filter.end(&mut log)?;
    Ok(String::from_utf8_lossy(&log.0).trim_end().to_string())
}

#[test]
fn known_members_are_handed_on() {
    let cases = [
        ("{}", ""),
        ("[1,{\"int\":1}]", ""),
        (" { \"int\" : 12.0 , \"long\" : 18446744073709551615 } ", {
            "int=12 long=9223372036854775807"
        }),
        ("{\"int\":1e99,\"ns\":1e-05}", "int=2147483647 ns=10000"),
        ("{\"ns\":null}", "ns=0"),
        ("{\"INT\":1,\"Int\":2,\"int\":3}", "int=1"),
        ("{\"flag\":false,\"any\":0,\"nonzero\":0}", "flag=1 any=1"),
        ("{\"nonzero\":1e-9}", "nonzero=1"),
        ("{\"x\":{\"int\":1,\"y\":[[\"int\",2]]},\"int\":3}", "int=3"),
        ("{\"i\\u006et\":4}", "int=4"),
        ("{\"text\":\"a\\n\\u20ac\\ud83d\\ude00\\/\",\"int\":1}", "text='a\n€😀/' int=1"),
        ("{\"raw\":\"int\",\"int\":1}", "int=1"),
        ("{\"object\":{\"c\":[],\"A\":1,\"b\":true},\"int\":1}", "object.a=1 object.b=1 int=1"),
        ("{\"int\":1,\"array\":[{\"a\":1},{},{\"a\":2,\"a\":3}],\"long\":2}", {
            "int=1 array=1 array.a=1 array; array; array.a=2 array; long=2"
        }),
        ("{\"numbers\":[{\"M\":-1.9,\"x\":[1],\"m\":2,\"n\":1e99}],\"array\":[{\"a\":1}]}", {
            "numbers=1 numbers.m=-1 numbers.n=9223372036854775807 numbers; \
             array=1 array.a=1 array;"
        }),
        ("{\"array\":[]}{\"int\":1} trailing", "array=1"),
    ];
    for (document, expected) in cases {
        let out = filtered(document.as_bytes(), WrongType::Refused);
        assert_eq!(out.as_deref(), Ok(expected), "{document}");
    }
}

#[test]
fn wrong_types_are_refused_or_absent() {
    let cases = [
        ("int", "\"1\""),
        ("int", "null"),
        ("int", "true"),
        ("int", "[1]"),
        ("long", "{}"),
        ("flag", "1"),
        ("flag", "\"true\""),
        ("any", "true"),
        ("nonzero", "{\"int\":1}"),
        ("text", "1"),
        ("text", "[\"a\"]"),
        ("raw", "{}"),
        ("object", "[]"),
        ("array", "{\"a\":1}"),
        ("array", "\"a\""),
    ];
    for (key, value) in cases {
        let document = format!("{{\"{key}\":{value},\"{key}\":1,\"ns\":2}}");
        let refused = filtered(document.as_bytes(), WrongType::Refused);
        assert_eq!(refused, Err(DocumentError::WrongType { key }), "{document}");
        let absent = filtered(document.as_bytes(), WrongType::Absent);
        assert_eq!(absent.as_deref(), Ok("ns=2000000000"), "{document}");
    }
    let element = filtered(b"{\"array\":[1]}", WrongType::Absent);
    assert_eq!(element, Err(DocumentError::WrongType { key: "array" }));
    let element = filtered(b"{\"array\":[],\"numbers\":[1]}", WrongType::Absent);
    assert_eq!(element, Err(DocumentError::WrongType { key: "numbers" }));
    let number = filtered(b"{\"numbers\":[{\"n\":\"1\",\"m\":2}]}", WrongType::Absent);
    assert_eq!(number.as_deref(), Ok("numbers=1 numbers.m=2 numbers;"));
}

#[test]
fn broken_documents_are_named_by_the_first_bad_byte() {
    let cases: [(&[u8], u32); 25] = [
        (b"", 0),
        (b" ", 1),
        (b"{", 1),
        (b"}", 0),
        (b"{]", 1),
        (b"[}", 1),
        (b"[1}", 2),
        (b"{\"a\"}", 4),
        (b"{\"a\":}", 5),
        (b"{\"a\":1,}", 7),
        (b"[1,]", 3),
        (b"{a:1}", 1),
        (b"{\"a\":nan}", 6),
        (b"{\"a\":NaN}", 5),
        (b"{\"a\":-inf}", 6),
        (b"{\"a\":Infinity}", 5),
        (b"{\"a\":01}", 6),
        (b"{\"a\":tru}", 8),
        (b"{\"a\":\"\\x\"}", 7),
        (b"{\"a\":\"\\u12g4\"}", 10),
        (b"{\"a\":\"\\ud800x\"}", 12),
        (b"{\"a\":\"\\ud800\\u0041\"}", 17),
        (b"{\"a\":\"\\udc00\"}", 11),
        (b"{\"a\":\"\n\"}", 6),
        (b"-", 1),
    ];
    for (document, offset) in cases {
        let out = filtered(document, WrongType::Refused);
        assert_eq!(out, Err(DocumentError::Syntax { offset }), "{document:?}");
    }
}

#[test]
fn nesting_has_a_limit_and_cannot_exhaust_the_stack() {
    for (depth, fits) in [(64, true), (65, false), (1000, false), (1_000_000, false)] {
        let document = [vec![b'['; depth], vec![b']'; depth]].concat();
        let expected = if fits { Ok(String::new()) } else { Err(DocumentError::Depth) };
        assert_eq!(filtered(&document, WrongType::Refused), expected);
    }
    let mixed = "{\"x\":[".repeat(32) + &"]}".repeat(32) + "!";
    assert_eq!(filtered(mixed.as_bytes(), WrongType::Refused), Ok(String::new()));
}

#[test]
fn unknown_members_may_be_of_any_size() {
    let filler = "x\\n\u{e9}".repeat(500_000);
    let long = format!(
        "{{\"{filler}\":\"{filler}\",\"n\":{}1,\"m\":[{}0],\"int\":7}}",
        "9".repeat(1_000_000),
        "{\"int\":[1]},".repeat(100_000)
    );
    assert_eq!(filtered(long.as_bytes(), WrongType::Refused).as_deref(), Ok("int=7"));
}

#[test]
fn every_member_at_its_widest_fits() {
    let document = "{\"int\":-1e99,\"long\":-1e99,\"ns\":-1e99,\"flag\":true,\"any\":1,\"nonzero\":0,\
                    \"object\":{\"a\":-1e99,\"b\":true},\"array\":[{\"a\":-1e99,\"b\":true}],\"text\":\"\"}";
    assert!(filtered(document.as_bytes(), WrongType::Refused).is_ok());
}

/// A document of known and unknown members in any order, with a good share of mistakes.
fn documents() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        Just("1e-05".to_string()),
        Just("-1".to_string()),
        Just("true".to_string()),
        Just("null".to_string()),
        Just("\"\\ud83d\\ude00\\u0000\"".to_string()),
        any::<u64>().prop_map(|number| number.to_string()),
        any::<f64>().prop_map(|number| format!("{number:e}")),
        "[-0-9.eE]{1,5}",
    ];
    let key = prop_oneof![
        proptest::sample::select(vec![
            "int", "LONG", "ns", "flag", "any", "nonzero", "text", "raw", "object", "array", "a",
            "b", "numbers", "n",
        ])
        .prop_map(String::from),
        "[a-z]{0,30}",
    ];
    scalar.prop_recursive(6, 40, 8, move |value| {
        prop_oneof![
            prop::collection::vec(value.clone(), 0..8)
                .prop_map(|all| format!("[{}]", all.join(","))),
            prop::collection::vec((key.clone(), value), 0..8).prop_map(|all| {
                let members: Vec<_> = all.iter().map(|(k, v)| format!("\"{k}\":{v}")).collect();
                format!("{{{}}}", members.join(" ,"))
            }),
        ]
    })
}

proptest! {
    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = filtered(&bytes, WrongType::Refused);
    }

    #[test]
    fn what_is_accepted_is_json(document in documents()) {
        let strict = serde_json::from_str::<serde_json::Value>(&document);
        let filtered = filtered(document.as_bytes(), WrongType::Absent);
        match (&filtered, &strict) {
            // serde_json refuses numbers beyond a float's range.
            (Ok(_), _) => prop_assert!(strict.is_ok() || document.contains('e'), "{document}"),
            // What serde_json takes fails here only where elements are no objects.
            (Err(error), Ok(_)) => {
                let arrays = ["array", "numbers"].map(|key| DocumentError::WrongType { key });
                prop_assert!(arrays.contains(error), "{} of {}", error, document);
            }
            (Err(_), Err(_)) => {}
        }
    }
}
