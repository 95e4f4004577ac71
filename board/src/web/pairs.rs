//! Names with values: of a query, of a form, of cookies.

/// Names with values, in their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pairs(Vec<(String, String)>);

impl Pairs {
    /// Those of a query or a form.
    pub(crate) fn of_form(bytes: &[u8]) -> Self {
        let pairs = form_urlencoded::parse(bytes);
        Self(
            pairs
                .map(|(name, value)| (name.into_owned(), value.into_owned()))
                .collect(),
        )
    }

    /// Those of a `Cookie` header.
    pub(crate) fn of_cookies(header: &str) -> Self {
        let pairs = header
            .split(';')
            .filter_map(|pair| pair.trim().split_once('='));
        Self(
            pairs
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
        )
    }

    pub(crate) fn new(pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        Self(pairs.into_iter().collect())
    }

    /// The first value of a name, which is empty if there is none.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }

    /// Whether a name has more than one value.
    pub(crate) fn is_twice(&self, name: &str) -> bool {
        self.0.iter().filter(|(it, _)| it == name).count() > 1
    }

    /// A name that has more than one value.
    pub(crate) fn twice(&self) -> Option<&str> {
        let mut seen = std::collections::HashSet::new();
        let mut names = self.0.iter().map(|(name, _)| name.as_str());
        names.find(|name| !seen.insert(*name))
    }

    /// The first value of a name.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let mut all = self.0.iter();
        all.find(|(it, _)| it == name)
            .map(|(_, value)| value.as_str())
    }
}
