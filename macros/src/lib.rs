//! `#[weald::main]` and `#[weald::test]`: an `async fn` that becomes a program, or a test.
//!
//! The attributes are documented where users find them, in the crate `weald`, which re-exports them. The code that they
//! make calls functions of `weald::__macros`, so that what it does is written and tested there.

// An attribute's options, and the function below it.
mod function;
mod options;

// What they become.
mod expand;

use proc_macro::TokenStream;

/// Runs an `async fn` as the whole program.
#[proc_macro_attribute]
pub fn main(options: TokenStream, function: TokenStream) -> TokenStream {
    expand::expand(expand::Kind::Main, options.into(), function.into()).into()
}

/// Runs an `async fn` as a test.
#[proc_macro_attribute]
pub fn test(options: TokenStream, function: TokenStream) -> TokenStream {
    expand::expand(expand::Kind::Test, options.into(), function.into()).into()
}
