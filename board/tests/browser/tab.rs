//! A tab of the browser, and what a visitor does in it.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::chromium::Chromium;

/// A tab. Tabs of one visitor share their cookies.
pub(crate) struct Tab<'a> {
    chromium: &'a Chromium,
    session: String,
    base: String,
}

/// A visitor with cookies of their own.
pub(crate) struct Visitor<'a> {
    chromium: &'a Chromium,
    context: String,
    base: String,
}

impl<'a> Visitor<'a> {
    pub(crate) fn new(chromium: &'a Chromium, address: SocketAddr) -> Self {
        let made = chromium.ask(None, "Target.createBrowserContext", json!({}));
        let context = made.unwrap()["browserContextId"]
            .as_str()
            .unwrap()
            .to_owned();
        Self {
            chromium,
            context,
            base: format!("http://{address}"),
        }
    }

    /// Opens a page in a new tab.
    pub(crate) fn open(&self, path: &str) -> Tab<'a> {
        let chromium = self.chromium;
        let place = json!({"url": "about:blank", "browserContextId": self.context});
        let made = chromium.ask(None, "Target.createTarget", place).unwrap();
        let target = json!({"targetId": made["targetId"], "flatten": true});
        let session = chromium.ask(None, "Target.attachToTarget", target).unwrap();
        let session = session["sessionId"].as_str().unwrap().to_owned();
        chromium
            .ask(Some(&session), "Page.enable", json!({}))
            .unwrap();
        let tab = Tab {
            chromium: self.chromium,
            session,
            base: self.base.clone(),
        };
        tab.size(1_000, 800);
        tab.go(path);
        tab
    }
}

