//! What a visitor without scripts can do: forms, and a redirection after each.

use weald_board::model::ANSWERS;

use super::client::*;

#[test]
fn a_visitor_creates_a_board_writes_and_answers() {
    with_board(|mut browser| {
        assert!(browser.get("/").body.contains("There is no board yet"));
        let topic = topic(&mut browser, "Is *anybody* here?");
        let page = browser.get(&topic);
        assert!(
            page.body.contains("<p>Is <em>anybody</em> here?</p>"),
            "{}",
            page.body
        );
        assert!(
            page.body.contains("value=\"Ada\""),
            "the name is remembered"
        );
        let place = browser
            .fill(&topic, &[("text", "Yes & no"), ("author", "Alan")])
            .place();
        let (path, anchor) = place.split_once('#').unwrap();
        assert_eq!(path, topic);
        let page = browser.get(path);
        assert!(
            page.body.contains(&format!("id=\"{anchor}\"")),
            "{}",
            page.body
        );
        assert!(page.body.contains("<p>Yes &amp; no</p>"), "{}", page.body);
        // The time of each message is its permalink.
        for id in [topic.rsplit('/').next().unwrap(), &anchor[1..]] {
            let link = format!("<a class=\"when\" href=\"/b/tea/{id}\"><time ");
            assert!(page.body.contains(&link), "{link}: {}", page.body);
        }
        let board = browser.get("/b/tea").body;
        assert!(
            board.contains("A topic") && board.contains("1 answer"),
            "{board}"
        );
        let list = browser.get("/").body;
        assert!(
            list.contains("Tea") && list.contains("2 messages") && list.contains("just now"),
            "{list}"
        );
    });
}

#[test]
fn a_form_that_is_sent_twice_makes_one_message() {
    with_board(|mut browser| {
        topic(&mut browser, "one");
        let page = browser.get("/b/tea/write");
        let fields = [("title", "Twice"), ("text", "hello"), ("author", "")];
        let first = browser.fill_from(&page, &fields).place();
        assert_eq!(browser.fill_from(&page, &fields).place(), first);
        let again = browser.fill_from(
            &page,
            &[("title", "Twice"), ("text", "other words"), ("author", "")],
        );
        assert_eq!(again.status, 409);
        assert!(
            again.body.contains("other words"),
            "what was written is not lost"
        );
        // It has a token of its own now.
        assert_ne!(
            browser
                .fill_from(
                    &again,
                    &[("title", "Twice"), ("text", "other words"), ("author", "")]
                )
                .place(),
            first
        );
    });
}

#[test]
fn a_form_whose_message_was_erased_comes_back_with_a_token_of_its_own() {
    with_board(|mut browser| {
        let topic = topic(&mut browser, "one");
        let (topics, answers) = (browser.get("/b/tea/write"), browser.get(&topic));
        let fields = [("title", "Again"), ("text", "the words"), ("author", "")];
        for (page, fields) in [(&topics, &fields[..]), (&answers, &fields[1..])] {
            let first = browser.fill_from(page, fields).place();
            let message = match first.split_once("#m") {
                Some((_, id)) => format!("/b/tea/{id}"),
                None => first.clone(),
            };
            let edit = browser.get(&format!("{message}/edit"));
            let (_, form) = edit.body.split_once("name=\"form\" value=\"").unwrap();
            let form = form.split('"').next().unwrap();
            let erased = [("form", form), ("sure", "yes")];
            browser.post(&format!("{message}/erase"), &erased).place();
            let again = browser.fill_from(page, fields);
            assert_eq!(again.status, 410, "{again:?}");
            for part in ["has been erased", "the words"] {
                assert!(again.body.contains(part), "{part}: {again:?}");
            }
            assert_ne!(browser.fill_from(&again, fields).place(), first);
        }
    });
}

