//! What an attribute makes of a function: one without `async`, which hands the body to `weald::__macros`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::Parser;
use syn::{Error, ReturnType};

use crate::function::Function;
use crate::options::{self, On};

/// Which attribute it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Main,
    Test,
}

/// The function in its new form, or an error of the compiler with a sentence at the place that the user wrote.
pub(crate) fn expand(kind: Kind, options: TokenStream, function: TokenStream) -> TokenStream {
    let parsed: Function = match syn::parse2(function.clone()) {
        Ok(parsed) => parsed,
        // What the user wrote stays, so that nothing else is missing.
        Err(error) => return [error.into_compile_error(), function].into_iter().collect(),
    };
    let read = match kind {
        Kind::Main => options::of_main,
        Kind::Test => options::of_test,
    };
    let on = read.parse2(options);
    match on.and_then(|on| rewritten(kind, &on, &parsed)) {
        Ok(tokens) => tokens,
        Err(error) => {
            let Function {
                visibility, name, ..
            } = &parsed;
            let error = error.into_compile_error();
            quote!(#error #visibility fn #name() {})
        }
    }
}

fn rewritten(kind: Kind, on: &On, function: &Function) -> syn::Result<TokenStream> {
    let Function {
        attributes,
        visibility,
        name,
        output,
        body,
    } = function;
    let repeated = attributes.iter().find(|a| a.path().is_ident("test"));
    if let Some(repeated) = repeated.filter(|_| kind == Kind::Test) {
        let sentence = "`#[weald::test]` makes a test of the function by itself; remove `#[test]`";
        return Err(Error::new_spanned(repeated, sentence));
    }
    let test = (kind == Kind::Test).then(|| quote!(#[::core::prelude::v1::test]));
    // The type that the function returns, as a place for the `?` of the body.
    let of = match output {
        ReturnType::Default => quote!(()),
        ReturnType::Type(_, of) => quote!(#of),
    };
    let run = match (kind, on) {
        (Kind::Main, On::Default) => quote!(::weald::block_on(__weald_body())),
        (Kind::Test, On::Default) => quote!(::weald::__macros::with_workers(1, __weald_body())),
        (_, On::Workers(count)) => {
            let count = usize::try_from(*count).unwrap_or(usize::MAX);
            quote!(::weald::__macros::with_workers(#count, __weald_body()))
        }
        (_, On::Seed(seed)) => quote!(::weald::Runtime::test(#seed).block_on(__weald_body())),
        (_, On::Seeds(count)) => quote!(::weald::__macros::with_seeds(#count, __weald_body)),
    };
    // With seeds each run is judged by itself, and nothing is left to return.
    let output = match on {
        On::Seeds(_) => quote!(),
        _ => quote!(#output),
    };
    Ok(quote! {
        #(#attributes)*
        #test
        #visibility fn #name() #output {
            async fn __weald_body() -> #of #body
            #run
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(kind: Kind, options: &str, function: &str) -> String {
        let parse = |text: &str| text.parse::<TokenStream>().expect("tokens");
        expand(kind, parse(options), parse(function)).to_string()
    }

    #[test]
    fn the_body_is_run_by_what_the_option_names() {
        for (kind, options, run) in [
            (Kind::Main, "", ":: weald :: block_on (__weald_body ())"),
            (
                Kind::Main,
                "workers = 2",
                "with_workers (2usize , __weald_body ())",
            ),
            (Kind::Test, "", "with_workers (1 , __weald_body ())"),
            (
                Kind::Test,
                "workers = 3,",
                "with_workers (3usize , __weald_body ())",
            ),
            (
                Kind::Test,
                "seed = 7",
                "test (7u64) . block_on (__weald_body ())",
            ),
            (
                Kind::Test,
                "seeds = 300",
                "with_seeds (300u64 , __weald_body)",
            ),
        ] {
            let text = expanded(kind, options, "pub async fn f() -> T { 1 }");
            assert!(text.contains(run), "{options}: {text}");
            assert!(
                text.contains("async fn __weald_body () -> T { 1 }"),
                "{text}"
            );
            assert_eq!(
                text.contains("prelude :: v1 :: test"),
                kind == Kind::Test,
                "{text}"
            );
        }
    }

    #[test]
    fn what_cannot_be_run_is_a_sentence() {
        let f = "async fn f() {}";
        for (kind, options, function, sentence) in [
            (Kind::Main, "", "fn f() {}", "this function is not `async`"),
            (Kind::Main, "", "struct F;", "belongs on an `async fn`"),
            (
                Kind::Main,
                "",
                "async fn f(a: u8) {}",
                "leave the parameters out",
            ),
            (Kind::Main, "", "async fn f<T>() {}", "no type parameters"),
            (Kind::Main, "seed = 1", f, "a seed is for `#[weald::test]`"),
            (
                Kind::Main,
                "threads = 1",
                f,
                "there is no option `threads`; there is `workers = 4`",
            ),
            (Kind::Main, "workers = 0", f, "1 to 1024 workers, not 0"),
            (Kind::Test, "threads = 1", f, "`seed = 7` and `seeds = 300`"),
            (Kind::Test, "seeds = 0", f, "tests nothing"),
            (
                Kind::Test,
                "seed = 1, workers = 2",
                f,
                "one option is enough",
            ),
            (
                Kind::Test,
                "seed = 99999999999999999999",
                f,
                "a whole number",
            ),
            (
                Kind::Test,
                "",
                "#[test] async fn f() {}",
                "remove `#[test]`",
            ),
        ] {
            let text = expanded(kind, options, function);
            assert!(
                text.contains("compile_error") && text.contains(sentence),
                "{text}"
            );
        }
    }
}
