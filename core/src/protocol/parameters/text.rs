//! The free-form texts of a client, in memory of a stated size.

use crate::protocol::json::{DocumentError, TextPart};

/// What a client sent as text, in `T` bytes altogether. A text that does not fit is left out.
#[derive(Debug, Clone)]
pub struct ReceivedText<const T: usize> {
    bytes: heapless::Vec<u8, T>,
    /// Where each complete text lies in `bytes`.
    spans: [Option<(u32, u32)>; KEYS.len()],
    /// Where the running text begins; none if it has been dropped.
    start: Option<usize>,
    did_not_fit: bool,
}

/// The keys of the texts, in the order of their accessors.
const KEYS: [&str; 5] = ["title", "extra_data", "congestion", "authtoken", "client_version"];

impl<const T: usize> Default for ReceivedText<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const T: usize> ReceivedText<T> {
    /// No text at all.
    pub const fn new() -> Self {
        Self {
            bytes: heapless::Vec::new(),
            spans: [None; KEYS.len()],
            start: None,
            did_not_fit: false,
        }
    }

    /// Printed before each line (`-T`).
    pub fn title(&self) -> Option<&str> {
        self.text(0)
    }

    /// Carried into the JSON report (`--extra-data`).
    pub fn extra_data(&self) -> Option<&str> {
        self.text(1)
    }

    /// The congestion control algorithm asked for (`-C`).
    pub fn congestion(&self) -> Option<&str> {
        self.text(2)
    }

    /// The encrypted credentials, in base64.
    pub fn auth_token(&self) -> Option<&str> {
        self.text(3)
    }

    /// The client's release.
    pub fn client_version(&self) -> Option<&str> {
        self.text(4)
    }

    /// Whether a text was left out because it did not fit.
    pub const fn did_not_fit(&self) -> bool {
        self.did_not_fit
    }

    fn text(&self, index: usize) -> Option<&str> {
        let (start, end) = self.spans[index]?;
        core::str::from_utf8(&self.bytes[start as usize..end as usize]).ok()
    }

    pub(super) fn handle(&mut self, key: &str, part: TextPart) -> Result<(), DocumentError> {
        match part {
            TextPart::Begin => self.start = Some(self.bytes.len()),
            TextPart::Byte(byte) => {
                if let Some(start) = self.start
                    && self.bytes.push(byte).is_err()
                {
                    self.bytes.truncate(start);
                    self.start = None;
                    self.did_not_fit = true;
                }
            }
            TextPart::End { syntax } => {
                if let Some(start) = self.start.take() {
                    core::str::from_utf8(&self.bytes[start..]).map_err(|_| syntax)?;
                    match KEYS.iter().position(|&known| known == key) {
                        Some(index) => {
                            self.spans[index] = Some((start as u32, self.bytes.len() as u32));
                        }
                        None => self.bytes.truncate(start),
                    }
                }
            }
        }
        Ok(())
    }
}
