//! The attributes of a node: names and their bytes, sorted by name.
//!
//! - They are sorted, and no name occurs twice.
//! - Attributes that fit into 23 bytes are packed in the node itself; all others are one shared list. A put
//!   costs the length of that list, so attributes are meant to be few. Data in large numbers belongs in
//!   children.

use std::fmt;
use std::sync::Arc;

use bytemuck::TransparentWrapper;
use weald_memory::Item;

use crate::bytes::Bytes;
use crate::inline::{Draft, Inline};

/// Attributes, sorted by name; a clone costs at most a counter.
///
/// ```
/// use weald::tree::Attributes;
///
/// let attributes = Attributes::new().with("name", "Ada").with("born", "1815");
/// assert_eq!(attributes.get("name"), Some(&b"Ada"[..]));
/// assert_eq!(attributes.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["born", "name"]);
/// ```
#[derive(TransparentWrapper)]
#[repr(transparent)]
pub struct Attributes(AttributeItem);

/// Attributes as they are in a block. Those that are packed are, for each attribute: the length of the name, the length
/// of the value, the name, the value.
pub(crate) type AttributeItem = Item<Inline, List>;

/// Attributes that are not packed.
pub(crate) type List = Arc<[(Bytes, Bytes)]>;

/// At most so many attributes are put one after the other. More are never packed: each takes three bytes at least.
const FEW: usize = 8;

impl Attributes {
    /// No attributes.
    #[inline]
    pub const fn new() -> Self {
        Self(Item::Plain(Inline::EMPTY))
    }

    /// These attributes and one more, which replaces an attribute of the same name.
    #[must_use]
    #[inline(always)]
    pub fn with(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.put(name, value.as_ref());
        self
    }

