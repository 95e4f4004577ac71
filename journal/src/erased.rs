//! What records erase, as a table in which each blob is looked up: an opening may find a million blobs and a million
//! erasures, and must not compare each with each.

use std::collections::HashMap;

use weald_forest::journal::{BlobId, Erasure};

use crate::key_file::Attribute;
use crate::place::Place;

/// Where something was erased last.
#[derive(Default)]
pub(crate) struct Erased<'a> {
    attributes: HashMap<&'a Attribute, Place>,
    ids: HashMap<BlobId, Place>,
    any: Option<Place>,
}

impl<'a> Erased<'a> {
    pub(crate) fn by(erasures: &'a [(Place, Erasure)]) -> Self {
        let mut erased = Self::default();
        for (at, erasure) in erasures {
            let later = |last: &mut Place| *last = (*last).max(*at);
            later(erased.attributes.entry(&erasure.place).or_insert(*at));
            for id in &erasure.ids {
                later(erased.ids.entry(*id).or_insert(*at));
            }
            later(erased.any.get_or_insert(*at));
        }
        erased
    }

    /// Whether a blob, whose first part is at a place, was erased at that place or behind it: by its id, or with its
    /// attribute. If its attribute is not known, an erasure of any attribute counts.
    pub(crate) fn has(&self, (id, at): (BlobId, Place), attribute: Option<&Attribute>) -> bool {
        let with_it = match attribute {
            Some(attribute) => self.attributes.get(attribute).copied(),
            None => self.any,
        };
        let last = with_it.max(self.ids.get(&id).copied());
        last.is_some_and(|last| last >= at)
    }
}

#[cfg(test)]
mod tests {
    use weald_forest::journal::Position;
    use weald_tree::NodeId;

    use super::*;

    fn place(at: u128) -> Place {
        Place::of(Position(at))
    }

    fn attribute(tree: u64) -> Attribute {
        (tree, NodeId::new(1).unwrap(), "name".into())
    }

    #[test]
    fn the_last_erasure_of_an_id_or_of_its_attribute_counts() {
        let erasure = |at, tree, ids: &[u128]| {
            let ids = ids.iter().map(|id| BlobId(*id)).collect();
            let place_of = attribute(tree);
            (
                place(at),
                Erasure {
                    place: place_of,
                    ids,
                },
            )
        };
        let erasures = [
            erasure(40, 1, &[7]),
            erasure(20, 1, &[7, 8]),
            erasure(30, 2, &[]),
        ];
        let erased = Erased::by(&erasures);
        let has = |id, at, tree: Option<u64>| {
            let attribute = tree.map(attribute);
            erased.has((BlobId(id), place(at)), attribute.as_ref())
        };
        // By its attribute, up to the last place where that was erased.
        assert!(has(1, 40, Some(1)) && !has(1, 41, Some(1)));
        assert!(has(1, 30, Some(2)) && !has(1, 31, Some(2)));
        assert!(!has(1, 1, Some(3)));
        // By its id, whatever its attribute.
        assert!(has(7, 40, Some(3)) && !has(7, 41, Some(3)));
        assert!(has(8, 20, Some(3)) && !has(8, 21, Some(3)));
        // By any, if its attribute is not known.
        assert!(has(1, 40, None) && !has(1, 41, None));
        assert!(!Erased::default().has((BlobId(1), place(0)), None));
    }
}
