//! Erasable bytes in memory: whoever has the last clone, and wherever it is dropped, they are overwritten then. So the
//! type sees to it, and no place that drops them has to.

use std::ops::Deref;
use std::sync::Arc;

use zeroize::Zeroize;

/// Erasable bytes. A clone is the same bytes. They are overwritten in memory when the last clone is dropped.
///
/// ```
/// use weald::forest::ErasableBytes;
///
/// let name = ErasableBytes::from(&b"Ada"[..]);
/// assert_eq!(name.len(), 3);
/// assert_eq!(&name.clone()[..], b"Ada");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ErasableBytes(Arc<Wiped>);

#[derive(PartialEq, Eq)]
struct Wiped(Box<[u8]>);

impl Drop for Wiped {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl From<&[u8]> for ErasableBytes {
    fn from(bytes: &[u8]) -> Self {
        Self(Arc::new(Wiped(bytes.into())))
    }
}

impl From<Vec<u8>> for ErasableBytes {
    /// The vector is copied and overwritten, because a vector that is made a slice may move, and leave its bytes
    /// behind.
    fn from(mut bytes: Vec<u8>) -> Self {
        let copied = Self::from(&bytes[..]);
        bytes.zeroize();
        copied
    }
}

impl Deref for ErasableBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0.0
    }
}

impl AsRef<[u8]> for ErasableBytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl std::fmt::Debug for ErasableBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.0.fmt(f)
    }
}
