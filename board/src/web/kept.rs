//! A form whose request was refused, as it goes back to its visitor: nothing that somebody has written is lost, even if
//! nobody had time to look at it.

use super::pairs::Pairs;

/// The fields that people write in, with their labels.
const WRITTEN: [(&str, &str); 4] = [
    ("title", "Title"),
    ("text", "Text"),
    ("author", "Your name"),
    ("why", "Why?"),
];
/// The fields that a page has put into the form. No passphrase is among them.
const HIDDEN: [&str; 6] = ["form", "token", "seen", "last", "name", "do"];

/// A form that goes back.
#[derive(Debug)]
pub(crate) struct KeptForm {
    pub(crate) action: String,
    pub(crate) hidden: Vec<(&'static str, String)>,
    pub(crate) written: Vec<KeptField>,
}

/// A field that somebody has written in.
#[derive(Debug)]
pub(crate) struct KeptField {
    pub(crate) name: &'static str,
    pub(crate) label: &'static str,
    pub(crate) value: String,
    pub(crate) is_long: bool,
}

impl KeptForm {
    /// The form that was sent to an address, unless nothing is written in it but a name.
    pub(crate) fn of(action: &str, form: &Pairs) -> Option<Self> {
        let is_written = |name: &&str| !form.text(name).trim().is_empty();
        ["title", "text", "why"]
            .iter()
            .find(|name| is_written(name))?;
        let hidden = HIDDEN.into_iter();
        let written = WRITTEN.into_iter().filter_map(|(name, label)| {
            Some(KeptField {
                name,
                label,
                value: form.get(name)?.to_owned(),
                is_long: name == "text",
            })
        });
        Some(Self {
            action: action.to_owned(),
            hidden: hidden
                .filter_map(|name| Some((name, form.get(name)?.to_owned())))
                .collect(),
            written: written.collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_comes_back_without_a_passphrase() {
        let form = "form=1&token=2&title=T&text=one%0Atwo&author=Ada&passphrase=secret&other=x";
        let kept = KeptForm::of("/b/tea/write", &Pairs::of_form(form.as_bytes())).unwrap();
        let all = format!("{kept:?}");
        for part in ["/b/tea/write", "\"form\", \"1\"", "one\\ntwo", "Ada"] {
            assert!(all.contains(part), "{part}: {all}");
        }
        assert!(!all.contains("secret") && !all.contains("other"), "{all}");
        for nothing in ["", "author=Ada&passphrase=x", "text=+&title="] {
            assert!(KeptForm::of("/", &Pairs::of_form(nothing.as_bytes())).is_none());
        }
    }
}