#[test]
fn a_form_that_is_refused_comes_back_with_what_was_written() {
    with_board(|mut browser| {
        let topic = topic(&mut browser, "one");
        let refused = browser.fill(
            "/b/tea/write",
            &[("title", ""), ("text", "a long <text>"), ("author", "A")],
        );
        assert_eq!(refused.status, 422);
        assert!(
            refused.body.contains("a long &#60;text&#62;"),
            "{}",
            refused.body
        );
        assert!(
            refused
                .body
                .contains("aria-invalid=\"true\" aria-describedby=\"title-problem\"")
        );
        assert!(refused.body.contains("A topic needs a title."));
        let refused = browser.fill(&topic, &[("text", &"x".repeat(10_001)), ("author", "A")]);
        assert_eq!(refused.status, 422);
        assert!(refused.body.contains(&"x".repeat(10_001)));
        let refused = browser.fill("/new", &[("title", " "), ("text", "kept")]);
        assert_eq!(refused.status, 422);
        assert!(refused.body.contains("kept") && refused.body.contains("id=\"title-problem\""));
    });
}

#[test]
fn what_is_not_there_is_told_by_its_status() {
    with_board(|mut browser| {
        let topic = topic(&mut browser, "one");
        for path in [
            "/nowhere",
            "/b/nowhere",
            "/b/tea/999",
            "/b/tea/01",
            "/b/tea/1",
            "/b/Tea",
            "/b/tea?page=2",
            "/b/tea?page=x",
            "/b/tea?at=2001-01-01",
        ] {
            let answered = browser.get(path);
            assert_eq!(answered.status, 404, "{path}");
            assert!(answered.body.contains("<h1>Not Found</h1>"), "{path}");
        }
        assert_eq!(browser.get("/b/tea?at=nonsense").status, 400);
        let refused = browser.ask("DELETE", "/b/tea", &[], "");
        assert_eq!((refused.status, refused.header("allow")), (405, "GET,HEAD"));
        let form = ("form", attribute_of(&mut browser, &topic));
        assert_eq!(
            browser
                .post(&format!("{topic}/delete"), &[(form.0, &form.1)])
                .place(),
            topic
        );
        let gone = browser.get(&topic);
        assert_eq!(gone.status, 410);
        assert!(gone.body.contains("Deleted by its author") && gone.body.contains("Restore it"));
        let mut other = Browser::new(browser.address);
        assert!(!other.get(&topic).body.contains("Restore it"));
        assert_eq!(
            browser
                .post(&format!("{topic}/restore"), &[(form.0, &form.1)])
                .place(),
            topic
        );
        assert_eq!(browser.get(&topic).status, 200);
    });
}

#[test]
fn an_address_that_ends_in_a_slash_leads_to_the_page() {
    with_board(|mut browser| {
        let topic = topic(&mut browser, "one");
        for (path, place) in [
            (format!("{topic}/"), topic.as_str()),
            ("/b/tea/?page=1".to_owned(), "/b/tea?page=1"),
            ("/names/".to_owned(), "/names"),
        ] {
            for method in ["GET", "HEAD"] {
                let moved = browser.ask(method, &path, &[], "");
                assert_eq!((moved.status, moved.header("location")), (308, place));
                assert_eq!(moved.header("cache-control"), "no-cache");
            }
            assert_eq!(browser.get(place).status, 200, "{place}");
        }
        // Whether there is a page is seen there.
        for (path, place) in [("/nowhere/", "/nowhere"), ("/%2Fthere/", "/%2Fthere")] {
            let moved = browser.get(path);
            assert_eq!((moved.status, moved.header("location")), (308, place));
        }
        // Another site, nothing that a browser types, and the addresses for programs.
        for path in [
            "//there/",
            "/.//there/",
            "/b//tea/",
            "/b/tea//",
            "/\\there/",
            "/api/boards/",
        ] {
            let refused = browser.get(path);
            assert!(matches!(refused.status, 400 | 404), "{path}: {refused:?}");
            assert_eq!(refused.header("location"), "");
        }
        assert_eq!(browser.post("/b/tea/write/", &[]).status, 404);
    });
}

