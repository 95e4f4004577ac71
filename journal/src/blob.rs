//! Erasable bytes in the journal: sealed, in parts, each part a frame; and what erases them.
//!
//! Each blob has a key of its own, which is in the key file only (`keys.rs`). Without it nobody can read the bytes, so
//! the bytes may stay where they are, and in every copy that a medium makes of a segment.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{ChaCha20Poly1305, Key, Nonce};
use weald_forest::journal::{Blob, BlobId, Erasure};
use weald_tree::NodeId;
use zeroize::Zeroizing;

/// What a part has besides its sealed bytes: id, number of the part, how many parts follow.
const HEAD: usize = 16 + 4 + 4;

/// What an erasure has besides a name and ids: the tree, the node, the length of the name.
const ERASURE: usize = 8 + 8 + 4;

/// What sealing adds.
const TAG: usize = 16;

/// What opens a blob. It is at one place in memory, which is overwritten when the last holder goes: a holder that is
/// moved or cloned leaves no copy.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct BlobKey(Arc<Zeroizing<[u8; 32]>>);

impl BlobKey {
    /// The key that this writes.
    pub(crate) fn made<E>(write: impl FnOnce(&mut [u8; 32]) -> Result<(), E>) -> Result<Self, E> {
        let mut key = Arc::new(Zeroizing::new([0; 32]));
        let place = Arc::get_mut(&mut key).expect("nobody else has it yet");
        write(place)?;
        Ok(Self(key))
    }

    pub(crate) fn of(bytes: &[u8; 32]) -> Self {
        let made = Self::made(|place| {
            place.copy_from_slice(bytes);
            Ok::<_, std::convert::Infallible>(())
        });
        match made {
            Ok(key) => key,
            Err(never) => match never {},
        }
    }

    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl std::fmt::Debug for BlobKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BlobKey(..)")
    }
}

/// A blob on its way into a segment, with its key.
#[derive(Clone)]
pub(crate) struct Sealing {
    pub(crate) blob: Arc<Blob>,
    pub(crate) key: BlobKey,
    /// How many bytes of it are in a part.
    part: usize,
    /// The bodies of the first frames, as far as its author has sealed it. Without them a frame is sealed when it is
    /// written.
    sealed: Arc<Vec<Vec<u8>>>,
}

impl std::fmt::Debug for Sealing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Sealing {{ id: {:?}, .. }}", self.blob.id)
    }
}

impl Sealing {
    /// With a new key. No frame has a body of more than `most` bytes.
    pub(crate) fn new(blob: &Blob, most: usize) -> io::Result<Self> {
        let key = BlobKey::made(|key| {
            let flags = rustix::rand::GetRandomFlags::empty();
            rustix::rand::getrandom(&mut key[..], flags).map(drop)
        })?;
        Ok(Self {
            blob: Arc::new(blob.clone()),
            key,
            part: most - HEAD - TAG,
            sealed: Arc::default(),
        })
    }

    pub(crate) fn parts(&self) -> usize {
        self.blob.bytes.len().div_ceil(self.part).max(1)
    }

    fn range(&self, part: usize) -> std::ops::Range<usize> {
        let end = self.blob.bytes.len();
        (part * self.part).min(end)..((part + 1) * self.part).min(end)
    }

    /// The length of the frame's body.
    pub(crate) fn body_len(&self, part: usize) -> usize {
        HEAD + self.range(part).len() + TAG
    }

    /// Seals the next part; `false`, if all are sealed. Nobody else has it yet.
    pub(crate) fn seal_next(&mut self) -> bool {
        let next = self.sealed.len();
        if next == self.parts() {
            return false;
        }
        let body = self.seal(next);
        if let Some(sealed) = Arc::get_mut(&mut self.sealed) {
            sealed.push(body);
        }
        true
    }

    /// Whether all of it is sealed.
    #[cfg(test)]
    pub(crate) fn is_sealed(&self) -> bool {
        self.sealed.len() == self.parts()
    }

    /// The frame's body.
    pub(crate) fn body(&self, part: usize) -> Cow<'_, [u8]> {
        match self.sealed.get(part) {
            Some(sealed) => Cow::Borrowed(sealed),
            None => Cow::Owned(self.seal(part)),
        }
    }

    fn seal(&self, part: usize) -> Vec<u8> {
        let number = |number: usize| u32::try_from(number).expect("a blob has fewer parts");
        let left = number(self.parts() - 1 - part);
        let mut body = Vec::with_capacity(self.body_len(part));
        body.extend_from_slice(&self.blob.id.0.to_le_bytes());
        body.extend_from_slice(&number(part).to_le_bytes());
        body.extend_from_slice(&left.to_le_bytes());
        let sealed = {
            let msg = &self.blob.bytes[self.range(part)];
            let (cipher, nonce) = cipher(&self.key, number(part));
            cipher.encrypt(&nonce, Payload { msg, aad: &body })
        };
        body.extend_from_slice(&sealed.expect("a part is shorter than the cipher allows"));
        body
    }
}

/// No two parts of a blob have the same nonce, and no two blobs the same key.
fn cipher(key: &BlobKey, part: u32) -> (ChaCha20Poly1305, Nonce) {
    let mut nonce = Nonce::default();
    nonce[..4].copy_from_slice(&part.to_le_bytes());
    (ChaCha20Poly1305::new(<&Key>::from(key.bytes())), nonce)
}

