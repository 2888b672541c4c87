//! From the events of a document to the canonical text of its known members. One text serves the
//! top level and the running element of an array: the element stands behind what is there so far,
//! and is cut off again when it has been handed on.

use core::fmt::Write;

use super::DocumentError;
use super::scan::{Container, Event};
use super::table::{Kind, MAX_KEY, Member};

/// Who gets what does not go into the canonical text.
pub(crate) trait Taker {
    /// A part of a text value.
    fn handle_text(&mut self, key: &'static str, part: TextPart) -> Result<(), DocumentError>;

    /// A number that is handed on.
    fn handle_number(&mut self, _key: &'static str, _value: i64) {}

    /// The canonical text of one element of the array with this key.
    fn handle_element(&mut self, array: &'static str, object: &[u8]) -> Result<(), DocumentError>;
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
pub(super) struct Router<const C: usize> {
    wrong_type: WrongType,
    place: Place,
    /// Open containers.
    depth: u8,
    /// Everything is skipped until no more than so many containers are open.
    skip_to: Option<u8>,
    top: Level,
    /// The object inside: a member's own, or an element.
    inner: Level,
    /// The array whose elements are being read.
    array: &'static str,
    /// Where the running element begins in the canonical text.
    element_start: usize,
    key: heapless::Vec<u8, MAX_KEY>,
    key_too_long: bool,
    /// The member whose value is being read; none if it is unknown.
    member: Option<&'static Member>,
    raw: Option<&'static str>,
    canonical: heapless::Vec<u8, C>,
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
    /// The member of this key, unless it is unknown or has been there.
    fn take(&mut self, key: &[u8]) -> Option<&'static Member> {
        let known = |member: &Member| member.key.as_bytes().eq_ignore_ascii_case(key);
        let index = self.table.iter().position(known)?;
        let bit = 1 << index;
        let first = self.seen & bit == 0;
        self.seen |= bit;
        first.then_some(&self.table[index])
    }
}

impl<const C: usize> Router<C> {
    pub(super) const fn new(table: &'static [Member], wrong_type: WrongType) -> Self {
        let top = Level { table, seen: 0 };
        Self {
            wrong_type,
            place: Place::Document,
            depth: 0,
            skip_to: None,
            top,
            inner: top,
            array: "",
            element_start: 0,
            key: heapless::Vec::new(),
            key_too_long: false,
            member: None,
            raw: None,
            canonical: heapless::Vec::new(),
        }
    }

    pub(super) const fn raw_key(&self) -> Option<&'static str> {
        self.raw
    }

    pub(super) fn canonical(&self) -> &[u8] {
        &self.canonical
    }

    pub(super) fn on_event(
        &mut self,
        event: Event,
        syntax: DocumentError,
        taker: &mut impl Taker,
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
    fn on_value(&mut self, event: Event, taker: &mut impl Taker) -> Result<(), DocumentError> {
        match (self.place, event) {
            (Place::Document, Event::Begin(Container::Object)) => {
                self.place = Place::Top;
                self.put(b"{");
                Ok(())
            }
            (Place::Elements, Event::Begin(Container::Object)) => {
                self.place = Place::Element;
                self.inner.seen = 0;
                self.put(b"{");
                Ok(())
            }
            (Place::Elements, _) => Err(DocumentError::WrongType { key: self.array }),
            (Place::Document, _) => {
                self.skip(event);
                Ok(())
            }
            _ => match self.member {
                Some(member) => self.on_member(member, event, taker),
                None => {
                    self.skip(event);
                    Ok(())
                }
            },
        }
    }

    fn on_member(
        &mut self,
        member: &'static Member,
        event: Event,
        taker: &mut impl Taker,
    ) -> Result<(), DocumentError> {
        match (member.kind, event) {
            (Kind::Int32, Event::Number(number)) => {
                let bounds = (i32::MIN.into(), i32::MAX.into());
                self.put_number(member.key, number.truncated().clamp(bounds.0, bounds.1));
            }
            (Kind::Int64, Event::Number(number)) => {
                self.put_number(member.key, number.truncated());
            }
            (Kind::Scaled(digits), Event::Number(number)) => {
                self.put_number(member.key, number.scaled(digits));
            }
            (Kind::Number, Event::Number(number)) => {
                taker.handle_number(member.key, number.truncated());
            }
            (Kind::Scaled(_), Event::Null) => self.put_number(member.key, 0),
            (Kind::Flag, Event::Bool) => self.put_flag(member.key, true),
            (Kind::NumberFlag, Event::Number(_)) => self.put_flag(member.key, true),
            (Kind::NonZeroFlag, Event::Number(number)) => {
                self.put_flag(member.key, !number.is_zero());
            }
            (Kind::Text, Event::TextBegin) => {
                return taker.handle_text(member.key, TextPart::Begin);
            }
            (Kind::RawText, Event::TextBegin) => self.raw = Some(member.key),
            (Kind::RawObject, Event::Begin(Container::Object)) => {
                self.raw = Some(member.key);
                self.skip(event);
            }
            (Kind::Object(table), Event::Begin(Container::Object)) => {
                self.put_key(member.key);
                self.put(b"{");
                self.inner = Level { table, seen: 0 };
                self.place = Place::Object;
            }
            (Kind::Elements(table), Event::Begin(Container::Array)) => {
                self.put_flag(member.key, true);
                self.inner = Level { table, seen: 0 };
                self.array = member.key;
                self.element_start = self.canonical.len();
                self.place = Place::Elements;
            }
            _ if self.wrong_type == WrongType::Refused => {
                return Err(DocumentError::WrongType { key: member.key });
            }
            _ => {
                self.member = None;
                self.skip(event);
            }
        }
        Ok(())
    }

    fn on_text(
        &mut self,
        event: Event,
        syntax: DocumentError,
        taker: &mut impl Taker,
    ) -> Result<(), DocumentError> {
        let Some(Member { key, kind: Kind::Text }) = self.member else {
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

    fn on_end(&mut self, taker: &mut impl Taker) -> Result<(), DocumentError> {
        match self.place {
            Place::Top => {
                self.put(b"}");
                self.place = Place::Document;
            }
            Place::Object => {
                self.put(b"}");
                self.place = Place::Top;
            }
            Place::Element => {
                self.put(b"}");
                self.place = Place::Elements;
                taker.handle_element(self.array, &self.canonical[self.element_start..])?;
                self.canonical.truncate(self.element_start);
            }
            Place::Elements | Place::Document => self.place = Place::Top,
        }
        Ok(())
    }

    /// Skips the container that begins, if one does.
    fn skip(&mut self, event: Event) {
        if let Event::Begin(_) = event {
            self.skip_to = Some(self.depth - 1);
        }
    }

    fn put_key(&mut self, key: &'static str) {
        if self.canonical.last() != Some(&b'{') {
            self.put(b",");
        }
        self.put(b"\"");
        self.put(key.as_bytes());
        self.put(b"\":");
    }

    fn put_number(&mut self, key: &'static str, value: i64) {
        self.put_key(key);
        write!(self.canonical, "{value}").expect("the capacity counts every member once");
    }

    fn put_flag(&mut self, key: &'static str, value: bool) {
        self.put_key(key);
        self.put(if value { b"true" } else { b"false" });
    }

    fn put(&mut self, bytes: &[u8]) {
        self.canonical.extend_from_slice(bytes).expect("the capacity counts every member once");
    }
}