/// The token of a visitor's forms.
fn attribute_of(browser: &mut Browser, page: &str) -> String {
    let body = browser.get(page).body;
    let rest = body.split("name=\"form\" value=\"").nth(1).unwrap();
    rest.split('"').next().unwrap().to_owned()
}

#[test]
fn what_a_browser_has_is_not_sent_again() {
    with_board(|mut browser| {
        let topic = topic(&mut browser, "one");
        for path in [
            "/",
            "/b/tea",
            topic.as_str(),
            "/b/tea/search?q=one",
            &format!("{topic}/history"),
        ] {
            let first = browser.get(path);
            let tag = first.header("etag").to_owned();
            assert!(tag.starts_with("W/\""), "{path}: {first:?}");
            let again = browser.ask("GET", path, &[("If-None-Match", &tag)], "");
            assert_eq!((again.status, again.body.as_str()), (304, ""), "{path}");
            for name in ["vary", "cache-control"] {
                assert!(!again.header(name).is_empty(), "{path} without {name}");
                assert_eq!(again.header(name), first.header(name), "{path}");
            }
            let mut other = Browser::new(browser.address);
            assert_eq!(
                other
                    .ask("GET", path, &[("If-None-Match", &tag)], "")
                    .status,
                200,
                "{path} of another visitor"
            );
            browser.fill(&topic, &[("text", "more"), ("author", "Ada")]);
            assert_eq!(
                browser
                    .ask("GET", path, &[("If-None-Match", &tag)], "")
                    .status,
                200,
                "{path}"
            );
        }
    });
}

#[test]
fn a_slider_goes_through_the_versions() {
    with_board(|mut browser| {
        for text in ["one", "two", "three"] {
            topic(&mut browser, text);
        }
        let page = browser.get("/b/tea").body;
        let value = |page: &str, field: &str| {
            let input = page.split(&format!("name=\"{field}\"")).nth(1).unwrap();
            let value = input.split(" value=\"").nth(1).unwrap();
            value.split('"').next().unwrap().to_owned()
        };
        let (of, last) = (value(&page, "of"), value(&page, "last"));
        let count: usize = last.parse().unwrap();
        assert_eq!(value(&page, "step"), last);
        // A version that came meanwhile does not move the others.
        topic(&mut browser, "four");
        let at = |step: usize| format!("/b/tea?of={of}&last={last}&step={step}");
        let now = browser.get(&at(count)).place();
        assert_eq!(now, "/b/tea");
        let then = browser.get(&at(count - 1)).place();
        let then = browser.get(&then).body;
        assert!(then.contains("This is the past.") && then.contains("two"));
        assert!(!then.contains("three"));
        assert_eq!(value(&then, "last"), (count + 1).to_string());
        assert_eq!(value(&then, "step"), (count - 1).to_string());
        let first = browser.get(&at(0)).place();
        assert!(
            browser
                .get(&first)
                .body
                .contains("Nobody had written here by then")
        );
        for wrong in ["?step=x", "?step=1&last=0&of=1.1", "?step=0&last=1&of=1.1"] {
            assert_eq!(
                browser.get(&format!("/b/tea{wrong}")).status,
                404,
                "{wrong}"
            );
        }
    });
}

