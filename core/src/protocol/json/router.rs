//! From the events of a document to its known members, one at a time: each number and flag becomes a
//! small canonical text that serde-json-core decodes, and is handed on.

use core::fmt::Write;

use serde::Deserialize;

use super::DocumentError;
use super::scan::{Container, Event};
use super::table::{Kind, MAX_KEY, Member};

/// Who gets the known members. `object` is the key of the object or array that they are in, empty at
/// the top level.
pub(crate) trait Taker {
    /// A number, or a flag that is set, in its place of the table.
    fn handle_number(&mut self, object: &'static str, place: usize, value: i64);

    /// A part of a text value.
    fn handle_text(&mut self, _key: &'static str, _part: TextPart) -> Result<(), DocumentError> {
        Ok(())
    }

    /// An element of the array is complete.
    fn handle_element(&mut self, _array: &'static str) -> Result<(), DocumentError> {
        Ok(())
    }
}

/// A part of a text value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextPart {
    Begin,
    Byte(u8),
    /// It is complete; `syntax` is the complaint if it turns out to be no UTF-8.
    End {
        syntax: DocumentError,
    },
}

/// What a known member of a wrong type means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WrongType {
    /// The document is refused.
    Refused,
    /// The member counts as absent.
    Absent,
}

#[derive(Debug, Clone)]
pub(super) struct Router {
    wrong_type: WrongType,
    place: Place,
    /// Open containers.
    depth: u8,
    /// Everything is skipped until no more than so many containers are open.
    skip_to: Option<u8>,
    top: Level,
    /// The object inside: a member's own, or an element.
    inner: Level,
    /// The key of the object inside, or of the array whose elements are being read; empty at the top level.
    object: &'static str,
    key: heapless::Vec<u8, MAX_KEY>,
    key_too_long: bool,
    /// The member whose value is being read, and its place in the table; none if it is unknown.
    member: Option<(u8, &'static Member)>,
    raw: Option<&'static str>,
}

/// Which container the next event belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Document,
    Top,
    Object,
    Elements,
    Element,
}

#[derive(Debug, Clone, Copy)]
struct Level {
    table: &'static [Member],
    /// A bit for each member of the table that has been there: the first one counts.
    seen: u64,
}

impl Level {
    const fn new(table: &'static [Member]) -> Self {
        Self { table, seen: 0 }
    }

    /// The member of this key and its place, unless it is unknown or has been there.
    fn take(&mut self, key: &[u8]) -> Option<(u8, &'static Member)> {
        let known = |member: &Member| member.key.as_bytes().eq_ignore_ascii_case(key);
        let index = self.table.iter().position(known)?;
        let bit = 1 << index;
        let first = self.seen & bit == 0;
        self.seen |= bit;
        first.then_some((index as u8, &self.table[index]))
    }
}

impl Router {
    pub(super) const fn new(table: &'static [Member], wrong_type: WrongType) -> Self {
        let top = Level::new(table);
        Self {
            wrong_type,
            place: Place::Document,
            depth: 0,
            skip_to: None,
            top,
            inner: top,
            object: "",
            key: heapless::Vec::new(),
            key_too_long: false,
            member: None,
            raw: None,
        }
    }

