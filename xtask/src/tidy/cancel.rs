//! Check: every public `async fn` of a library says what happens to its work when its future is dropped.
//!
//! - Its doc mentions it ("Cancel-safe", "dropped"), or refers to another item ("As" or "see" with a link, "The same").
//! - Or the head of the file, or the doc of a type in it, has a section `# Cancel safety`.
//! - The crates are those that a program links for their functions; tests and models do not count.

use syn::visit::{self, Visit};

use super::Finding;
use super::repository::{File, Repository};

const LIBRARIES: [&str; 8] = [
    "forest/src/",
    "http/src/",
    "journal/src/",
    "kernel/src/",
    "net/src/",
    "process/src/",
    "sync/src/",
    "weald/src/",
];
const SAID: [&str; 4] = ["ancel-safe", "ancel safety", "ropped", "ropping"];
const REFERENCES: [&str; 5] = ["As [`", "as [`", "ee [`", "Like [`", "The same"];

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let is_looked_at = |file: &&File| {
        let is_of_a_library = LIBRARIES.iter().any(|folder| file.path.starts_with(folder));
        is_of_a_library && !file.path.contains("/models/") && !file.path.contains("/tests")
    };
    let files = repository.our_rust().filter(is_looked_at);
    files.flat_map(findings).collect()
}

fn findings(file: &File) -> Vec<Finding> {
    let Ok(syntax) = file.syntax() else {
        return Vec::new();
    };
    let mut silent = Silent::default();
    silent.says_once |= doc(&syntax.attrs).contains("# Cancel safety");
    silent.visit_file(syntax);
    if silent.says_once {
        return Vec::new();
    }
    let sentence = |name| {
        format!(
            "The doc of `{name}` does not say what happens when its future is dropped; \
             write it in one sentence."
        )
    };
    let silent = silent.functions.into_iter();
    silent
        .map(|(line, name)| Finding::new(&file.path, line, sentence(name)))
        .collect()
}

/// The public asynchronous functions of a file whose docs are silent.
#[derive(Default)]
struct Silent {
    functions: Vec<(usize, String)>,
    /// Whether a type of the file says it for its methods.
    says_once: bool,
}

impl Silent {
    fn look(&mut self, attrs: &[syn::Attribute], vis: &syn::Visibility, sig: &syn::Signature) {
        let is_public = matches!(vis, syn::Visibility::Public(_));
        if !is_public || sig.asyncness.is_none() {
            return;
        }
        let doc = doc(attrs);
        let says = SAID.iter().chain(&REFERENCES);
        if !says.into_iter().any(|words| doc.contains(words)) {
            let line = sig.ident.span().start().line;
            self.functions.push((line, sig.ident.to_string()));
        }
    }
}

impl<'ast> Visit<'ast> for Silent {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.look(&function.attrs, &function.vis, &function.sig);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.look(&function.attrs, &function.vis, &function.sig);
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.says_once |= doc(&item.attrs).contains("# Cancel safety");
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        let is_test = module
            .attrs
            .iter()
            .any(|attribute| attribute.path().is_ident("cfg"));
        if !is_test {
            visit::visit_item_mod(self, module);
        }
    }
}

/// The documentation in attributes, one line for each.
fn doc(attrs: &[syn::Attribute]) -> String {
    let lines = attrs.iter().filter_map(|attribute| {
        let value = &attribute.meta.require_name_value().ok()?.value;
        let is_doc = attribute.path().is_ident("doc");
        let syn::Expr::Lit(syn::ExprLit {
            lit: syn::Lit::Str(text),
            ..
        }) = value
        else {
            return None;
        };
        is_doc.then(|| text.value())
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::super::made_up::MadeUp;
    use super::*;

    const PATH: &str = "kernel/src/a.rs";

    #[test]
    fn a_function_that_says_it_passes_and_so_does_one_that_refers_or_is_not_public() {
        for code in [
            "/// Waits. Cancel-safe.\npub async fn f() {}",
            "/// Waits.\n///\n/// If the future is dropped, nothing is lost.\npub async fn f() {}",
            "/// As [`g`].\npub async fn f() {}",
            "/// Waits.\npub(crate) async fn f() {}",
            "/// Waits.\npub fn f() {}",
            "/// A file.\n///\n/// # Cancel safety\n/// None.\npub struct F;\nimpl F { pub async fn f() {} }",
            "#[cfg(test)]\nmod tests { pub async fn f() {} }",
        ] {
            MadeUp::new(&[(PATH, &format!("//! A leaf.\n\n{code}\n"))]).assert_none(check);
        }
        let head = "//! A leaf.\n//!\n//! # Cancel safety\n//! All of it.\n\npub async fn f() {}\n";
        MadeUp::new(&[(PATH, head)]).assert_none(check);
        MadeUp::new(&[("lab/src/a.rs", "//! A leaf.\npub async fn f() {}\n")]).assert_none(check);
    }

    #[test]
    fn a_function_that_does_not_say_it_is_found() {
        for code in [
            "/// Waits.\npub async fn f() {}",
            "/// Waits.\nimpl A { pub async fn f() {} }",
            "mod b {\npub async fn f() {} }",
        ] {
            let made_up = MadeUp::new(&[(PATH, &format!("//! A leaf.\n\n{code}\n"))]);
            let found = made_up.found(check);
            assert_eq!(found.len(), 1, "{code}: {found:?}");
            assert!(found[0].starts_with(&format!("{PATH}:4 ")), "{found:?}");
        }
    }
}
