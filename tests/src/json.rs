//! Documents as readers of all kinds take them: strictly, without a key twice at any level; and what
//! keys they hold, of which types. Lines of a stream are put together to the document they are parts
//! of.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Reads one document; a key that stands twice in an object is an error.
///
/// # Errors
///
/// A message with the text, when it is not one valid document.
pub fn strict(text: &str) -> Result<Value, String> {
    let read: Result<Strict, _> = serde_json::from_str(text);
    read.map(|Strict(value)| value).map_err(|error| format!("{error} in {text:?}"))
}

/// Reads documents that follow each other, each as strictly.
///
/// # Errors
///
/// As for [`strict`].
pub fn strict_all(text: &str) -> Result<Vec<Value>, String> {
    let documents = serde_json::Deserializer::from_str(text).into_iter::<Strict>();
    let read: Result<Vec<_>, _> = documents.collect();
    let documents = read.map_err(|error| format!("{error} in {text:?}"))?;
    Ok(documents.into_iter().map(|Strict(value)| value).collect())
}

/// The lines of a stream, and the document after them where there is one.
#[derive(Debug)]
pub struct Stream {
    /// The names of the events in order.
    pub events: Vec<String>,
    /// The lines, as objects.
    pub lines: Vec<Value>,
    /// What follows the last line.
    pub rest: String,
}

impl Stream {
    /// Reads lines of events.
    ///
    /// # Errors
    ///
    /// A message, when a line is no event.
    pub fn read(text: &str) -> Result<Self, String> {
        let at =
            if text.starts_with("{\n") { Some(0) } else { text.find("\n{\n").map(|at| at + 1) };
        let (lines, rest) = text.split_at(at.unwrap_or(text.len()));
        let lines: Vec<Value> = lines.lines().map(strict).collect::<Result<_, _>>()?;
        let event = |line: &Value| {
            line["event"].as_str().map(str::to_owned).ok_or_else(|| format!("no event: {line}"))
        };
        let events = lines.iter().map(event).collect::<Result<_, _>>()?;
        Ok(Self { events, lines, rest: rest.into() })
    }

    /// The document that a program which gathers the lines would have. One test's lines.
    pub fn document(&self) -> Value {
        let mut document = Map::new();
        document.insert("start".into(), Value::Object(Map::new()));
        let mut intervals = Vec::new();
        for (event, line) in self.events.iter().zip(&self.lines) {
            match event.as_str() {
                "interval" => intervals.push(line["data"].clone()),
                event => drop(document.insert(event.into(), line["data"].clone())),
            }
        }
        document.insert("intervals".into(), intervals.into());
        document.into()
    }
}

/// Every key with its place and type, such as `end.streams[].udp.bytes: number`.
pub fn key_paths(document: &Value) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    collect(document, "", &mut |place, value| {
        paths.insert(format!("{}: {}", place.trim_start_matches('.'), kind(value)));
    });
    paths
}

/// The names of the keys whose value is a number with a fraction somewhere in the document.
pub fn fractional_keys(document: &Value) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    collect(document, "", &mut |place, value| {
        if value.is_f64() {
            keys.insert(place.rsplit('.').next().unwrap_or(place).to_owned());
        }
    });
    keys
}

fn collect(value: &Value, place: &str, tell: &mut dyn FnMut(&str, &Value)) {
    match value {
        Value::Array(elements) => {
            elements.iter().for_each(|element| collect(element, &format!("{place}[]"), tell));
        }
        Value::Object(members) => {
            members.iter().for_each(|(key, value)| collect(value, &format!("{place}.{key}"), tell));
        }
        _ => {}
    }
    tell(place, value);
}

const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor).map(Self)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(Strict(element)) = elements.next_element()? {
            array.push(element);
        }
        Ok(array.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some((key, Strict(value))) = members.next_entry::<String, Strict>()? {
            if object.contains_key(&key) {
                return Err(A::Error::custom(format!("the key {key} stands twice")));
            }
            object.insert(key, value);
        }
        Ok(object.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_stands_twice_is_found_at_any_depth() {
        assert!(strict(r#"{"a": [{"b": 1, "c": {"d": 1, "d": 2}}]}"#).is_err());
        assert!(strict(r#"{"a": [{"b": 1}, {"b": 1.5}], "b": null}"#).is_ok());
        assert!(strict(r#"{"a": nan}"#).is_err());
    }

    #[test]
    fn a_stream_is_read_with_what_follows_it() {
        let text = "{\"event\":\"start\",\"data\":{}}\n{\"event\":\"end\",\"data\":{}}\n{\n\t\"a\":\t1\n}\n";
        let stream = Stream::read(text).expect("a stream");
        assert_eq!(stream.events, ["start", "end"]);
        assert_eq!(strict(&stream.rest), Ok(serde_json::json!({"a": 1})));
        assert_eq!(stream.document(), serde_json::json!({"start": {}, "end": {}, "intervals": []}));
    }
}
