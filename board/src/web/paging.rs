//! Numbered pages as links, and a form that leads to any of them.

use weald::forest::Version;

use crate::model::{BoardAt, Pages};

use super::ask::Ask;

/// Numbered pages of one list.
pub(crate) struct PagesView {
    pub(crate) number: usize,
    pub(crate) count: usize,
    /// Where the list is. A page that came in answer to a form has another address.
    pub(crate) path: String,
    /// What a query has beside the number, with its name.
    pub(crate) fields: Vec<(&'static str, String)>,
    /// If the list has changed since the version of the pages: where this page is as it is now.
    pub(crate) newer: Option<String>,
}

/// The number of a page in a row of links.
pub(crate) struct Slot {
    pub(crate) number: usize,
    pub(crate) link: String,
    /// Whether pages before it are left out.
    pub(crate) follows_gap: bool,
}

impl PagesView {
    /// Pages of a list that only grows. Its newest version is shown.
    pub(crate) fn of_newest(path: String, pages: Pages) -> Self {
        Self {
            number: pages.number,
            count: pages.count,
            path,
            fields: Vec::new(),
            newer: None,
        }
    }

    /// Pages in one version, which the links name by `field`, so that they do not shift: by `of`, or by `at` if the
    /// version is looked at as the past.
    pub(crate) fn in_version(
        path: String,
        pages: Pages,
        (field, version): (&'static str, Version),
    ) -> Self {
        Self {
            fields: vec![(field, version.to_string())],
            ..Self::of_newest(path, pages)
        }
    }

    /// The pages of a list of a board in one version, so that they do not shift; of a search, with what is sought.
    pub(crate) fn of_board(
        ask: &Ask,
        (path, pages): (String, Pages),
        board: &BoardAt,
        sought: Option<&str>,
    ) -> Self {
        let is_past = board.is_past() && !ask.is_pinned();
        let version = (
            if is_past { "at" } else { "of" },
            board.version().to_string(),
        );
        let mut view = Self {
            fields: sought.map(|it| ("q", it.to_owned())).into_iter().collect(),
            ..Self::of_newest(path, pages)
        };
        if board.is_past() && !is_past {
            // A search may find less now, and then not have this page.
            let number = if sought.is_some() { 1 } else { pages.number };
            view.newer = Some(view.link(number));
        }
        view.fields.push(version);
        view
    }

    /// Where a page is.
    pub(crate) fn link(&self, number: usize) -> String {
        let place = format!("{}?", self.path);
        let begin = place.len();
        let mut query = form_urlencoded::Serializer::for_suffix(place, begin);
        query.append_pair("page", &number.to_string());
        query.extend_pairs(&self.fields);
        query.finish()
    }

    /// Whether the links name a version. Then search engines are told not to follow them: each version has all pages.
    pub(crate) fn is_of_version(&self) -> bool {
        self.fields
            .iter()
            .any(|(name, _)| ["at", "of"].contains(name))
    }

    /// The pages to which there is a link: the first, the last, and the neighbours of this one. A gap of a single page
    /// is none.
    pub(crate) fn slots(&self) -> Vec<Slot> {
        let own = self.number;
        let mut shown = vec![1, own.saturating_sub(1), own, own + 1, self.count];
        shown.retain(|number| (1..=self.count).contains(number));
        shown.sort_unstable();
        shown.dedup();
        let mut slots: Vec<Slot> = Vec::new();
        for number in shown {
            let last = slots.last().map_or(0, |slot| slot.number);
            let filling = (number == last + 2).then_some(last + 1);
            slots.extend(filling.into_iter().chain([number]).map(|it| Slot {
                number: it,
                link: self.link(it),
                follows_gap: it > last + 2,
            }));
        }
        slots
    }

    /// The page before, if there is one.
    pub(crate) fn previous(&self) -> Option<String> {
        (self.number > 1).then(|| self.link(self.number - 1))
    }

    /// The page after, if there is one.
    pub(crate) fn next(&self) -> Option<String> {
        (self.number < self.count).then(|| self.link(self.number + 1))
    }

    /// Whether there are pages to which no link leads.
    pub(crate) fn has_gaps(&self) -> bool {
        self.slots().iter().any(|slot| slot.follows_gap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(number: usize, count: usize) -> String {
        let view = PagesView {
            number,
            count,
            path: "/b/tea".to_owned(),
            fields: vec![("q", "a&b".to_owned()), ("of", "1.2".to_owned())],
            newer: None,
        };
        assert_eq!(view.link(2), "/b/tea?page=2&q=a%26b&of=1.2");
        let slots = view.slots().into_iter().map(|slot| {
            let gap = if slot.follows_gap { "… " } else { "" };
            format!("{gap}{} ", slot.number)
        });
        slots.collect::<String>().trim_end().to_owned()
    }

    #[test]
    fn a_row_has_the_ends_and_the_neighbours() {
        for (number, count, expected) in [
            (1, 1, "1"),
            (1, 2, "1 2"),
            (2, 3, "1 2 3"),
            (1, 4, "1 2 3 4"),
            (1, 5, "1 2 … 5"),
            (3, 5, "1 2 3 4 5"),
            (4, 7, "1 2 3 4 5 6 7"),
            (5, 9, "1 … 4 5 6 … 9"),
            (9, 9, "1 … 8 9"),
            (50_000, 50_000, "1 … 49999 50000"),
            (25_000, 50_000, "1 … 24999 25000 25001 … 50000"),
        ] {
            assert_eq!(row(number, count), expected, "{number} of {count}");
        }
    }
}