#[test]
fn the_past_can_be_visited() {
    with_board(|mut browser| {
        let topic = topic(&mut browser, "the first text");
        let history = |browser: &mut Browser| browser.get(&format!("{topic}/history")).body;
        browser
            .fill(
                &format!("{topic}/edit"),
                &[
                    ("title", "A topic"),
                    ("text", "the second text"),
                    ("author", "Ada"),
                ],
            )
            .place();
        let told = history(&mut browser);
        assert!(
            told.contains("the <del>first</del><ins>second</ins> text"),
            "{told}"
        );
        let link = told.split("/history").next().unwrap().len();
        let at = told[link.min(told.len())..]
            .split("?at=")
            .nth(1)
            .or_else(|| told.split("?at=").nth(1))
            .unwrap();
        let at = at.split('"').next().unwrap();
        let past = browser.get(&format!("{topic}?at={at}")).body;
        assert!(
            past.contains("the first text") && past.contains("This is the past"),
            "{past}"
        );
        assert!(!past.contains("<textarea"), "nobody answers in the past");
        let board = browser.get(&format!("/b/tea?at={at}")).body;
        assert!(
            board.contains(&format!("{topic}?at={at}")),
            "links stay in the past"
        );
    });
}

/// Where the link with these words leads.
fn link(page: &str, words: &str) -> String {
    let before = page.split(&format!(">{words}</a>")).next().unwrap();
    let (_, link) = before.rsplit_once("href=\"").unwrap();
    link.split('"').next().unwrap().replace("&#38;", "&")
}

/// The links of a page whose addresses have these words; at least one.
fn links_with<'a>(page: &'a str, words: &str) -> Vec<&'a str> {
    let links = page.split("<a ").skip(1);
    let links = links.filter_map(|link| link.split('>').next());
    let links: Vec<_> = links.filter(|link| link.contains(words)).collect();
    assert!(!links.is_empty(), "{words}: {page}");
    links
}

#[test]
fn the_numbered_pages_of_a_board_do_not_shift_and_are_no_past() {
    with_board(|mut browser| {
        topic(&mut browser, "the first of them");
        for number in 2..=25 {
            let title = format!("Topic {number}");
            let fields = [("title", title.as_str()), ("text", "water"), ("author", "")];
            browser.fill("/b/tea/write", &fields).place();
        }
        let next = |page: &str| {
            for of_version in links_with(page, "page=") {
                assert!(of_version.contains("nofollow"), "{of_version}: {page}");
            }
            link(page, "Next →")
        };
        let (board, found) = ("/b/tea", "/b/tea/search?q=water");
        let board = next(&browser.get(board).body);
        let found = next(&browser.get(found).body);
        let before = [&board, &found].map(|path| titles(&browser.get(path).body));
        // Two topics come to the top, and push two others to the second page.
        topic_in(&mut browser, "tea");
        topic_in(&mut browser, "tea");
        for (path, before) in [&board, &found].into_iter().zip(before) {
            let answered = browser.get(path);
            let page = &answered.body;
            assert_eq!(titles(page), before, "{path}");
            assert!(!page.contains("This is the past"), "{path}: {page}");
            assert!(!page.contains("/b/tea/1?at="), "{path}: {page}");
            assert!(page.contains("This list has changed since."), "{page}");
            assert_eq!(answered.header("x-robots-tag"), "noindex");
        }
        let page = browser.get(&board).body;
        assert!(page.contains("/b/tea/write"), "{page}");
        let now = browser.get(&link(&page, "See it as it is now"));
        assert_eq!(titles(&now.body).len(), 7);
        let before = browser.get(&link(&page, "← Before")).body;
        assert!(titles(&before)[0].contains("Topic 25"), "{before}");
        assert_eq!(browser.get("/b/tea?page=2&of=x").status, 400);
        assert_eq!(browser.get("/b/tea?page=1&of=9.9").status, 404);
        // The past stays the past, whatever is behind it.
        let at = board.split("of=").nth(1).unwrap();
        let past = browser.get(&format!("/b/tea?page=2&at={at}&of={at}")).body;
        assert!(past.contains("This is the past"), "{past}");
        let past_pages = links_with(&past, &format!("&#38;at={at}"));
        assert!(past_pages.iter().all(|link| link.contains("nofollow")));
        assert_eq!(link(&past, "Back to now"), "/b/tea?page=2");
        assert!(link(&past, "← Before").ends_with(&format!("&at={at}")));
        // A list that was empty says so, too: nothing had an `x` in it, and the first version had nothing at all.
        let (tree, _) = at.split_once('.').unwrap();
        for (path, now) in [
            (format!("/b/tea/search?q=x&of={at}"), 2),
            (format!("/b/tea?of={tree}.1"), 20),
        ] {
            let empty = browser.get(&path).body;
            assert!(empty.contains("class=\"empty\""), "{path}: {empty}");
            let now_at = link(&empty, "See it as it is now");
            assert_eq!(titles(&browser.get(&now_at).body).len(), now, "{now_at}");
        }
    });
}

