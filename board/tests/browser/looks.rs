//! Every page as axe sees it, light and dark, and on a narrow screen; and pictures of them.

use super::tab::{Tab, Visitor};
use super::writing::begin;
use super::{SECRET, with_boards, with_demo};

/// The pages, with a name for the picture.
fn pages(topic: &str) -> Vec<(&'static str, String)> {
    let all = [
        ("boards", "/".to_owned()),
        ("board", "/b/tea".to_owned()),
        ("thread", topic.to_owned()),
        ("write", "/b/tea/write".to_owned()),
        ("new-board", "/new".to_owned()),
        ("search", "/b/tea/search?q=water".to_owned()),
        ("nothing-found", "/b/tea/search?q=coal".to_owned()),
        ("edited", "/b/garden".to_owned()),
        ("names", "/names".to_owned()),
        ("not-found", "/b/nowhere".to_owned()),
        ("sign-in", "/moderate".to_owned()),
    ];
    all.into()
}

fn look(tab: &Tab<'_>, name: &str, path: &str) {
    tab.go(path);
    look_at_what_is_shown(tab, name);
}

fn look_at_what_is_shown(tab: &Tab<'_>, name: &str) {
    tab.size(1_000, 800);
    tab.scheme("light");
    tab.must_be_accessible();
    tab.picture(name);
    tab.scheme("dark");
    tab.must_be_accessible();
    tab.picture(&format!("{name}-dark"));
    tab.size(320, 640);
    tab.must_fit();
    tab.must_be_accessible();
    tab.scheme("light");
    tab.must_be_accessible();
    tab.picture(&format!("{name}-narrow"));
}

#[test]
fn every_page_is_accessible_and_fits_light_dark_and_narrow() {
    with_demo(|chromium, address| {
        let visitor = Visitor::new(chromium, address);
        let tab = visitor.open("/b/tea");
        let topic =
            tab.eval("document.querySelector('.list > li:last-child a').getAttribute('href')");
        let topic = topic.as_str().unwrap().to_owned();
        for (name, path) in pages(&topic) {
            look(&tab, name, &path);
        }
        tab.go("/moderate");
        tab.write("#author", "Grace");
        tab.write("#passphrase", "not this one");
        tab.follow("main form .button");
        tab.must_be_accessible();
        tab.write("#passphrase", SECRET);
        tab.follow("main form .button");
        let moderate = format!("{topic}/moderate");
        for (name, path) in [
            ("moderate", moderate.as_str()),
            ("moderate-board", "/b/tea/moderate"),
            ("admin", "/admin"),
        ] {
            look(&tab, name, path);
        }
        // The page of the inside renews itself.
        tab.eval("document.getElementById('live').dataset.old = 'yes'");
        tab.until("!document.getElementById('live').dataset.old");
        tab.go(&moderate);
        tab.write("#why", "It is about coffee");
        tab.follow("main form .button");
        assert!(tab.text(".gone").contains("Deleted by a moderator"));
        look(&tab, "log", "/moderate");
        look(&tab, "deleted", &topic);
        tab.go("/b/tea/moderate");
        tab.write("#why", "It is about coffee");
        tab.follow("main form .button");
        assert!(tab.text(".list h2").contains("the board tea"));
        look(&tab, "deleted-board", "/b/tea");
    });
}

#[test]
fn what_is_empty_in_conflict_or_past_is_accessible_and_fits_too() {
    with_boards(|chromium, address| {
        let visitor = Visitor::new(chromium, address);
        let tab = visitor.open("/");
        look(&tab, "no-boards", "/");
        let topic = begin(&tab);
        tab.go("/new");
        tab.write("#title", "Garden");
        tab.follow("main .button");
        look(&tab, "empty-board", "/b/garden");
        let edit = format!("{topic}/edit");
        tab.go(&edit);
        let other = visitor.open(&edit);
        tab.write("#text", "The *green* one, or the other one?");
        tab.follow("main form .button");
        other.write("#text", "The *yellow* one, or the other one?");
        other.follow("main form .button");
        look_at_what_is_shown(&other, "conflict");
        look(&tab, "history", &format!("{topic}/history"));
        tab.go("/b/tea/write");
        tab.write("#title", " ");
        tab.write("#text", " ");
        tab.follow("main form .button");
        // Both fields are marked, and not only told of.
        for field in ["#title", "#text"] {
            let width =
                format!("getComputedStyle(document.querySelector('{field}')).borderTopWidth");
            assert_eq!(tab.eval(&width), "2px", "{field}");
        }
        look_at_what_is_shown(&tab, "refused");
        tab.go("/b/tea");
        tab.eval("document.getElementById('step').value = document.getElementById('step').max - 1");
        tab.loads(|| tab.click(".slider button"));
        assert!(tab.text(".past").contains("This is the past."));
        look_at_what_is_shown(&tab, "past");
    });
}