    /// These attributes and those in `more`, which have names of their own, no name twice. As fast for many as a sort
    /// of their names, where one [`with`](Self::with) for each would copy the list each time.
    #[must_use]
    pub(crate) fn with_all<'a>(
        self,
        more: impl ExactSizeIterator<Item = (&'a str, &'a [u8])>,
    ) -> Self {
        if more.len() <= FEW {
            return more.fold(self, |all, (name, value)| all.with(name, value));
        }
        let mut list = self.to_list();
        list.extend(more.map(|(name, value)| (Bytes::from(name), Bytes::new(value))));
        list.sort_unstable_by(|one, other| Ord::cmp(&*one.0, &*other.0));
        Self(Item::Counted(list.into()))
    }

    /// Like [`with`](Self::with), with bytes that are shared with other clones or have a companion.
    #[must_use]
    pub fn with_bytes(mut self, name: &str, value: &Bytes) -> Self {
        self.put_bytes(name, value);
        self
    }

    /// The bytes under a name.
    #[inline]
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        match &self.0 {
            Item::Plain(_) => {
                let mut all = self.raw();
                all.find(|(known, _)| *known == name.as_bytes())
                    .map(|(_, value)| value)
            }
            Item::Counted(list) => {
                let at = find(list, name).ok()?;
                Some(&list[at].1)
            }
        }
    }

    /// The bytes under a name, to keep: long ones are shared and not copied.
    pub fn get_bytes(&self, name: &str) -> Option<Bytes> {
        match &self.0 {
            Item::Plain(_) => self.get(name).map(Bytes::new),
            Item::Counted(list) => {
                let at = find(list, name).ok()?;
                Some(list[at].1.clone())
            }
        }
    }

    /// All attributes, sorted by the bytes of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.raw()
            .map(|(name, value)| (str::from_utf8(name).expect("names came as text"), value))
    }

    /// All attributes, sorted, with the bytes of their names, which are not checked again to be text.
    ///
    /// ```
    /// let node = weald::tree::Attributes::new().with("b", "2").with("a", "1");
    /// assert!(node.iter_bytes().eq([(&b"a"[..], &b"1"[..]), (b"b", b"2")]));
    /// ```
    pub fn iter_bytes(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.raw()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        match &self.0 {
            Item::Plain(_) => self.raw().count(),
            Item::Counted(list) => list.len(),
        }
    }

    /// Something of the first and the last attribute of a list, so that its memory is read.
    #[inline]
    pub(crate) fn touched(&self) -> usize {
        let Item::Counted(list) = &self.0 else {
            return 0;
        };
        let ends = [list.first(), list.last()];
        ends.map(|end| end.map_or(0, |(name, _)| name.len()))
            .iter()
            .sum()
    }

    /// How many bytes of values are not stored in place.
    pub(crate) fn long_bytes(&self) -> usize {
        match &self.0 {
            Item::Plain(_) => 0,
            Item::Counted(list) => list.iter().map(|(_, value)| value.heap()).sum(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        matches!(&self.0, Item::Plain(packed) if packed.is_empty())
    }

    /// Sets the value under a name, whether or not there is one already.
    #[inline(always)]
    pub(crate) fn put(&mut self, name: &str, value: &[u8]) {
        let mut packed = Draft::EMPTY;
        let is_all = self.is_empty() || self.is_only(name);
        if is_all && packed.push_attribute(name.as_bytes(), value).is_some() {
            self.0 = Item::Plain(packed.finish());
        } else {
            self.put_among(name, value);
        }
    }

    /// Like [`put`](Self::put), for bytes that may be shared, and then stay shared.
    #[inline]
    pub(crate) fn put_bytes(&mut self, name: &str, value: &Bytes) {
        if value.is_in_place() {
            self.put(name, value);
        } else {
            self.put_listed(name, value.clone());
        }
    }

    /// Whether there is one attribute, which has this name and is packed.
    #[inline]
    fn is_only(&self, name: &str) -> bool {
        let Item::Plain(packed) = &self.0 else {
            return false;
        };
        let mut all = Raw::Packed(packed.bytes());
        let first = all.next();
        first.is_some_and(|(known, _)| known == name.as_bytes()) && matches!(all, Raw::Packed([]))
    }

    fn put_among(&mut self, name: &str, value: &[u8]) {
        match self.packed_with(name.as_bytes(), Some(value)) {
            Some(form) => self.0 = form,
            None => self.put_listed(name, Bytes::new(value)),
        }
    }

    fn put_listed(&mut self, name: &str, value: Bytes) {
        let mut list = self.to_list();
        let new = (Bytes::from(name), value);
        match find(&list, name) {
            Ok(at) => list[at] = new,
            Err(at) => list.insert(at, new),
        }
        self.0 = Item::Counted(list.into());
    }

    /// Removes a name; returns whether it was there.
    pub(crate) fn delete(&mut self, name: &str) -> bool {
        if self.get(name).is_none() {
            return false;
        }
        self.0 = self.packed_with(name.as_bytes(), None).unwrap_or_else(|| {
            let mut list = self.to_list();
            list.retain(|(known, _)| **known != *name.as_bytes());
            Item::Counted(list.into())
        });
        true
    }

    /// The address of the shared list, if there is one, and its size in bytes with everything it holds.
    pub(crate) fn shared(&self) -> Option<(usize, usize)> {
        let Item::Counted(list) = &self.0 else {
            return None;
        };
        let held = list.iter().map(|(name, value)| name.heap() + value.heap());
        let bytes = size_of_val(&**list) + held.sum::<usize>();
        Some((Arc::as_ptr(list).addr(), bytes))
    }

    #[inline]
    fn raw(&self) -> Raw<'_> {
        match &self.0 {
            Item::Plain(packed) => Raw::Packed(packed.bytes()),
            Item::Counted(list) => Raw::Listed(list.iter()),
        }
    }

    /// The packed form with `name` set to `value`, or without `name`, if it fits. Values with companions are
    /// never packed.
    fn packed_with(&self, name: &[u8], value: Option<&[u8]>) -> Option<AttributeItem> {
        if let Item::Counted(list) = &self.0
            && list.iter().any(|(_, value)| value.has_companion())
        {
            return None;
        }
        let mut packed = Draft::EMPTY;
        let mut new = value.map(|value| (name, value));
        for (known, old) in self.raw() {
            if known >= name
                && let Some((name, value)) = new.take()
            {
                packed.push_attribute(name, value)?;
            }
            if known != name {
                packed.push_attribute(known, old)?;
            }
        }
        if let Some((name, value)) = new {
            packed.push_attribute(name, value)?;
        }
        Some(Item::Plain(packed.finish()))
    }

    fn to_list(&self) -> Vec<(Bytes, Bytes)> {
        match &self.0 {
            Item::Counted(list) => list.to_vec(),
            Item::Plain(_) => self
                .raw()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        }
    }
}

fn find(list: &[(Bytes, Bytes)], name: &str) -> Result<usize, usize> {
    list.binary_search_by(|(known, _)| (**known).cmp(name.as_bytes()))
}

impl Draft {
    /// Appends an attribute; `None` if there is no room.
    #[inline(always)]
    fn push_attribute(&mut self, name: &[u8], value: &[u8]) -> Option<()> {
        // Checked for all parts together, so that a refused attribute leaves no part of it.
        if !self.has_room(2 + name.len() + value.len()) {
            return None;
        }
        let lengths = [
            u8::try_from(name.len()).ok()?,
            u8::try_from(value.len()).ok()?,
        ];
        self.push(&lengths)?;
        self.push(name)?;
        self.push(value)
    }
}

