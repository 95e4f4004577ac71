//! Writing, answering, changing: with the mouse, with the keyboard alone, and without scripts.

use super::tab::{Tab, Visitor};
use super::with_boards;

/// Creates a board and a topic; leaves the tab at the topic, and returns its path.
pub(crate) fn begin(tab: &Tab<'_>) -> String {
    tab.go("/new");
    tab.write("#title", "Tea");
    tab.write("#text", "Leaves and water");
    tab.follow("main .button");
    assert_eq!(tab.path(), "/b/tea");
    tab.follow("main .button");
    tab.write("#title", "Which cup?");
    tab.write("#text", "The *blue* one, or the other one?");
    tab.write("#author", "Ada");
    tab.follow("main .button");
    tab.path()
}

#[test]
fn a_visitor_writes_answers_edits_and_reads_the_history() {
    with_boards(|chromium, address| {
        let visitor = Visitor::new(chromium, address);
        let tab = visitor.open("/");
        assert!(tab.text("main").contains("There is no board yet."));
        let topic = begin(&tab);
        assert_eq!(tab.text("h1"), "Which cup?");
        assert_eq!(tab.text(".text em"), "blue");
        tab.write("#text", "The other one.");
        tab.follow("main form .button");
        assert_eq!(tab.text(".thread .text").trim(), "The other one.");
        assert_eq!(
            tab.eval("document.querySelector(':target').tagName"),
            "ARTICLE"
        );

        // Nothing is lost when something is wrong.
        tab.write("#text", " ");
        tab.write("#author", "Ada King");
        tab.follow("main form .button");
        assert!(tab.text("#text-problem").contains("There is no text yet."));
        assert_eq!(
            tab.eval("document.getElementById('author').value"),
            "Ada King"
        );

        tab.go(&format!("{topic}/edit"));
        tab.write("#text", "The *green* one, or the other one?");
        tab.follow("main form .button");
        assert_eq!(tab.path(), topic);
        assert_eq!(tab.text(".first .text em"), "green");
        tab.follow(".first .meta a[href$=history]");
        assert_eq!(tab.text(".states ins"), "green");
        assert_eq!(tab.text(".states del"), "blue");
    });
}

#[test]
fn a_reader_on_a_second_page_can_still_answer_after_others_have_written() {
    with_boards(|chromium, address| {
        let visitor = Visitor::new(chromium, address);
        let tab = visitor.open("/");
        begin(&tab);
        for number in 0..20 {
            tab.go("/b/tea/write");
            tab.write("#title", &format!("Topic {number}"));
            tab.write("#text", "More");
            tab.follow("main .button");
        }
        let other = Visitor::new(chromium, address).open("/b/tea");
        other.follow("[rel~=next]");
        assert_eq!(other.text(".list h2"), "Which cup?");
        tab.go("/b/tea/write");
        tab.write("#title", "Yet another");
        tab.write("#text", "More");
        tab.follow("main .button");
        // The page tells that there is something newer, and shows what it showed.
        other.until("document.querySelector('#live').innerText.includes('has changed since')");
        assert_eq!(other.count(".list > li"), 1);
        assert_eq!(other.count(".past"), 0);
        other.must_be_accessible();
        other.picture("second-page");
        other.follow(".list h2 a");
        other.write("#text", "The other one.");
        other.follow("main form .button");
        assert_eq!(other.text(".thread .text").trim(), "The other one.");
    });
}

#[test]
fn a_conflict_shows_both_texts_and_loses_neither() {
    with_boards(|chromium, address| {
        let visitor = Visitor::new(chromium, address);
        let one = visitor.open("/");
        let topic = begin(&one);
        let edit = format!("{topic}/edit");
        one.go(&edit);
        let other = visitor.open(&edit);
        one.write("#text", "The red one.");
        one.follow("main form .button");
        other.write("#text", "The yellow one.");
        other.follow("main form .button");
        assert!(other.text("[role=alert]").contains("nothing is lost"));
        assert!(other.text("main").contains("The red one."));
        assert_eq!(
            other.eval("document.getElementById('text').value"),
            "The yellow one."
        );
        other.must_be_accessible();
        other.follow("main form .button");
        assert_eq!(other.text(".first .text").trim(), "The yellow one.");
        other.go(&format!("{topic}/history"));
        assert_eq!(other.count(".states > li"), 3);
    });
}

#[test]
fn the_keyboard_alone_is_enough() {
    with_boards(|chromium, address| {
        let visitor = Visitor::new(chromium, address);
        let tab = visitor.open("/");
        let type_in = |text: &str| {
            tab.ask("Input.insertText", serde_json::json!({ "text": text }));
        };
        let enter = || tab.loads(|| tab.press("Enter"));
        tab.press("Tab");
        assert_eq!(tab.eval("document.activeElement.className"), "skip");
        tab.tab_to("main a.button");
        enter();
        tab.tab_to("#title");
        type_in("Tea");
        tab.tab_to("main button");
        enter();
        tab.tab_to("main a.button");
        enter();
        tab.tab_to("#title");
        type_in("Which cup?");
        tab.tab_to("#text");
        type_in("The blue one.");
        tab.tab_to("main form button");
        enter();
        assert_eq!(tab.text("h1"), "Which cup?");
        tab.tab_to("#text");
        type_in("An answer");
        tab.tab_to("main form button");
        enter();
        assert_eq!(tab.text(".thread .text").trim(), "An answer");
        tab.tab_to(".first .meta a[href$=edit]");
        enter();
        tab.tab_to("#text");
        tab.tab_to("main form button");
        enter();
        tab.tab_to("nav a");
        enter();
        tab.tab_to("#step");
        tab.press("ArrowLeft");
        tab.tab_to(".slider button");
        enter();
        assert!(tab.text(".past").contains("This is the past."));
    });
}

#[test]
fn no_script_is_needed() {
    with_boards(|chromium, address| {
        let visitor = Visitor::new(chromium, address);
        let tab = visitor.open("/");
        tab.without_scripts();
        tab.go("/");
        let topic = begin(&tab);
        tab.write("#text", "An answer");
        tab.follow("main form .button");
        assert_eq!(tab.text(".thread .text").trim(), "An answer");
        tab.go(&format!("{topic}/edit"));
        tab.write("#text", "The green one.");
        tab.follow("main form .button");
        assert_eq!(tab.text(".first .text").trim(), "The green one.");
        tab.write("#q", "green");
        tab.follow(".search button");
        assert_eq!(tab.count(".list > li"), 1);
        tab.go("/b/tea");
        tab.eval("document.getElementById('step').value = document.getElementById('step').max - 1");
        tab.follow(".slider button");
        assert!(tab.text(".past").contains("This is the past."));
        assert!(tab.text(".list").contains("The blue one") && !tab.text(".list").contains("green"));
    });
}