#[test]
fn a_page_has_links_to_the_ends_and_to_its_neighbours_and_a_form_for_all_others() {
    with_board(|mut browser| {
        let topic = topic(&mut browser, "the first of them");
        for _ in 0..ANSWERS * 5 {
            browser
                .fill(&topic, &[("text", "more"), ("author", "")])
                .place();
        }
        let first = browser.get(&topic).body;
        for part in [
            "aria-label=\"Page 1 of 5\"",
            "<b aria-current=\"page\"><span class=\"unseen\">Page </span>1</b>",
            "?page=2\"><span class=\"unseen\">Page </span>2</a>",
            "?page=5\"><span class=\"unseen\">Page </span>5</a>",
            "min=\"1\" max=\"5\" required",
        ] {
            assert!(first.contains(part), "{part}: {first}");
        }
        assert!(!first.contains("?page=4\""), "{first}");
        // They are of the present, and there are no more of them than there are pages.
        let pages = links_with(&first, "?page=");
        assert!(!pages.iter().any(|link| link.contains("nofollow")));
        // From the middle all pages have a link.
        let third = browser.get(&format!("{topic}?page=3")).body;
        assert!(!third.contains("class=\"to-page\""), "{third}");
        assert_eq!(third.matches("?page=").count(), 6);
        assert_eq!(browser.get(&format!("{topic}?page=6")).status, 404);
        // The links of a page that came in answer to a form lead to the thread, too.
        let refused = browser.fill(&topic, &[("text", " "), ("author", "")]);
        assert_eq!(refused.status, 422);
        assert_eq!(link(&refused.body, "Next →"), format!("{topic}?page=2"));
    });
}

/// The titles of a list, with their links.
fn titles(page: &str) -> Vec<String> {
    let titles = page.split("<h2>").skip(1);
    let titles = titles.map(|it| it.split("</h2>").next().unwrap().to_owned());
    titles.collect()
}

#[test]
fn a_search_tells_how_many_it_found_and_marks_the_words() {
    with_board(|mut browser| {
        let topic = topic(&mut browser, "hot water & <tea>");
        let far = format!("{}and waters run deep", "word ".repeat(100));
        browser
            .fill(&topic, &[("text", &far), ("author", "Eve")])
            .place();
        let fields = [
            ("title", "Water <b>"),
            ("text", "see *there*"),
            ("author", ""),
        ];
        browser.fill("/b/tea/write", &fields).place();
        let found = browser.get("/b/tea/search?q=WATER").body;
        for part in [
            "3 messages, the newest first",
            "hot <mark>water</mark> &amp; &lt;tea&gt;",
            "<mark>Water</mark> &lt;b&gt;</a>",
            "word and <mark>waters</mark> run deep",
        ] {
            assert!(found.contains(part), "{part}: {found}");
        }
        assert!(
            browser
                .get("/b/tea/search?q=deep")
                .body
                .contains("1 message, ")
        );
    });
}

