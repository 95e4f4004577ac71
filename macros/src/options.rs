//! The options in the brackets of an attribute: `workers = 2`, `seed = 7`, `seeds = 300`.

use proc_macro2::Span;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Error, Ident, LitInt, Token};

/// The most workers that a runtime may have.
const MAX_WORKERS: u64 = 1024;

/// What a test or a program runs on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum On {
    /// The runtime that is there without any option.
    Default,
    /// A runtime with this many workers.
    Workers(u64),
    /// The test runtime with this seed.
    Seed(u64),
    /// The test runtime, once with each seed below this one.
    Seeds(u64),
}

/// One option, as it is written.
struct Written {
    name: Ident,
    value: LitInt,
}

impl Parse for Written {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let name = input.parse()?;
        input.parse::<Token![=]>()?;
        let value = input.parse()?;
        Ok(Self { name, value })
    }
}

/// Reads the options of a program.
pub(crate) fn of_main(input: ParseStream<'_>) -> syn::Result<On> {
    one(input, |written| match written.name.to_string().as_str() {
        "workers" => workers(written),
        "seed" | "seeds" => {
            Err("a seed is for `#[weald::test]`; a program runs in real time".to_owned())
        }
        other => Err(format!(
            "there is no option `{other}`; there is `workers = 4`"
        )),
    })
}

/// Reads the options of a test.
pub(crate) fn of_test(input: ParseStream<'_>) -> syn::Result<On> {
    one(input, |written| match written.name.to_string().as_str() {
        "workers" => workers(written),
        "seed" => number(written).map(On::Seed),
        "seeds" => match number(written)? {
            0 => Err("a test with no seed tests nothing; write `seeds = 300`".to_owned()),
            seeds => Ok(On::Seeds(seeds)),
        },
        other => Err(format!(
            "there is no option `{other}`; there are `workers = 4`, `seed = 7` and `seeds = 300`"
        )),
    })
}

/// Reads at most one option; each of them chooses the runtime.
fn one(input: ParseStream<'_>, read: impl Fn(&Written) -> Result<On, String>) -> syn::Result<On> {
    let all = Punctuated::<Written, Token![,]>::parse_terminated(input)?;
    let mut chosen = On::Default;
    for written in &all {
        let on = read(written).map_err(|sentence| Error::new(span(written), sentence))?;
        if chosen != On::Default {
            let sentence =
                "one option is enough: a test with seeds has one worker and virtual time";
            return Err(Error::new(written.name.span(), sentence));
        }
        chosen = on;
    }
    Ok(chosen)
}

fn span(written: &Written) -> Span {
    written.name.span()
}

fn workers(written: &Written) -> Result<On, String> {
    match number(written)? {
        count @ 1..=MAX_WORKERS => Ok(On::Workers(count)),
        count => Err(format!(
            "a runtime needs 1 to {MAX_WORKERS} workers, not {count}"
        )),
    }
}

fn number(written: &Written) -> Result<u64, String> {
    let digits = written.value.base10_parse();
    digits.map_err(|_| format!("`{}` needs a whole number below 2^64", written.name))
}
