//! The first operation of an edit, which is carried out when somebody asks for the working version. See `edit`.

use crate::insert_position::InsertPosition;
use crate::operation::Operation;
use crate::tree::Tree;

/// The only operation on the list, which was checked and not yet carried out.
pub(crate) struct Deferred {
    /// The insert position of the node, if it adds one.
    pub(crate) to: Option<InsertPosition>,
}

impl Deferred {
    /// Carries out the only operation, in the version in which it was checked.
    pub(crate) fn carry_out(&self, operations: &[Operation], tree: &mut Tree) {
        match (operations, &self.to) {
            (
                [
                    Operation::Add {
                        node, attributes, ..
                    },
                ],
                Some(to),
            ) => {
                tree.add(*node, to, attributes.clone());
            }
            ([Operation::PutAttribute { node, name, value }], None) => {
                let name = str::from_utf8(name).expect("it came as text");
                tree.put_there(*node, name, value);
            }
            _ => unreachable!("at most one operation is deferred"),
        }
    }
}