#[test]
fn the_pages_of_a_thread_are_of_the_present_and_back_to_now_leads_to_the_same_one() {
    with_board(|mut browser| {
        let topic = topic(&mut browser, "which?");
        for number in 0..25 {
            let text = format!("answer {number}.");
            let fields = [("text", text.as_str()), ("author", "")];
            browser.fill(&topic, &fields).place();
        }
        let second = link(&browser.get(&topic).body, "Next →");
        assert_eq!(second, format!("{topic}?page=2"));
        topic_in(&mut browser, "tea");
        let page = browser.get(&second).body;
        assert!(page.contains("answer 12.") && !page.contains("answer 11."));
        assert!(page.contains("<textarea"), "{page}");
        let board = browser.get("/b/tea").body;
        let at = board.split("name=\"of\" value=\"").nth(1).unwrap();
        let at = at.split('"').next().unwrap().to_owned();
        topic_in(&mut browser, "tea");
        let past = browser.get(&format!("{second}&at={at}")).body;
        assert!(past.contains("This is the past"), "{past}");
        assert_eq!(link(&past, "Back to now"), second);
        let past = browser.get(&format!("/b/tea/search?q=answer&at={at}")).body;
        assert_eq!(link(&past, "Back to now"), "/b/tea/search?q=answer");
    });
}

#[test]
fn pages_are_small_and_numbered() {
    with_board(|mut browser| {
        let topic = topic(&mut browser, &"word ".repeat(1_999));
        for number in 0..30 {
            let text = format!("answer {number} ").repeat(if number % 2 == 0 { 700 } else { 2 });
            browser
                .fill(&topic, &[("text", &text), ("author", "Ada")])
                .place();
        }
        let page = browser.get(&topic);
        assert!(page.body.len() < 50_000, "{} bytes", page.body.len());
        assert!(
            page.body.contains("Read the rest") && page.body.contains("aria-label=\"Page 1 of 3\"")
        );
        let next = page
            .body
            .split("rel=\"next\"")
            .next()
            .unwrap()
            .rsplit("href=\"")
            .next()
            .unwrap();
        let next = next
            .split('"')
            .next()
            .unwrap()
            .replace("&#38;", "&")
            .replace("&amp;", "&");
        let before = browser.get(&next).body;
        browser
            .fill(&topic, &[("text", "one more"), ("author", "Ada")])
            .place();
        let after = browser.get(&next).body;
        assert!(before.contains("Page 2 of 3") && after.contains("Page 2 of 3"));
        let style = browser.get("/style.css").body.len();
        assert!(page.body.len() + style < 60_000);
    });
}

#[test]
fn a_long_history_has_small_pages() {
    with_board(|mut browser| {
        let topic = topic(&mut browser, "one");
        for number in 0..12 {
            let form = browser.get(&format!("{topic}/edit"));
            let text = (0..450).map(|word| format!("{} ", (word * 7 + number * 13) % 97));
            let fields = [
                ("text", text.collect::<String>()),
                ("author", "Ada".to_owned()),
                ("title", "one".to_owned()),
            ];
            let fields = fields.each_ref().map(|(name, text)| (*name, text.as_str()));
            let saved = browser.fill_from(&form, &fields);
            assert_eq!(saved.status, 303, "{saved:?}");
        }
        let history = format!("{topic}/history");
        let first = browser.get(&history).body;
        let (_, older) = first.split_once("history?from=").unwrap();
        let older = format!("{history}?from={}", older.split('"').next().unwrap());
        let pages = [first, browser.get(&older).body];
        assert!(
            pages.iter().all(|page| page.len() < 50_000),
            "{} bytes",
            pages[0].len()
        );
        let shown = pages.iter().map(|page| page.matches("<h2>").count());
        assert_eq!(shown.collect::<Vec<_>>(), [10, 3]);
        assert!(pages[0].contains('…') && pages[1].contains("Written"));
        assert_eq!(browser.get(&format!("{history}?from=x")).status, 400);
    });
}

fn topic_in(browser: &mut Browser, board: &str) {
    let fields = [("title", "T"), ("text", "x"), ("author", "")];
    browser.fill(&format!("/b/{board}/write"), &fields).place();
}

