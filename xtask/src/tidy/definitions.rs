//! Check: what a page says is in a file is there.
//!
//! The form is `` `kernel/src/a.rs` (`f`, later `Type::method`) ``: each name in backticks inside
//! the brackets that follow a file has to be defined in the file. Paths inside them are left out.

use std::collections::BTreeSet;

use syn::visit::{self, Visit};

use super::Finding;
use super::repository::{File, Repository};

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    repository
        .markdown()
        .flat_map(|page| findings(repository, page))
        .collect()
}

fn findings(repository: &Repository, page: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (at, _) in page.text.match_indices(".rs`") {
        let (before, after) = page.text.split_at(at + ".rs".len());
        let path = before.rsplit('`').next().unwrap_or_default();
        let Some(file) = repository.file(path) else {
            continue; // That a path exists is checked in `paths.rs`.
        };
        let Some(inside) = after[1..].trim_start().strip_prefix('(') else {
            continue;
        };
        let defined = Defined::in_file(file);
        let line = before.matches('\n').count() + 1;
        let missing = names(inside).filter(|name| !defined.names.contains(*name));
        findings.extend(missing.map(|name| {
            let sentence =
                format!("`{name}` is not defined in `{path}`; name what is, or the file it is in.");
            Finding::new(&page.path, line, sentence)
        }));
    }
    findings
}

/// The names in backticks in `text`, up to the bracket that closes.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 1;
    let mut is_quoted = false;
    let end = text.find(|c| {
        is_quoted ^= c == '`';
        match c {
            '(' if !is_quoted => depth += 1,
            ')' if !is_quoted => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    let quoted = text[..end.unwrap_or_default()]
        .split('`')
        .skip(1)
        .step_by(2);
    let is_name = |c: char| c.is_alphanumeric() || "_:".contains(c);
    quoted.filter(move |name| name.chars().all(is_name))
}

/// Every name that a file defines; methods also behind the name of their type.
#[derive(Default)]
struct Defined {
    names: BTreeSet<String>,
    owner: Option<String>,
}

impl Defined {
    fn in_file(file: &File) -> Self {
        let mut defined = Self::default();
        if let Ok(syntax) = file.syntax() {
            defined.visit_file(syntax);
        }
        defined
    }

    fn inside(&mut self, owner: Option<String>, visit: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.owner, owner);
        visit(self);
        self.owner = outer;
    }
}

impl<'a> Visit<'a> for Defined {
    fn visit_item(&mut self, item: &'a syn::Item) {
        use syn::Item;
        let name = match item {
            Item::Const(item) => Some(&item.ident),
            Item::Static(item) => Some(&item.ident),
            Item::Macro(item) => item.ident.as_ref(),
            Item::Mod(item) => Some(&item.ident),
            item => super::modules::type_name(item).map(|(name, _)| name),
        };
        self.names.extend(name.map(ToString::to_string));
        visit::visit_item(self, item);
    }

    fn visit_item_impl(&mut self, item: &'a syn::ItemImpl) {
        let owner = match &*item.self_ty {
            syn::Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
            _ => None,
        };
        self.inside(owner, |defined| visit::visit_item_impl(defined, item));
    }

    fn visit_item_trait(&mut self, item: &'a syn::ItemTrait) {
        let owner = Some(item.ident.to_string());
        self.inside(owner, |defined| visit::visit_item_trait(defined, item));
    }

    fn visit_signature(&mut self, signature: &'a syn::Signature) {
        let name = signature.ident.to_string();
        self.names
            .extend(self.owner.as_ref().map(|owner| format!("{owner}::{name}")));
        self.names.insert(name);
    }
}

#[cfg(test)]
mod tests {
    use super::super::made_up::MadeUp;
    use super::*;

    const CODE: &str = "//! A leaf.\nfn f() { g() }\nstruct A;\nimpl<T> b::B<T> { fn m() {} }\ntrait C { fn n(); }\n";

    fn page(text: &str) -> MadeUp {
        MadeUp::new(&[
            ("kernel/src/a.rs", CODE),
            ("page.md", &format!("# Page\n\n{text}\n")),
        ])
    }

    #[test]
    fn names_that_the_file_defines_pass() {
        for text in [
            "`kernel/src/a.rs` (`f`, later `B::m` (or `C::n`), through `kernel/src/b.rs`) and `g`",
            "`kernel/src/a.rs`\n(`A`: `m`)",
            "`kernel/src/gone.rs` (`g`), `a.rs`, (`g`)",
            "`kernel/src/a.rs` (no name, `-> g`)",
        ] {
            page(text).assert_none(check);
        }
    }

    #[test]
    fn a_name_that_the_file_does_not_define_is_found() {
        for text in [
            "`kernel/src/a.rs` (`g`)",
            "`kernel/src/a.rs` (`f`, later\n`g`)",
            "`kernel/src/a.rs`\n(`A::m`)",
            "`kernel/src/b.rs` → `kernel/src/a.rs` (`B::n`)",
        ] {
            page(text).assert_one(check, "page.md:3", "is not defined in `kernel/src/a.rs`");
        }
    }
}
