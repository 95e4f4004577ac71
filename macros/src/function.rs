//! The function below an attribute, taken apart as far as the attributes need it.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use syn::parse::{Parse, ParseStream};
use syn::{Attribute, Error, ReturnType, Token, Visibility, parenthesized};

/// An `async fn` without parameters.
pub(crate) struct Function {
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) visibility: Visibility,
    pub(crate) name: Ident,
    pub(crate) output: ReturnType,
    /// The braces and what is in them.
    pub(crate) body: TokenTree,
}

impl Parse for Function {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let attributes = input.call(Attribute::parse_outer)?;
        let visibility = input.parse()?;
        let asyncness: Option<Token![async]> = input.parse()?;
        let function: Token![fn] = input
            .parse()
            .map_err(|error| Error::new(error.span(), "this attribute belongs on an `async fn`"))?;
        if asyncness.is_none() {
            let sentence =
                "this function is not `async`; write `async fn`, or leave the attribute out";
            return Err(Error::new(function.span, sentence));
        }
        let name = input.parse()?;
        if input.peek(Token![<]) {
            return Err(
                input.error("a function that is run by nobody's call has no type parameters")
            );
        }
        let parameters;
        parenthesized!(parameters in input);
        if !parameters.is_empty() {
            let sentence = "nobody calls this function with arguments; leave the parameters out";
            return Err(Error::new(first_span(&parameters.parse()?), sentence));
        }
        let output = input.parse()?;
        let body = input.parse()?;
        Ok(Self {
            attributes,
            visibility,
            name,
            output,
            body,
        })
    }
}

/// Where some tokens begin.
fn first_span(tokens: &TokenStream) -> Span {
    let first = tokens.clone().into_iter().next();
    first.map_or_else(Span::call_site, |token| token.span())
}
