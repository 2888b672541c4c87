//! The syntax of JSON as a state machine: bytes in any chunking go in, events come out. Text is
//! unescaped here but not checked to be UTF-8, because most of it is skipped anyway (a server cuts
//! the lines of its output at a fixed number of bytes, through the middle of a character if need
//! be).

use super::DocumentError;
use super::number::{Decimal, NumberReader, Step};

/// What the scanner saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// An object or an array begins.
    Begin(Container),
    /// The innermost one ends.
    End,
    /// A byte of a key, unescaped.
    KeyByte(u8),
    /// The key is complete; its value follows.
    KeyEnd,
    /// A text value begins.
    TextBegin,
    /// A byte of it, unescaped.
    TextByte(u8),
    /// The text value ends.
    TextEnd,
    /// A number.
    Number(Decimal),
    /// `true` or `false`.
    Bool,
    /// `null`.
    Null,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Container {
    Object,
    Array,
}

/// Deepest nesting that is read.
pub(super) const MAX_DEPTH: u8 = 64;

#[derive(Debug, Clone)]
pub(super) struct Scanner {
    state: State,
    /// Open containers.
    depth: u8,
    /// One bit for each of them, the innermost lowest: set for objects.
    objects: u64,
    offset: u32,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// A value must come.
    Value,
    /// After `[`: a value or the end.
    FirstValue,
    /// After `{`: a key or the end.
    FirstKey,
    /// After a comma in an object: a key.
    Key,
    Colon,
    /// After a value in a container.
    CommaOrEnd,
    Text {
        is_key: bool,
        escape: Escape,
    },
    Number(NumberReader),
    Literal {
        rest: &'static [u8],
        event: Event,
    },
    /// The top-level value is complete; what follows is ignored, as iperf3 does.
    Complete,
}

/// Where in an escape sequence a text is.
#[derive(Debug, Clone, Copy)]
enum Escape {
    None,
    Backslash,
    /// In the digits after `\u`; `high` is the first half of a pair.
    Unicode {
        digits: u8,
        code: u16,
        high: Option<u16>,
    },
    /// A first half must be followed by a backslash.
    PairBackslash {
        high: u16,
    },
    /// And then by `u`.
    PairU {
        high: u16,
    },
}

impl Scanner {
    pub(super) const fn new() -> Self {
        Self { state: State::Value, depth: 0, objects: 0, offset: 0 }
    }

    /// Takes one byte and reports up to two events (a number ends with the byte after it), or the
    /// bytes of one escaped character.
    pub(super) fn push(
        &mut self,
        byte: u8,
        sink: &mut impl FnMut(Event) -> Result<(), DocumentError>,
    ) -> Result<(), DocumentError> {
        match self.state {
            State::Complete => return Ok(()),
            State::Text { is_key, escape } => self.push_text(byte, is_key, escape, sink)?,
            State::Number(mut number) => match number.push(byte) {
                Step::More => self.state = State::Number(number),
                Step::Complete(decimal) => {
                    self.end_value();
                    sink(Event::Number(decimal))?;
                    self.push_structure(byte, sink)?;
                }
                Step::Broken => return Err(self.syntax()),
            },
            State::Literal { rest, event } => match rest.split_first() {
                Some((&expected, rest)) if byte == expected => {
                    self.state = State::Literal { rest, event };
                    if rest.is_empty() {
                        self.end_value();
                        sink(event)?;
                    }
                }
                _ => return Err(self.syntax()),
            },
            _ => self.push_structure(byte, sink)?,
        }
        self.offset = self.offset.saturating_add(1);
        Ok(())
    }

    /// The document ends here.
    pub(super) fn end(
        &mut self,
        sink: &mut impl FnMut(Event) -> Result<(), DocumentError>,
    ) -> Result<(), DocumentError> {
        match self.state {
            State::Complete => Ok(()),
            State::Number(number) if self.depth == 0 => {
                let decimal = number.end().ok_or(self.syntax())?;
                self.state = State::Complete;
                sink(Event::Number(decimal))
            }
            _ => Err(self.syntax()),
        }
    }

    /// Whether the top-level value has ended.
    pub(super) const fn is_complete(&self) -> bool {
        matches!(self.state, State::Complete)
    }

    /// A complaint about the byte that is being looked at.
    pub(super) const fn syntax(&self) -> DocumentError {
        DocumentError::Syntax { offset: self.offset }
    }

