//! A string of bytes that lies in place when it is short and is shared when it is long.

use std::sync::Arc;
use std::{fmt, ops};

use crate::inline::Inline;

/// Bytes that never change; a clone costs at most a counter.
#[derive(Clone)]
pub struct Bytes(Form);

#[derive(Clone)]
enum Form {
    Short(Inline),
    Shared(Arc<[u8]>),
}

impl Bytes {
    /// A copy of `bytes`.
    pub fn new(bytes: &[u8]) -> Self {
        Self(match Inline::new(bytes) {
            Some(short) => Form::Short(short),
            None => Form::Shared(bytes.into()),
        })
    }

    /// How many bytes lie elsewhere.
    pub(crate) fn heap(&self) -> usize {
        match &self.0 {
            Form::Short(..) => 0,
            Form::Shared(bytes) => bytes.len(),
        }
    }
}

impl ops::Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Form::Short(short) => short.bytes(),
            Form::Shared(bytes) => bytes,
        }
    }
}

impl From<&[u8]> for Bytes {
    fn from(bytes: &[u8]) -> Self {
        Self::new(bytes)
    }
}

impl From<&str> for Bytes {
    fn from(text: &str) -> Self {
        Self::new(text.as_bytes())
    }
}

impl PartialEq for Bytes {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Bytes {}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.escape_ascii())
    }
}
