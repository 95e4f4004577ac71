//! A string of bytes: stored in place when it is short, shared when it is long, or has a companion (a value that is
//! dropped with the last clone).

use std::any::Any;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::{fmt, ops};

use triomphe::ThinArc;

use crate::inline::Inline;

/// Bytes that never change; a clone costs at most a counter.
#[derive(Clone)]
pub struct Bytes(BytesRepr);

#[derive(Clone)]
enum BytesRepr {
    Short(Inline),
    Shared(ThinArc<Companion, u8>),
}

/// A value that is dropped with the last clone of some bytes.
type Companion = Option<Box<dyn Any + Send + Sync + UnwindSafe + RefUnwindSafe>>;

impl Bytes {
    /// A copy of `bytes`.
    pub fn new(bytes: &[u8]) -> Self {
        Self(match Inline::new(bytes) {
            Some(short) => BytesRepr::Short(short),
            None => BytesRepr::Shared(ThinArc::from_header_and_slice(None, bytes)),
        })
    }

    /// A copy of `bytes` with a companion, which lives as long as any clone in any version. When the
    /// companion is dropped, no version has these bytes any longer.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use weald::tree::{Bytes, Tree};
    ///
    /// let large = Arc::new([0_u8; 1000]);
    /// let mut edit = Tree::new().edit();
    /// let root = edit.tree().root().id();
    /// edit.put_bytes(root, "picture", Bytes::with_companion(b"1", Arc::clone(&large)))?;
    /// let tree = edit.freeze();
    /// assert_eq!(Arc::strong_count(&large), 2);
    /// drop(tree);
    /// assert_eq!(Arc::strong_count(&large), 1);
    /// # Ok::<(), weald::tree::EditError>(())
    /// ```
    pub fn with_companion(
        bytes: &[u8],
        companion: impl Any + Send + Sync + UnwindSafe + RefUnwindSafe,
    ) -> Self {
        let companion: Companion = Some(Box::new(companion));
        Self(BytesRepr::Shared(ThinArc::from_header_and_slice(
            companion, bytes,
        )))
    }

    /// Their companion, if they have one of this type.
    ///
    /// ```
    /// use weald::tree::Bytes;
    ///
    /// let value = Bytes::with_companion(b"1", String::from("of it"));
    /// assert_eq!(value.companion::<String>().map(String::as_str), Some("of it"));
    /// assert_eq!(value.companion::<u32>(), None);
    /// ```
    pub fn companion<T: Any>(&self) -> Option<&T> {
        let BytesRepr::Shared(shared) = &self.0 else {
            return None;
        };
        let companion: &dyn Any = &**shared.header.header.as_ref()?;
        companion.downcast_ref()
    }

    /// Whether they are stored in place, and so not shared.
    #[inline]
    pub(crate) fn is_in_place(&self) -> bool {
        matches!(self.0, BytesRepr::Short(_))
    }

    /// Whether a companion is dropped with the last clone.
    pub(crate) fn has_companion(&self) -> bool {
        matches!(&self.0, BytesRepr::Shared(shared) if shared.header.header.is_some())
    }

    /// How many bytes they occupy on the heap.
    pub(crate) fn heap(&self) -> usize {
        match &self.0 {
            BytesRepr::Short(..) => 0,
            // The counter, the companion, the length, the bytes.
            BytesRepr::Shared(shared) => {
                2 * size_of::<usize>() + size_of::<Companion>() + shared.slice.len()
            }
        }
    }
}

impl ops::Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            BytesRepr::Short(short) => short.bytes(),
            BytesRepr::Shared(shared) => &shared.slice,
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
