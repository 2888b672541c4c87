//! Room for what only an end with an operating system has.

/// A value that may be there on hosts. Without the feature `host` it never is: it takes no room, and the
/// compiler leaves out whatever would be done with it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OnHost<T> {
    #[cfg(feature = "host")]
    value: Option<T>,
    #[cfg(not(feature = "host"))]
    value: core::marker::PhantomData<T>,
}

#[cfg(feature = "host")]
impl<T> OnHost<T> {
    pub(crate) const NONE: Self = Self { value: None };

    /// Is there where it is given.
    pub(crate) fn new(value: Option<T>) -> Self {
        Self { value }
    }

    pub(crate) const fn as_ref(&self) -> Option<&T> {
        self.value.as_ref()
    }

    pub(crate) const fn as_mut(&mut self) -> Option<&mut T> {
        self.value.as_mut()
    }

    /// Puts there what is made.
    pub(crate) fn set(&mut self, make: impl FnOnce() -> T) {
        self.value = Some(make());
    }

    /// The value, which is made where it is not there yet.
    pub(crate) fn get_or_make(&mut self, make: impl FnOnce() -> T) -> Option<&mut T> {
        Some(self.value.get_or_insert_with(make))
    }
}

#[cfg(not(feature = "host"))]
impl<T> OnHost<T> {
    pub(crate) const NONE: Self = Self { value: core::marker::PhantomData };

    pub(crate) fn new(_: Option<T>) -> Self {
        Self::NONE
    }

    pub(crate) const fn as_ref(&self) -> Option<&T> {
        None
    }

    pub(crate) const fn as_mut(&mut self) -> Option<&mut T> {
        None
    }

    pub(crate) fn set(&mut self, _: impl FnOnce() -> T) {}

    pub(crate) fn get_or_make(&mut self, _: impl FnOnce() -> T) -> Option<&mut T> {
        None
    }
}

impl<T: Copy> OnHost<T> {
    pub(crate) const fn get(&self) -> Option<T> {
        match self.as_ref() {
            Some(value) => Some(*value),
            None => None,
        }
    }
}

impl<T> Default for OnHost<T> {
    fn default() -> Self {
        Self::NONE
    }
}