/// The blob whose first part is in a frame.
pub(crate) fn begun(body: &[u8]) -> Option<BlobId> {
    let (id, rest) = body.split_first_chunk()?;
    let is_first = *rest.first_chunk::<4>()? == [0; 4];
    is_first.then(|| BlobId(u128::from_le_bytes(*id)))
}

/// Opens a part of this blob; returns its bytes and how many parts follow.
pub(crate) fn open(
    (id, key): (BlobId, &BlobKey),
    part: u32,
    body: &[u8],
) -> Option<(Vec<u8>, u32)> {
    let (aad, msg) = body.split_at_checked(HEAD)?;
    let is_it = aad[..16] == id.0.to_le_bytes() && aad[16..20] == part.to_le_bytes();
    let left = u32::from_le_bytes(*aad[20..].first_chunk()?);
    let (cipher, nonce) = cipher(key, part);
    let opened = cipher.decrypt(&nonce, Payload { msg, aad }).ok()?;
    is_it.then_some((opened, left))
}

/// The longest name of an attribute whose bytes can be erased: beside it, an id fits into a body of `most` bytes.
pub(crate) const fn longest_name(most: usize) -> usize {
    most - ERASURE - size_of::<u128>()
}

/// The bodies of the frames that erase, each of at most `most` bytes. Each erases the bytes of the attribute, and some
/// of the other blobs. The name is not longer than [`longest_name`].
pub(crate) fn write_erasure(erasure: &Erasure, most: usize) -> Vec<Vec<u8>> {
    let (tree, node, name) = &erasure.place;
    let len = u32::try_from(name.len()).expect("a name is short");
    let mut head = Vec::new();
    head.extend_from_slice(&tree.to_le_bytes());
    head.extend_from_slice(&node.get().to_le_bytes());
    head.extend_from_slice(&len.to_le_bytes());
    head.extend_from_slice(name.as_bytes());
    let each = (most.saturating_sub(head.len()) / size_of::<u128>()).max(1);
    let body = |ids: &[BlobId]| {
        let ids = ids.iter().flat_map(|id| id.0.to_le_bytes());
        head.iter().copied().chain(ids).collect()
    };
    match erasure.ids.is_empty() {
        true => vec![body(&[])],
        false => erasure.ids.chunks(each).map(body).collect(),
    }
}

pub(crate) fn read_erasure(body: &[u8]) -> Option<Erasure> {
    let (tree, body) = body.split_first_chunk()?;
    let (node, body) = body.split_first_chunk()?;
    let (len, body) = body.split_first_chunk()?;
    let len = usize::try_from(u32::from_le_bytes(*len)).ok()?;
    let (name, body) = body.split_at_checked(len)?;
    let (ids, rest) = body.as_chunks();
    let node = NodeId::new(u64::from_le_bytes(*node))?;
    let name = str::from_utf8(name).ok()?;
    let ids = ids.iter().map(|id| BlobId(u128::from_le_bytes(*id)));
    rest.is_empty().then(|| Erasure {
        place: (u64::from_le_bytes(*tree), node, name.into()),
        ids: ids.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_blob_is_opened_with_its_key_only_and_no_bit_of_it_may_change() {
        let blob = Blob {
            id: BlobId(7 << 90),
            tree: 1,
            node: NodeId::new(5).unwrap(),
            name: "secret".into(),
            bytes: vec![42; 100].into(),
        };
        let sealing = Sealing::new(&blob, HEAD + TAG + 60).unwrap();
        assert_eq!(sealing.parts(), 2);
        let mut body = sealing.body(1).into_owned();
        assert_eq!(body.len(), sealing.body_len(1));
        let open = |key, part, body: &[u8]| open((blob.id, key), part, body);
        assert_eq!(open(&sealing.key, 1, &body), Some((vec![42; 40], 0)));
        assert_eq!(open(&sealing.key, 0, &body), None);
        let other = Sealing::new(&blob, HEAD + TAG + 60).unwrap();
        assert_eq!(open(&other.key, 1, &body), None);
        for at in 0..body.len() {
            body[at] ^= 1;
            assert_eq!(open(&sealing.key, 1, &body), None, "byte {at}");
            body[at] ^= 1;
        }
    }

    #[test]
    fn an_erasure_is_read_as_it_was_written() {
        let erasure = Erasure {
            place: (3, NodeId::new(5).unwrap(), "name".into()),
            ids: vec![BlobId(1), BlobId(2 << 80)],
        };
        let bodies = write_erasure(&erasure, 1000);
        let [body] = &bodies[..] else {
            panic!("one frame is enough")
        };
        assert_eq!(read_erasure(&body[..body.len() - 1]), None);
        assert_eq!(read_erasure(body), Some(erasure.clone()));
        // In two frames, each with the attribute.
        let bodies = write_erasure(&erasure, 50);
        let read: Vec<_> = bodies
            .iter()
            .map(|body| read_erasure(body).unwrap())
            .collect();
        assert!(read.iter().all(|read| read.place == erasure.place));
        let ids: Vec<_> = read.into_iter().map(|read| read.ids).collect();
        assert_eq!(ids, [[erasure.ids[0]], [erasure.ids[1]]]);
    }
}