    fn push_structure(
        &mut self,
        byte: u8,
        sink: &mut impl FnMut(Event) -> Result<(), DocumentError>,
    ) -> Result<(), DocumentError> {
        if matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
            return Ok(());
        }
        match (self.state, byte) {
            (State::FirstValue, b']') => self.end_container(sink),
            (State::FirstKey, b'}') => self.end_container(sink),
            (State::CommaOrEnd, b']') if !self.in_object() => self.end_container(sink),
            (State::CommaOrEnd, b'}') if self.in_object() => self.end_container(sink),
            (State::CommaOrEnd, b',') => {
                self.state = if self.in_object() { State::Key } else { State::Value };
                Ok(())
            }
            (State::FirstKey | State::Key, b'"') => {
                self.state = State::Text { is_key: true, escape: Escape::None };
                Ok(())
            }
            (State::Colon, b':') => {
                self.state = State::Value;
                Ok(())
            }
            (State::Value | State::FirstValue, _) => self.begin_value(byte, sink),
            _ => Err(self.syntax()),
        }
    }

    fn begin_value(
        &mut self,
        byte: u8,
        sink: &mut impl FnMut(Event) -> Result<(), DocumentError>,
    ) -> Result<(), DocumentError> {
        let literal = |rest, event| State::Literal { rest, event };
        self.state = match byte {
            b'{' | b'[' => return self.begin_container(byte == b'{', sink),
            b'"' => {
                self.state = State::Text { is_key: false, escape: Escape::None };
                return sink(Event::TextBegin);
            }
            b't' => literal(b"rue", Event::Bool),
            b'f' => literal(b"alse", Event::Bool),
            b'n' => literal(b"ull", Event::Null),
            _ => State::Number(NumberReader::begin(byte).ok_or(self.syntax())?),
        };
        Ok(())
    }

    fn begin_container(
        &mut self,
        is_object: bool,
        sink: &mut impl FnMut(Event) -> Result<(), DocumentError>,
    ) -> Result<(), DocumentError> {
        if self.depth == MAX_DEPTH {
            return Err(DocumentError::Depth);
        }
        self.depth += 1;
        self.objects = self.objects << 1 | u64::from(is_object);
        self.state = if is_object { State::FirstKey } else { State::FirstValue };
        sink(Event::Begin(if is_object { Container::Object } else { Container::Array }))
    }

    fn end_container(
        &mut self,
        sink: &mut impl FnMut(Event) -> Result<(), DocumentError>,
    ) -> Result<(), DocumentError> {
        self.depth -= 1;
        self.objects >>= 1;
        self.end_value();
        sink(Event::End)
    }

    fn end_value(&mut self) {
        self.state = if self.depth == 0 { State::Complete } else { State::CommaOrEnd };
    }

    const fn in_object(&self) -> bool {
        self.objects & 1 == 1
    }

    fn push_text(
        &mut self,
        byte: u8,
        is_key: bool,
        escape: Escape,
        sink: &mut impl FnMut(Event) -> Result<(), DocumentError>,
    ) -> Result<(), DocumentError> {
        let mut emit =
            |byte| sink(if is_key { Event::KeyByte(byte) } else { Event::TextByte(byte) });
        let escape = match (escape, byte) {
            (Escape::None, b'"') => {
                if is_key {
                    self.state = State::Colon;
                    return sink(Event::KeyEnd);
                }
                self.end_value();
                return sink(Event::TextEnd);
            }
            (Escape::None, b'\\') => Escape::Backslash,
            (Escape::None, 0x20..) => {
                emit(byte)?;
                Escape::None
            }
            (Escape::Backslash, b'u') => Escape::Unicode { digits: 0, code: 0, high: None },
            (Escape::Backslash, _) => {
                emit(unescaped(byte).ok_or(self.syntax())?)?;
                Escape::None
            }
            (Escape::Unicode { digits, code, high }, _) => {
                let digit = char::from(byte).to_digit(16).ok_or(self.syntax())?;
                let code = code << 4 | digit as u16;
                if digits < 3 {
                    Escape::Unicode { digits: digits + 1, code, high }
                } else {
                    match (high, code) {
                        (None, 0xd800..=0xdbff) => Escape::PairBackslash { high: code },
                        _ => {
                            let character = character(high, code).ok_or(self.syntax())?;
                            let mut utf8 = [0; 4];
                            character.encode_utf8(&mut utf8).bytes().try_for_each(emit)?;
                            Escape::None
                        }
                    }
                }
            }
            (Escape::PairBackslash { high }, b'\\') => Escape::PairU { high },
            (Escape::PairU { high }, b'u') => {
                Escape::Unicode { digits: 0, code: 0, high: Some(high) }
            }
            _ => return Err(self.syntax()),
        };
        self.state = State::Text { is_key, escape };
        Ok(())
    }
}

/// What a backslash and this letter stand for.
const fn unescaped(letter: u8) -> Option<u8> {
    Some(match letter {
        b'"' | b'\\' | b'/' => letter,
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        _ => return None,
    })
}

/// The character of one or two halves; none for a half that stands alone.
fn character(high: Option<u16>, code: u16) -> Option<char> {
    let units = [high.unwrap_or(code), code];
    let units = if high.is_some() { &units[..] } else { &units[1..] };
    char::decode_utf16(units.iter().copied()).next()?.ok()
}
