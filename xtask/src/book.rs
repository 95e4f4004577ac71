//! The routine `cargo xtask book`: builds the pages of the book with mdBook.
//!
//! Its listings are not tested here but by `cargo test`: they are the documentation tests of the crate in
//! `book/listings`.

use std::process::ExitCode;

use crate::checkout::{Checkout, run};
use crate::tools::MDBOOK;

/// Writes `target/book/index.html`.
pub fn book(checkout: &Checkout) -> ExitCode {
    let built = MDBOOK.command(checkout).and_then(|mut mdbook| {
        let place = checkout.target().join("book");
        run(mdbook.args(["build", "book", "--dest-dir"]).arg(&place))?;
        println!("{}", place.join("index.html").display());
        Ok(())
    });
    match built {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("{sentence}");
            ExitCode::FAILURE
        }
    }
}
