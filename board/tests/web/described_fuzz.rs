//! Random requests, made by the description of the API: some as it wants them, some nearly so. For any request, the
//! answer has a described status and a described kind, and is not a mistake of the board.

use serde_json::{Value, json};

use super::client::*;

/// How many requests there are in the suite; with `WEALD_SOAK` there are this many for each second.
const REQUESTS: u64 = 400;

/// Random numbers by xorshift, the same for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).unwrap()
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    /// A text that is a little, much, or not at all like what is wanted.
    fn text(&mut self) -> String {
        let parts = [
            "a",
            "Tea",
            " ",
            "\n",
            "é",
            "\u{202e}",
            "\u{0}",
            "%2e%2e",
            "<b>",
            "\"",
            "0",
            "-1",
            "1.2",
            "🫖",
            "'",
            "18446744073709551616",
            "2026-11-23T21:44",
            "null",
            "&",
            "#",
        ];
        let length = match self.below(20) {
            0 => 0,
            1 => 3_000,
            _ => 1 + self.below(4),
        };
        (0..length).map(|_| *self.pick(&parts)).collect()
    }

    /// A value that a schema allows, or now and then another one.
    fn value(&mut self, schema: &Value, document: &Value) -> Value {
        if let Some(place) = schema["$ref"].as_str() {
            let found = document.pointer(place.trim_start_matches('#')).unwrap();
            return self.value(&found.clone(), document);
        }
        if self.one_in(12) {
            let text = self.text();
            return self
                .pick(&[
                    json!(null),
                    json!(-1),
                    json!([]),
                    json!({}),
                    json!(1.5),
                    json!(text),
                ])
                .clone();
        }
        let kind = match &schema["type"] {
            Value::Array(kinds) => self.pick(kinds).clone(),
            kind => kind.clone(),
        };
        match kind.as_str() {
            Some("object") => {
                let no_fields = serde_json::Map::new();
                let mut fields = serde_json::Map::new();
                for (name, field) in schema["properties"].as_object().unwrap_or(&no_fields) {
                    if !self.one_in(6) {
                        fields.insert(name.clone(), self.value(field, document));
                    }
                }
                if self.one_in(20) {
                    fields.insert(self.text(), json!(1));
                }
                Value::Object(fields)
            }
            Some("integer") => json!(self.below(8)),
            Some("boolean") => json!(self.one_in(2)),
            Some("null") => Value::Null,
            _ => json!(self.text()),
        }
    }

    /// A parameter: often one that is there.
    fn parameter(&mut self, name: &str) -> String {
        let known: &[&str] = match name {
            "board" => &["tea", "tea", "tea", "milk", "new"],
            "message" | "page" => &["1", "2", "3", "4", "0", "01", "99"],
            "at" | "of" | "since" => &["1.1", "2026-11-23", "", "1.2"],
            "If-Match" | "If-None-Match" => &["*", "\"1.1\"", "W/\"x\"", "x"],
            _ => &["a", "tea", "b"],
        };
        match self.one_in(5) {
            true => self.text(),
            false => (*self.pick(known)).to_owned(),
        }
    }
}

#[test]
fn soak_whatever_is_asked_the_answer_is_one_that_is_described() {
    let seconds = std::env::var("WEALD_SOAK").map_or(1, |seconds| seconds.parse().unwrap());
    with_board(|mut program| {
        program.json("POST", "/api/boards", &[], "{\"title\": \"Tea\"}");
        let key = ("Authorization", "Bearer 0123456789abcdef");
        for text in ["one", "two"] {
            let said = json!({"title": "T", "text": text}).to_string();
            program.json("POST", "/api/boards/tea/messages", &[key], &said);
        }
        let document = program.get("/api/openapi.json").value();
        for seed in 1..=REQUESTS * seconds {
            // Neighbouring seeds would begin alike.
            let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            ask(&mut program, &document, &mut dice, seed);
        }
        assert_eq!(program.get("/b/tea").status, 200);
        assert_eq!(program.get("/readyz").status, 200);
    });
}

fn ask(program: &mut Browser, document: &Value, dice: &mut Dice, seed: u64) {
    let paths: Vec<_> = document["paths"].as_object().unwrap().iter().collect();
    let (path, operations) = *dice.pick(&paths);
    let operations: Vec<_> = operations.as_object().unwrap().iter().collect();
    let (method, operation) = *dice.pick(&operations);
    let (mut place, mut query, mut headers) = (format!("/api{path}"), Vec::new(), Vec::new());
    for parameter in operation["parameters"].as_array().unwrap() {
        let at = parameter["$ref"].as_str().unwrap().trim_start_matches('#');
        let parameter = document.pointer(at).unwrap();
        let name = parameter["name"].as_str().unwrap();
        let value = dice.parameter(name);
        match parameter["in"].as_str() {
            Some("path") => place = place.replace(&format!("{{{name}}}"), &escaped(&value)),
            Some("query") if dice.one_in(2) => query.push(format!("{name}={}", escaped(&value))),
            Some("header") if dice.one_in(2) => {
                headers.push((name, value.replace(|c: char| c.is_control(), "")));
            }
            _ => {}
        }
    }
    if path.ends_with("/events") {
        // A stream would not end.
        headers.push(("Last-Event-ID", "x".to_owned()));
    }
    if dice.one_in(2) {
        headers.push(("Authorization", "Bearer 0123456789abcdef".to_owned()));
    }
    let content = operation
        .pointer("/requestBody/content")
        .and_then(Value::as_object);
    let (kind, schema) = content
        .and_then(|all| all.iter().next())
        .map_or(("application/json", Value::Null), |(kind, content)| {
            (kind.as_str(), content["schema"].clone())
        });
    let body = match (schema, dice.one_in(15)) {
        (Value::Null, _) => String::new(),
        (_, true) => dice.text(),
        (schema, false) => dice.value(&schema, document).to_string(),
    };
    if !dice.one_in(20) {
        headers.push(("Content-Type", kind.to_owned()));
    }
    let place = match query.is_empty() {
        true => place,
        false => format!("{place}?{}", query.join("&")),
    };
    let headers: Vec<_> = headers
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let method = method.to_ascii_uppercase();
    let answered = program.ask(&method, &place, &headers, &body);
    let told = format!("seed {seed}: {method} {place} {headers:?} {body}: {answered:?}");
    assert!(answered.status < 500, "{told}");
    // A path whose parameter is empty, or has an end of a segment, is another path.
    let is_other = place.contains("//") || place.ends_with('/') || answered.status == 405;
    if !is_other {
        judge(&operation["responses"], &answered, &told);
    }
}

/// The answer is one of those that are described, and of the kind that is described.
fn judge(responses: &Value, answered: &Answered, told: &str) {
    let described = &responses[answered.status.to_string()];
    assert!(!described.is_null(), "not described: {told}");
    let kind = answered.header("content-type");
    match answered.status {
        304 => {}
        400.. => {
            assert_eq!(kind, "application/problem+json", "{told}");
            assert_eq!(answered.value()["status"], answered.status, "{told}");
        }
        _ => {
            let kinds = described["content"].as_object().unwrap();
            assert!(kinds.contains_key(kind), "{told}");
        }
    }
}

fn escaped(text: &str) -> String {
    let byte = |byte: u8| match byte.is_ascii_alphanumeric() || b".-".contains(&byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02x}"),
    };
    text.bytes().map(byte).collect()
}