    pub(super) const fn raw_key(&self) -> Option<&'static str> {
        self.raw
    }

    pub(super) fn on_event(
        &mut self,
        event: Event,
        syntax: DocumentError,
        taker: &mut dyn Taker,
    ) -> Result<(), DocumentError> {
        match event {
            Event::Begin(_) => self.depth += 1,
            Event::End => self.depth -= 1,
            _ => {}
        }
        if let Some(depth) = self.skip_to {
            if self.depth == depth {
                self.skip_to = None;
                self.raw = None;
            }
            return Ok(());
        }
        match event {
            Event::KeyByte(byte) => {
                self.key_too_long |= self.key.push(byte).is_err();
                Ok(())
            }
            Event::KeyEnd => {
                self.on_key();
                Ok(())
            }
            Event::End => self.on_end(taker),
            Event::TextByte(_) | Event::TextEnd => self.on_text(event, syntax, taker),
            _ => self.on_value(event, taker),
        }
    }

    fn on_key(&mut self) {
        let level = if self.place == Place::Top { &mut self.top } else { &mut self.inner };
        self.member = if self.key_too_long { None } else { level.take(&self.key) };
        self.key.clear();
        self.key_too_long = false;
    }

    /// A value begins, or is there as a whole.
    fn on_value(&mut self, event: Event, taker: &mut dyn Taker) -> Result<(), DocumentError> {
        match (self.place, event) {
            (Place::Document, Event::Begin(Container::Object)) => {
                self.place = Place::Top;
                Ok(())
            }
            (Place::Elements, Event::Begin(Container::Object)) => {
                self.place = Place::Element;
                self.inner.seen = 0;
                Ok(())
            }
            (Place::Elements, _) => Err(DocumentError::WrongType { key: self.object }),
            (Place::Document, _) => {
                self.skip(event);
                Ok(())
            }
            _ => match self.member {
                Some((place, member)) => self.on_member(place, member, event, taker),
                None => {
                    self.skip(event);
                    Ok(())
                }
            },
        }
    }

    fn on_member(
        &mut self,
        place: u8,
        member: &'static Member,
        event: Event,
        taker: &mut dyn Taker,
    ) -> Result<(), DocumentError> {
        let value = match (member.kind, event) {
            (Kind::Int32, Event::Number(number)) => {
                number.truncated().clamp(i32::MIN.into(), i32::MAX.into())
            }
            (Kind::Number, Event::Number(number)) => number.truncated(),
            (Kind::Scaled(digits), Event::Number(number)) => number.scaled(digits),
            (Kind::Scaled(_), Event::Null) => 0,
            (Kind::Flag, Event::Bool) | (Kind::NumberFlag, Event::Number(_)) => SET,
            (Kind::NonZeroFlag, Event::Number(number)) if number.is_zero() => return Ok(()),
            (Kind::NonZeroFlag, Event::Number(_)) => SET,
            (Kind::Text, Event::TextBegin) => {
                return taker.handle_text(member.key, TextPart::Begin);
            }
            (Kind::RawText, Event::TextBegin) => {
                self.raw = Some(member.key);
                return Ok(());
            }
            (Kind::RawObject, Event::Begin(Container::Object)) => {
                self.raw = Some(member.key);
                self.skip(event);
                return Ok(());
            }
            (Kind::Object(table), Event::Begin(Container::Object)) => {
                self.enter(Place::Object, member.key, table);
                return Ok(());
            }
            (Kind::Elements(table), Event::Begin(Container::Array)) => {
                hand_on(self.object, place, SET, taker)?;
                self.enter(Place::Elements, member.key, table);
                return Ok(());
            }
            _ if self.wrong_type == WrongType::Refused => {
                return Err(DocumentError::WrongType { key: member.key });
            }
            _ => {
                self.member = None;
                self.skip(event);
                return Ok(());
            }
        };
        hand_on(self.object, place, value, taker)
    }

    fn enter(&mut self, place: Place, object: &'static str, table: &'static [Member]) {
        self.place = place;
        self.object = object;
        self.inner = Level::new(table);
    }

    fn on_text(
        &mut self,
        event: Event,
        syntax: DocumentError,
        taker: &mut dyn Taker,
    ) -> Result<(), DocumentError> {
        let Some((_, Member { key, kind: Kind::Text })) = self.member else {
            if event == Event::TextEnd {
                self.raw = None;
            }
            return Ok(());
        };
        match event {
            Event::TextByte(byte) => taker.handle_text(key, TextPart::Byte(byte)),
            _ => taker.handle_text(key, TextPart::End { syntax }),
        }
    }

    fn on_end(&mut self, taker: &mut dyn Taker) -> Result<(), DocumentError> {
        match self.place {
            Place::Top => self.place = Place::Document,
            Place::Element => {
                self.place = Place::Elements;
                taker.handle_element(self.object)?;
            }
            Place::Object | Place::Elements | Place::Document => {
                self.place = Place::Top;
                self.object = "";
            }
        }
        Ok(())
    }

    /// Skips the container that begins, if one does.
    fn skip(&mut self, event: Event) {
        if let Event::Begin(_) = event {
            self.skip_to = Some(self.depth - 1);
        }
    }
}

/// The value of a flag that is set.
const SET: i64 = 1;

/// A number or flag and its place, as the canonical text says them.
#[derive(Deserialize)]
struct Known(u8, i64);

/// Most bytes of the canonical text of a member.
const MAX_CANONICAL: usize = "[63,-9223372036854775807]".len();

/// Brings a number or flag to its canonical text, decodes it and hands it on.
fn hand_on(
    object: &'static str,
    place: u8,
    value: i64,
    taker: &mut dyn Taker,
) -> Result<(), DocumentError> {
    let mut canonical = heapless::String::<MAX_CANONICAL>::new();
    write!(canonical, "[{place},{value}]").expect("there is room for the longest");
    match serde_json_core::from_str(&canonical) {
        Ok((Known(place, value), _)) => taker.handle_number(object, place.into(), value),
        Err(_) => return Err(DocumentError::Syntax { offset: 0 }),
    }
    Ok(())
}