enum Raw<'a> {
    Packed(&'a [u8]),
    Listed(std::slice::Iter<'a, (Bytes, Bytes)>),
}

impl<'a> Iterator for Raw<'a> {
    type Item = (&'a [u8], &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Raw::Packed(rest) => {
                let (lengths, after) = rest.split_at_checked(2)?;
                let (name, after) = after.split_at(usize::from(lengths[0]));
                let (value, after) = after.split_at(usize::from(lengths[1]));
                *rest = after;
                Some((name, value))
            }
            Raw::Listed(list) => list.next().map(|(name, value)| (&**name, &**value)),
        }
    }
}

impl Clone for Attributes {
    #[inline(always)]
    fn clone(&self) -> Self {
        match &self.0 {
            Item::Plain(packed) => Self(Item::Plain(*packed)),
            Item::Counted(list) => Self(Item::Counted(Arc::clone(list))),
        }
    }
}

impl Default for Attributes {
    fn default() -> Self {
        Self::new()
    }
}

impl PartialEq for Attributes {
    fn eq(&self, other: &Self) -> bool {
        if let (Item::Counted(list), Item::Counted(other)) = (&self.0, &other.0)
            && Arc::ptr_eq(list, other)
        {
            // Two versions share the attributes of most nodes in a leaf that differs.
            return true;
        }
        self.raw().eq(other.raw())
    }
}

impl Eq for Attributes {}

impl fmt::Debug for Attributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self
            .iter()
            .map(|(name, value)| (name, value.escape_ascii().to_string()));
        f.debug_map().entries(shown).finish()
    }
}

impl<'a> FromIterator<(&'a str, &'a [u8])> for Attributes {
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a [u8])>>(pairs: I) -> Self {
        let mut sorted: Vec<_> = pairs.into_iter().collect();
        if !sorted.is_sorted_by(|(one, _), (next, _)| one < next) {
            // Of several values for a name the last one counts.
            sorted.reverse();
            sorted.sort_by_key(|(name, _)| *name);
            sorted.dedup_by_key(|(name, _)| *name);
        }
        let mut packed = Draft::EMPTY;
        let fits = sorted
            .iter()
            .all(|(name, value)| packed.push_attribute(name.as_bytes(), value).is_some());
        if fits {
            return Self(Item::Plain(packed.finish()));
        }
        let list = sorted
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()));
        Self(Item::Counted(list.collect()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// The greatest number of steps. Each builds all attributes anew, which Miri does some thousand times more slowly.
    const STEPS: usize = if cfg!(miri) { 8 } else { 40 };

    proptest! {
        #[test]
        fn they_are_a_sorted_map(
            steps in prop::collection::vec(("[a-d]{0,9}", prop::option::of(prop::collection::vec(any::<u8>(), 0..30))), 0..STEPS)
        ) {
            let (mut attributes, mut model) = (Attributes::new(), BTreeMap::new());
            for (name, value) in &steps {
                match value {
                    Some(value) => {
                        attributes.put(name, value);
                        model.insert(name.as_str(), value.as_slice());
                    }
                    None => prop_assert_eq!(attributes.delete(name), model.remove(name.as_str()).is_some()),
                }
                prop_assert!(attributes.iter().eq(model.iter().map(|(name, value)| (*name, *value))));
                prop_assert_eq!(attributes.get(name), model.get(name.as_str()).copied());
                prop_assert_eq!(attributes.is_empty(), model.is_empty());
                let again: Attributes = model.iter().map(|(name, value)| (*name, *value)).collect();
                prop_assert_eq!(&again, &attributes);
            }
            let pairs = || steps.iter().filter_map(|(name, value)| Some((&name[..], value.as_deref()?)));
            let (of_all, model): (Attributes, BTreeMap<_, _>) = (pairs().collect(), pairs().collect());
            prop_assert!(of_all.iter().eq(model), "in any order; the last value of a name counts");
        }
    }

    #[test]
    fn a_companion_stays_until_its_value_goes() {
        let counted = std::sync::Arc::new(());
        let is_held = || std::sync::Arc::strong_count(&counted) > 1;
        let value = Bytes::with_companion(b"v", std::sync::Arc::clone(&counted));
        let mut attributes = Attributes::new().with("a", "1");
        attributes.put_bytes("b", &value);
        drop(value);
        attributes.put("c", b"3");
        attributes.put("a", b"2");
        attributes.delete("c");
        let clone = attributes.clone();
        attributes.put("b", b"plain");
        assert!(is_held() && clone.get("b") == Some(b"v"));
        drop(clone);
        assert!(!is_held());
        assert_eq!(
            attributes,
            Attributes::new().with("a", "2").with("b", "plain")
        );
    }

    #[test]
    fn one_short_attribute_takes_no_memory_of_its_own() {
        let attributes = Attributes::new().with("k", 7_u64.to_le_bytes());
        assert!(matches!(&attributes.0, Item::Plain(packed) if packed.bytes().len() == 11));
        assert_eq!(size_of::<Attributes>(), 24);
    }
}
