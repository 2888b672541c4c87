//! What is known of one object: its numbers and flags, in the places of its table. So all documents
//! are kept and asked by the same code, whatever their members are.

use super::DocumentError;
use super::table::{Kind, MAX_MEMBERS, Member};

/// The numbers and flags of an object. There are values up to the last number of the table, see
/// [`places`]; a flag is a bit.
#[derive(Debug, Clone)]
pub(crate) struct Numbers<V: ?Sized = [i64]> {
    table: &'static [Member],
    /// A bit for each member that is there.
    present: u64,
    values: V,
}

impl<const P: usize> Numbers<[i64; P]> {
    /// Nothing is there.
    pub(crate) const fn new(table: &'static [Member]) -> Self {
        Self { table, present: 0, values: [0; P] }
    }
}

impl Numbers {
    /// Takes the member in this place of the table.
    pub(crate) fn put(&mut self, place: usize, value: i64) {
        self.present |= 1 << place;
        if let Some(room) = self.values.get_mut(place) {
            *room = value;
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.present = 0;
    }

    /// # Errors
    /// [`DocumentError::Missing`] for the first key that is not there.
    pub(crate) fn require(&self, keys: &[&'static str]) -> Result<(), DocumentError> {
        match keys.iter().find(|key| self.place(key).is_none()) {
            Some(key) => Err(DocumentError::Missing { key }),
            None => Ok(()),
        }
    }

    /// The number with this key, if it is there.
    pub(crate) fn number(&self, key: &str) -> Option<i64> {
        self.values.get(self.place(key)?).copied()
    }

    /// Whether the flag with this key is set.
    pub(crate) fn flag(&self, key: &str) -> bool {
        self.place(key).is_some()
    }

    /// The place of the member with this key, if it is there.
    fn place(&self, key: &str) -> Option<usize> {
        let place = self.table.iter().position(|member| member.key == key);
        debug_assert!(place.is_some(), "only members of the table are asked for: {key}");
        place.filter(|place| self.present >> place & 1 == 1)
    }
}

/// Values that the numbers of these members need; fewest if they come first.
///
/// # Panics
/// While compiling, if there are more members than bits.
pub(crate) const fn places(members: &[Member]) -> usize {
    assert!(members.len() <= MAX_MEMBERS, "a bit for each member");
    let mut places = members.len();
    while places > 0 && !is_number(members[places - 1].kind) {
        places -= 1;
    }
    places
}

const fn is_number(kind: Kind) -> bool {
    matches!(kind, Kind::Int32 | Kind::Number | Kind::Scaled(_))
}
