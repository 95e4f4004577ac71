//! What happens in a second tab, and the way back to a board that was away; and the slider of the versions.

use weald::forest::Forest;
use weald_board::model::Store;
use weald_board::{Config, Storage, serve};

use super::tab::Visitor;
use super::writing::begin;
use super::{chromium, config, with_boards, with_demo};

#[test]
fn a_second_tab_shows_what_is_written_and_keeps_the_draft() {
    with_boards(|chromium, address| {
        let visitor = Visitor::new(chromium, address);
        let tab = visitor.open("/");
        let topic = begin(&tab);
        let other = Visitor::new(chromium, address);
        let second = other.open(&topic);
        // The notice goes away again, here at once, but not as long as its link has the focus.
        second.write("#text", "A draft");
        second.eval(
            "told = '', left = 0, own = setTimeout,
             setTimeout = (act, after) => after === 8000 ? own(() => { act(); left += 1; }, 0) : own(act, after),
             new MutationObserver(() => { told += document.getElementById('news').textContent;
               document.querySelector('#news a')?.focus({preventScroll: true}); })
               .observe(document.getElementById('news'), {childList: true})",
        );
        tab.write("#text", "An answer");
        tab.follow("main form .button");
        second.until("document.querySelectorAll('.thread > li').length === 1");
        assert_eq!(second.text(".thread .text").trim(), "An answer");
        assert_eq!(
            second.eval("document.getElementById('text').value"),
            "A draft"
        );
        second.until("told.includes('just changed') && left === 1");
        // It leads to what is new, which is marked, and covers nothing that is filled in.
        assert_eq!(second.count("article.fresh"), 1);
        let link =
            "document.querySelector('#news a').hash === '#' + document.querySelector('.fresh').id";
        assert_eq!(second.eval(link), true);
        second.must_be_accessible();
        second.picture("live");
        for (width, height) in [(320, 640), (1_000, 300)] {
            second.size(width, height);
            for field in ["#text", "#author", ".write .button"] {
                let covered = second.eval(&format!(
                    "(async () => {{ const it = document.querySelector('{field}'); const news = document.getElementById('news');
                       news.textContent ||= 'Something has just changed here.';
                       it.scrollIntoView({{block: 'end', behavior: 'instant'}});
                       await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
                       const [a, b] = [it, news].map((one) => one.getBoundingClientRect());
                       return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom; }})()"
                ));
                assert_eq!(covered, false, "{field} at {width} by {height}");
            }
        }
        second.size(1_000, 800);
        second.eval("document.activeElement.blur()");
        second.until("document.getElementById('news').textContent === ''");
        let board = other.open("/b/tea");
        // The keyboard's place on the page survives.
        let focused = "document.querySelector('.list h2 a')";
        board.eval(&format!("{focused}.focus(), {focused}.dataset.old = 'yes'"));
        tab.go("/b/tea/write");
        tab.write("#title", "Another topic");
        tab.write("#text", "More");
        tab.follow("main form .button");
        board.until("document.querySelector('.list').innerText.includes('Another topic')");
        let focus = board.eval(
            "[document.activeElement.innerText, document.activeElement.dataset.old ?? 'new']",
        );
        assert_eq!(focus, serde_json::json!(["Which cup?", "new"]));
    });
}

#[test]
fn a_page_with_a_refused_answer_stays_live() {
    with_boards(|chromium, address| {
        let visitor = Visitor::new(chromium, address);
        let tab = visitor.open("/");
        let topic = begin(&tab);
        let other = Visitor::new(chromium, address).open(&topic);
        other.eval("document.getElementById('text').value = ' ', document.getElementById('author').value = 'Eve'");
        other.follow("main form .button");
        other.until("document.querySelector('[role=alert]') !== null");
        assert!(other.path().ends_with("/answer"), "{}", other.path());
        other.write("#text", "A draft");
        tab.write("#text", "An answer");
        tab.follow("main form .button");
        other.until("document.querySelectorAll('.thread > li').length === 1");
        let draft = "document.getElementById('text').value.trim()";
        assert_eq!(other.eval(draft), "A draft");
    });
}

#[test]
fn a_tab_comes_back_to_a_board_that_was_away() {
    chromium::with_chromium(|chromium| {
        let forest = Forest::new();
        weald::block_on(async {
            let config = |address| Config {
                address,
                storage: Storage::Open(Store::Memory(forest.clone())),
                ..config()
            };
            let board = serve(config("127.0.0.1:0".parse().unwrap())).await.unwrap();
            let address = board.address();
            let visitor = Visitor::new(chromium, address);
            let (tab, topic) = weald::block_in_place(|| {
                let tab = visitor.open("/");
                let topic = begin(&tab);
                (tab, topic)
            });
            let second = weald::block_in_place(|| visitor.open(&topic));
            // Its stream is there when it has shown something.
            weald::block_in_place(|| {
                tab.write("#text", "Before");
                tab.follow("main form .button");
                second.until("document.querySelectorAll('.thread > li').length === 1");
            });
            board.stop().await.unwrap();
            let board = serve(config(address)).await.unwrap();
            weald::block_in_place(|| {
                tab.go(&topic);
                tab.write("#text", "After");
                tab.follow("main form .button");
                second.until("document.querySelectorAll('.thread > li').length === 2");
                assert_eq!(second.text(".thread > li:last-child .text").trim(), "After");
            });
            board.stop().await.unwrap();
        });
    });
}

#[test]
fn the_slider_goes_through_time_with_the_mouse() {
    with_demo(|chromium, address| {
        let visitor = Visitor::new(chromium, address);
        let tab = visitor.open("/b/garden");
        let topics = tab.count(".list > li");
        assert_eq!(topics, 2);
        // It tells what it stands for, and what it would lead to.
        tab.eval(
            "output = document.querySelector('output'), step = document.getElementById('step'), first = output.textContent,
             told = () => [output.textContent, step.getAttribute('aria-valuetext')],
             shown = '', new MutationObserver(() => { shown += output.textContent; }).observe(output, {childList: true}),
             said = '', new MutationObserver(() => { said += told()[1]; }).observe(step, {attributeFilter: ['aria-valuetext']})",
        );
        let tells = |how: &str| {
            format!("told().every((it) => it.startsWith('Version ') && it {how} first)")
        };
        assert_eq!(tab.eval(&tells("===")), true);
        tab.eval("document.getElementById('step').focus()");
        tab.press("ArrowLeft");
        let back = "1 version before the newest version";
        tab.until(&format!(
            "shown.includes('{back}') && said.includes('{back}')"
        ));
        tab.until(&tells("!=="));
        tab.press("ArrowRight");
        tab.until(&tells("==="));
        // The mouse lets go of it where the first version is.
        tab.loads(|| tab.drag_to_left("#step"));
        assert!(
            tab.text(".past").contains("This is the past."),
            "{}",
            tab.path()
        );
        assert_eq!(tab.count(".list > li"), 0);
        tab.must_be_accessible();
        tab.follow(".past a");
        assert_eq!(tab.path(), "/b/garden");
        tab.write("#at", "2020-01-01T00:00:00");
        tab.eval("document.getElementById('at').value = '2020-01-01T00:00:00'");
        tab.follow(".slider:last-of-type button");
        assert_eq!(tab.text("h1"), "Not Found");
    });
}