#[test]
fn a_list_of_many_boards_has_pages() {
    with_board(|mut browser| {
        for number in 0..90 {
            let body =
                serde_json::json!({"title": format!("B{number:02}"), "about": "&".repeat(150)});
            let created = browser.json("POST", "/api/boards", &[], &body.to_string());
            assert_eq!(created.status, 201, "{created:?}");
        }
        let pages = ["/", "/?page=2", "/?page=3"].map(|path| browser.get(path).body);
        assert!(pages.iter().all(|page| page.len() < 50_000));
        let shown = pages.iter().map(|page| page.matches("<h2>").count());
        assert_eq!(shown.collect::<Vec<_>>(), [40, 40, 10]);
        assert!(pages[0].contains("B89") && pages[2].contains("B00"));
        assert_eq!(browser.get("/?page=4").status, 404);

        // While others write, the pages that a reader goes on to do not shift.
        let (_, next) = pages[0].split_once("href=\"/?page=2&#38;of=").unwrap();
        let of = next.split('"').next().unwrap();
        let of_version = links_with(&pages[0], "page=");
        assert!(of_version.iter().all(|link| link.contains("nofollow")));
        topic_in(&mut browser, "b10");
        let second = browser.get(&format!("/?page=2&of={of}")).body;
        let boards = |page: &str| -> Vec<String> {
            let links = page.split("<h2>").skip(1);
            links
                .map(|it| it.split("</h2>").next().unwrap().to_owned())
                .collect()
        };
        assert_eq!(boards(&second), boards(&pages[1]));
        let last = browser.get(&format!("/?page=3&of={of}")).body;
        assert!(last.contains("/b/b00\"") && !browser.get("/?page=3").body.contains("/b/b10\""));
        assert_eq!(browser.get("/?of=x").status, 400);
        assert_eq!(browser.get("/?of=9.9").status, 404);
        assert_eq!(
            browser.get("/api/boards").value().as_array().unwrap().len(),
            90
        );
    });
}

#[test]
fn a_feed_has_the_newest_messages() {
    with_board(|mut browser| {
        let topic = topic(&mut browser, "*one* & <two>");
        browser
            .fill(&topic, &[("text", "an answer"), ("author", "Alan")])
            .place();
        let feed = browser.get("/b/tea/feed");
        assert_eq!(
            feed.header("content-type"),
            "application/atom+xml; charset=utf-8"
        );
        let address = format!("http://{}{topic}", browser.address);
        for text in [
            "<title>Tea · Board</title>",
            "<title>An answer by Alan in Tea</title>",
            &format!("href=\"{address}\""),
            "&#60;p&#62;&#60;em&#62;one&#60;/em&#62; &#38;amp; &#38;lt;two&#38;gt;&#60;/p&#62;",
        ] {
            assert!(feed.body.contains(text), "{text}: {}", feed.body);
        }
        assert_eq!(feed.body.matches("<entry>").count(), 2);
        let ids = |feed: &str| {
            let ids = feed
                .split("<id>")
                .skip(1)
                .map(|rest| &rest[..rest.find('<').unwrap()]);
            ids.map(str::to_owned).collect::<Vec<_>>()
        };
        let all = ids(&feed.body);
        assert!(
            all.iter()
                .all(|id| id.starts_with("urn:uuid:") && id.len() == 45),
            "{all:?}"
        );
        assert_eq!(
            all.iter().collect::<std::collections::BTreeSet<_>>().len(),
            3
        );
        // They are the same under another name of the board.
        let elsewhere = browser
            .ask("GET", "/b/tea/feed", &[("Host", "localhost")], "")
            .body;
        assert!(
            elsewhere.contains("href=\"http://localhost/b/tea\""),
            "{elsewhere}"
        );
        assert_eq!(ids(&elsewhere), all);
        let tag = feed.header("etag").to_owned();
        assert_eq!(
            browser
                .ask("GET", "/b/tea/feed", &[("If-None-Match", &tag)], "")
                .status,
            304
        );
        assert!(browser.get("/b/tea").body.contains("href=\"/b/tea/feed\""));
    });
}