impl Tab<'_> {
    pub(crate) fn ask(&self, method: &str, params: Value) -> Value {
        let chromium = self.chromium;
        let answer = chromium.ask(Some(&self.session), method, params);
        answer.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Goes to a page and waits until it is there.
    pub(crate) fn go(&self, path: &str) {
        let url = format!("{}{path}", self.base);
        self.loads(|| {
            self.ask("Page.navigate", json!({ "url": url }));
        });
    }

    /// Does something that leads to another page, and waits until that is there.
    pub(crate) fn loads(&self, act: impl FnOnce()) {
        self.chromium.forget(&self.session);
        act();
        let loaded = self.chromium.wait_for(&self.session, "Page.loadEventFired");
        assert!(loaded.is_some(), "no page comes after {}", self.path());
    }

    /// The value of an expression of JavaScript; of a promise, what comes of it.
    pub(crate) fn eval(&self, script: &str) -> Value {
        let params = json!({"expression": script, "awaitPromise": true, "returnByValue": true});
        let mut answer = self.ask("Runtime.evaluate", params);
        let wrong = answer.get("exceptionDetails");
        assert!(wrong.is_none(), "{script}: {wrong:?}");
        answer["result"]["value"].take()
    }

    /// Waits until an expression is true.
    pub(crate) fn until(&self, script: &str) {
        self.eval(&format!(
            "new Promise((done) => {{ const look = () => ({script}) ? done() : setTimeout(look, 20); look(); }})"
        ));
    }

    pub(crate) fn text(&self, selector: &str) -> String {
        let script = format!(
            "document.querySelector({})?.innerText ?? ''",
            quoted(selector)
        );
        self.eval(&script).as_str().unwrap().to_owned()
    }

    pub(crate) fn count(&self, selector: &str) -> u64 {
        let script = format!("document.querySelectorAll({}).length", quoted(selector));
        self.eval(&script).as_u64().unwrap()
    }

    /// The path of the page, with its query.
    pub(crate) fn path(&self) -> String {
        let path = self.eval("location.pathname + location.search");
        path.as_str().unwrap().to_owned()
    }

    /// Writes into a field, in the place of what is in it.
    pub(crate) fn write(&self, selector: &str, text: &str) {
        let field = quoted(selector);
        self.eval(&format!(
            "document.querySelector({field}).focus(), document.querySelector({field}).select()"
        ));
        self.ask("Input.insertText", json!({ "text": text }));
    }

    /// Clicks with the mouse on what is there, which must be seen.
    pub(crate) fn click(&self, selector: &str) {
        let script = format!(
            "(() => {{ const it = document.querySelector({}); it.scrollIntoView({{block: 'center', behavior: 'instant'}});
               const box = it.getClientRects()[0]; return [box.x + box.width / 2, box.y + box.height / 2]; }})()",
            quoted(selector)
        );
        let place = self.eval(&script);
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({"type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1});
            self.ask("Input.dispatchMouseEvent", event);
        }
    }

    /// Takes a slider with the mouse, and lets go of it at its left end.
    pub(crate) fn drag_to_left(&self, selector: &str) {
        let script = format!(
            "(() => {{ const it = document.querySelector({}); it.scrollIntoView({{block: 'center', behavior: 'instant'}});
               const box = it.getBoundingClientRect(); return [box.x, box.right, box.y + box.height / 2]; }})()",
            quoted(selector)
        );
        let place = self.eval(&script);
        let [left, right, y] = [0, 1, 2].map(|at| place[at].as_f64().unwrap());
        for (kind, x) in [
            ("mousePressed", right - 8.0),
            ("mouseMoved", left + 40.0),
            ("mouseMoved", left),
            ("mouseReleased", left),
        ] {
            let event = json!({"type": kind, "x": x, "y": y, "button": "left", "buttons": 1, "clickCount": 1});
            self.ask("Input.dispatchMouseEvent", event);
        }
    }

    /// Clicks, and waits for the page that comes of it.
    pub(crate) fn follow(&self, selector: &str) {
        self.loads(|| self.click(selector));
    }

    /// Presses a key: `Tab`, `Enter`, or an arrow.
    pub(crate) fn press(&self, key: &str) {
        let (code, text) = match key {
            "Tab" => (9, ""),
            "Enter" => (13, "\r"),
            "ArrowLeft" => (37, ""),
            "ArrowRight" => (39, ""),
            other => panic!("no key {other}"),
        };
        let kind = if text.is_empty() {
            "rawKeyDown"
        } else {
            "keyDown"
        };
        for kind in [kind, "keyUp"] {
            let mut event =
                json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code});
            if kind == "keyDown" {
                event["text"] = text.into();
            }
            self.ask("Input.dispatchKeyEvent", event);
        }
    }

    /// Presses the tabulator until an element has the focus, which must show that it has.
    pub(crate) fn tab_to(&self, selector: &str) {
        for _ in 0..60 {
            let script = format!("document.activeElement.matches({})", quoted(selector));
            if self.eval(&script) == true {
                let seen = self.eval(
                    "(() => { const style = getComputedStyle(document.activeElement);
                       return style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2; })()",
                );
                assert_eq!(seen, true, "{selector} does not show that it has the focus");
                return;
            }
            self.press("Tab");
        }
        panic!("the keyboard does not reach {selector} on {}", self.path());
    }

    pub(crate) fn size(&self, width: u32, height: u32) {
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500});
        self.ask("Emulation.setDeviceMetricsOverride", metrics);
    }

    pub(crate) fn scheme(&self, scheme: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.ask(
            "Emulation.setEmulatedMedia",
            json!({ "features": features }),
        );
    }

    pub(crate) fn without_scripts(&self) {
        self.ask(
            "Emulation.setScriptExecutionDisabled",
            json!({"value": true}),
        );
    }

    /// Makes a picture of the whole page, for people to look at.
    pub(crate) fn picture(&self, name: &str) {
        // The browser paints only the tab that is in front.
        self.ask("Page.bringToFront", json!({}));
        let shot = self.ask(
            "Page.captureScreenshot",
            json!({"captureBeyondViewport": true}),
        );
        let place = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("board-pictures");
        std::fs::create_dir_all(&place).unwrap();
        let bytes = of_base64(shot["data"].as_str().unwrap());
        assert!(bytes.starts_with(b"\x89PNG"));
        std::fs::write(place.join(format!("{name}.png")), bytes).unwrap();
    }

    /// The page is as wide as the window, and no wider.
    pub(crate) fn must_fit(&self) {
        let wide = self.eval(
            "[...document.querySelectorAll('body, body *')].filter((it) => it.getBoundingClientRect().right > innerWidth + 1
               && !it.closest('.wide, pre, .unseen')).map((it) => it.outerHTML.slice(0, 100))",
        );
        assert_eq!(wide, json!([]), "{} is too wide", self.path());
        let scrolls = self.eval("document.documentElement.scrollWidth > innerWidth");
        assert_eq!(scrolls, false, "{} is too wide", self.path());
    }

    /// What axe finds wrong with the page, by the rules of WCAG 2.2 AA and by what is good practice. The only rule that
    /// is new in WCAG 2.2, about the size of what is clicked on, has to be asked for.
    pub(crate) fn must_be_accessible(&self) {
        const AXE: &str = include_str!("axe.min.js");
        if self.eval("typeof axe") == "undefined" {
            self.ask("Runtime.evaluate", json!({ "expression": AXE }));
        }
        let found = self.eval(
            "axe.run({resultTypes: ['violations'], rules: {'target-size': {enabled: true}}}).then((it) => it.violations.map((it) =>
               `${it.id}: ${it.help}: ${it.nodes.map((it) => it.html + ' ' + it.failureSummary).join('; ')}`))",
        );
        assert_eq!(found, json!([]), "{}", self.path());
    }
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn of_base64(text: &str) -> Vec<u8> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let text = text.trim_end_matches('=').as_bytes();
    let mut bytes = Vec::with_capacity(text.len());
    for group in text.chunks(4) {
        let bits = group
            .iter()
            .fold(0_u32, |bits, byte| bits << 6 | u32::from(digit(*byte)));
        let bits = bits << (6 * (4 - group.len()));
        bytes.extend(&bits.to_be_bytes()[1..group.len()]);
    }
    bytes
}
