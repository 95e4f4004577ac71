//! Edits through forms: conflicts that lose neither text, and what only the author may do.

use super::client::*;

#[test]
fn a_conflict_shows_both_texts_and_loses_neither() {
    with_board(|mut browser| {
        let topic = topic(&mut browser, "a cup of tea");
        let edit = format!("{topic}/edit");
        let page = browser.get(&edit);
        let fields = |text| [("title", "A topic"), ("text", text), ("author", "Ada")];
        browser.fill(&edit, &fields("a pot of tea")).place();
        let conflict = browser.fill_from(&page, &fields("a cup of <coffee>"));
        assert_eq!(conflict.status, 409);
        for text in [
            "a pot of tea",
            "a cup of &#60;coffee&#62;</textarea>",
            "<del>pot</del><ins>cup</ins>",
        ] {
            assert!(conflict.body.contains(text), "{text}: {}", conflict.body);
        }
        assert!(browser.get(&topic).body.contains("a pot of tea"));
        // Saved once more, it is an edit of what the message says now.
        browser
            .fill_from(&conflict, &fields("a pot of coffee"))
            .place();
        let history = browser.get(&format!("{topic}/history")).body;
        assert!(
            history.contains("<del>tea</del><ins>coffee</ins>"),
            "{history}"
        );
    });
}

#[test]
fn a_mistake_in_an_edit_keeps_the_version_that_was_seen() {
    with_board(|mut browser| {
        let topic = topic(&mut browser, "one");
        let edit = format!("{topic}/edit");
        let fields = |text| [("title", "A topic"), ("text", text), ("author", "Ada")];
        let mistake = browser.fill(&edit, &fields(""));
        assert_eq!(mistake.status, 422);
        browser.fill(&edit, &fields("two")).place();
        assert_eq!(browser.fill_from(&mistake, &fields("three")).status, 409);
    });
}

#[test]
fn an_edit_of_what_is_gone_meanwhile_keeps_the_draft() {
    with_board(|mut browser| {
        let topic = topic(&mut browser, "one");
        let page = browser.get(&format!("{topic}/edit"));
        let fields = [("title", "A topic"), ("text", "a draft"), ("author", "Ada")];
        let (_, form) = page.body.split_once("name=\"form\" value=\"").unwrap();
        let form = ("form", form.split('"').next().unwrap());
        // An erased message has no owner.
        for (gone, status) in [("delete", 410), ("erase", 403)] {
            let sent = browser.post(&format!("{topic}/{gone}"), &[form, ("sure", "yes")]);
            assert_eq!(sent.place(), topic);
            let refused = browser.fill_from(&page, &fields);
            assert_eq!(refused.status, status, "{gone}: {refused:?}");
            assert!(refused.body.contains("a draft</textarea>"), "{refused:?}");
        }
    });
}

#[test]
fn only_the_author_has_the_buttons() {
    with_board(|mut browser| {
        let topic = topic(&mut browser, "one");
        let mut other = Browser::new(browser.address);
        assert!(!other.get(&topic).body.contains("/edit"));
        assert_eq!(other.get(&format!("{topic}/edit")).status, 403);
        let page = browser.get(&format!("{topic}/edit"));
        assert!(!page.body.contains("Undo the last change"));
        assert_eq!(
            other
                .fill_from(&page, &[("title", "x"), ("text", "y"), ("author", "")])
                .status,
            403
        );
        browser
            .fill_from(&page, &[("title", "x"), ("text", "y"), ("author", "")])
            .place();
        let form = page
            .body
            .split("name=\"form\" value=\"")
            .nth(1)
            .unwrap()
            .split('"')
            .next()
            .unwrap();
        browser
            .post(&format!("{topic}/undo"), &[("form", form)])
            .place();
        assert!(browser.get(&topic).body.contains("<p>one</p>"));
        assert_eq!(
            browser
                .post(&format!("{topic}/erase"), &[("form", form)])
                .status,
            422
        );
        browser
            .post(
                &format!("{topic}/erase"),
                &[("form", form), ("sure", "yes")],
            )
            .place();
        let erased = browser.get(&topic);
        assert_eq!(erased.status, 410);
        assert!(
            erased.body.contains("Erased for good on"),
            "{}",
            erased.body
        );
        let history = browser.get(&format!("{topic}/history")).body;
        assert!(
            !history.contains("one</") && history.contains("Erased for good"),
            "{history}"
        );
    });
}

#[test]
fn a_double_click_on_undo_takes_back_one_change() {
    with_board(|mut browser| {
        let topic = topic(&mut browser, "one");
        let edit = format!("{topic}/edit");
        let fields = |text| [("title", "A topic"), ("text", text), ("author", "Ada")];
        browser.fill(&edit, &fields("two")).place();
        let hidden = |page: &Answered, name: &str| {
            let (_, form) = page.body.split_once("/undo\"").unwrap();
            let (_, value) = form
                .split_once(&format!("name=\"{name}\" value=\""))
                .unwrap();
            value.split('"').next().unwrap().to_owned()
        };
        let page = browser.get(&edit);
        let [form, last] = ["form", "last"].map(|name| hidden(&page, name));
        let undo = [("form", form.as_str()), ("last", last.as_str())];
        for _ in 0..2 {
            assert_eq!(browser.post(&format!("{topic}/undo"), &undo).place(), topic);
            assert!(browser.get(&topic).body.contains("<p>one</p>"));
        }
        // A button of a page that is older than the last change takes nothing back.
        browser.fill(&edit, &fields("three")).place();
        let page = browser.get(&edit);
        let last = hidden(&page, "last");
        browser.fill(&edit, &fields("four")).place();
        let undo = [("form", form.as_str()), ("last", last.as_str())];
        let stale = browser.post(&format!("{topic}/undo"), &undo);
        assert_eq!(stale.status, 409, "{stale:?}");
        assert!(stale.body.contains("nothing was taken back"), "{stale:?}");
        assert!(stale.body.contains("four</textarea>"), "{stale:?}");
    });
}

#[test]
fn an_erasure_without_the_tick_tells_so_beside_the_box() {
    with_board(|mut browser| {
        let topic = topic(&mut browser, "one");
        let page = browser.get(&format!("{topic}/edit"));
        let (_, form) = page.body.split_once("name=\"form\" value=\"").unwrap();
        let form = [("form", form.split('"').next().unwrap())];
        let refused = browser.post(&format!("{topic}/erase"), &form);
        assert_eq!(refused.status, 422);
        for part in [
            "required aria-invalid=\"true\" aria-describedby=\"sure-problem\"",
            "id=\"sure-problem\">Tick the box",
            "one</textarea>",
        ] {
            assert!(refused.body.contains(part), "{part}: {refused:?}");
        }
    });
}
