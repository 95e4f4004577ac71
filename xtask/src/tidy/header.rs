//! Check: the header `weald.h` was made from the declarations that are in the sources now, and is as it was made.
//!
//! Its last line has a digest of all public items at the top of the files, functions without their bodies, of the
//! settings of cbindgen, and of the lines of the header above.

use quote::ToTokens;
use syn::{Item, Visibility};

use super::Finding;
use super::repository::{File, Repository};

/// The folder of the crate, and the header in it.
pub(crate) const CRATE: &str = "c/weald";
pub(crate) const HEADER: &str = "c/weald/include/weald.h";

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    if repository.file(&settings()).is_none() {
        // A made-up repository.
        return Vec::new();
    }
    let text = repository
        .file(HEADER)
        .map_or("", |header| header.text.as_str());
    let made = text.rfind(LAST_LINE).map_or(text, |end| &text[..end]);
    if text[made.len()..] == last_line(repository, made) {
        return Vec::new();
    }
    let sentence = "The header was made from other declarations than those that `c/weald/src` has now, or was changed \
                    by hand; run `cargo xtask header`.";
    vec![Finding::new(HEADER, text.lines().count().max(1), sentence)]
}

fn settings() -> String {
    format!("{CRATE}/cbindgen.toml")
}

/// How the last line begins, after the end of the line before.
const LAST_LINE: &str = "\n/* Made by `cargo xtask header`";

/// The last line of a header with these lines that was made from what the repository has now.
pub(super) fn last_line(repository: &Repository, header: &str) -> String {
    let digest = digest(repository, header);
    format!("{LAST_LINE}. The digest of its sources and of the lines above: {digest:016x}. */\n")
}

/// The digest of a header and of what it is made from (FNV-1a).
fn digest(repository: &Repository, header: &str) -> u64 {
    let source = format!("{CRATE}/src/");
    let files = repository.files.iter();
    let files = files.filter(|file| file.path.starts_with(&source) && file.is_rust());
    let settings = repository.file(&settings());
    let settings = settings.map(|file| file.text.clone());
    let sources = settings.into_iter().chain(files.flat_map(declarations));
    let parts = sources.chain([header.to_owned()]);
    parts.fold(0xcbf2_9ce4_8422_2325, |digest, part| {
        let mix = |digest: u64, byte: u8| (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        part.bytes().chain([0]).fold(digest, mix)
    })
}

/// The public items at the top of a file, as text.
fn declarations(file: &File) -> Vec<String> {
    let Ok(syntax) = file.syntax() else {
        return Vec::new();
    };
    let is_public = |visibility: &Visibility| matches!(visibility, Visibility::Public(_));
    let declaration = |item: &Item| match item {
        Item::Fn(function) if is_public(&function.vis) => {
            let mut tokens = function.sig.to_token_stream();
            let documentation = |attribute: &&syn::Attribute| attribute.path().is_ident("doc");
            for attribute in function.attrs.iter().filter(documentation) {
                attribute.to_tokens(&mut tokens);
            }
            Some(tokens.to_string())
        }
        Item::Const(constant) if is_public(&constant.vis) => Some(text(constant)),
        Item::Type(alias) if is_public(&alias.vis) => Some(text(alias)),
        Item::Struct(structure) if is_public(&structure.vis) => Some(text(structure)),
        _ => None,
    };
    syntax.items.iter().filter_map(declaration).collect()
}

fn text(item: &impl ToTokens) -> String {
    item.to_token_stream().to_string()
}

#[cfg(test)]
mod tests {
    use super::super::made_up::MadeUp;
    use super::*;

    const SOURCE: &str =
        "//! A face.\n/// One.\npub extern \"C\" fn one(a: i32) -> i32 { a }\nfn own() {}\n";

    const LINES: &str = "/** One. */\nint32_t one(int32_t a);\n";

    fn made_up(source: &str) -> MadeUp {
        let made_up = MadeUp::sound();
        made_up.write("c/weald/cbindgen.toml", "language = \"C\"\n");
        made_up.write("c/weald/src/face.rs", SOURCE);
        let header = LINES.to_owned() + &last_line(&made_up.load(), LINES);
        made_up.write(HEADER, &header);
        made_up.write("c/weald/src/face.rs", source);
        made_up
    }

    #[test]
    fn a_header_that_is_as_new_as_its_sources_passes_and_bodies_do_not_count() {
        made_up(SOURCE).assert_none(check);
        made_up(&SOURCE.replace("{ a }", "{ a + 1 }")).assert_none(check);
        made_up(&SOURCE.replace("own", "other")).assert_none(check);
    }

    #[test]
    fn a_declaration_or_its_documentation_that_has_changed_is_found() {
        for (before, after) in [("a: i32", "a: i64"), ("One.", "Two."), ("fn one", "fn two")] {
            let changed = made_up(&SOURCE.replace(before, after));
            changed.assert_one(check, &format!("{HEADER}:4"), "cargo xtask header");
        }
    }

    #[test]
    fn settings_that_have_changed_and_a_header_that_is_missing_are_found() {
        let changed = made_up(SOURCE);
        changed.write("c/weald/cbindgen.toml", "language = \"C++\"\n");
        changed.assert_one(check, &format!("{HEADER}:4"), "other declarations");
        let missing = made_up(SOURCE);
        missing.write(HEADER, "");
        missing.assert_one(check, &format!("{HEADER}:1"), "other declarations");
    }

    #[test]
    fn a_line_that_was_changed_by_hand_is_found() {
        let changed = made_up(SOURCE);
        let header = LINES.replace("int32_t a", "int64_t a") + &last_line(&changed.load(), LINES);
        changed.write(HEADER, &header);
        changed.assert_one(check, &format!("{HEADER}:4"), "by hand");
    }
}
