//! The size of a header, and where its fields are.

use std::mem;

use super::*;

#[test]
fn a_header_has_48_bytes_and_its_count_is_not_in_the_first_word() {
    assert_eq!(size_of::<Header>(), 48);
    assert!(
        mem::offset_of!(Header, refs) >= 8,
        "the first word of a free block is a link"
    );
}
