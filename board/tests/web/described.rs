//! The description of the API and the routes agree, in both directions.

use super::client::*;

const METHODS: [&str; 5] = ["GET", "PUT", "POST", "DELETE", "PATCH"];

#[test]
fn what_is_described_is_there_and_nothing_else() {
    with_board(|mut program| {
        program.json("POST", "/api/boards", &[], "{\"title\": \"Tea\"}");
        let document = program.get("/api/openapi.json").value();
        assert_eq!(document["openapi"], "3.1.0");
        // So that the stream of events is refused, which would not end.
        let no_stream = ("Last-Event-ID", "x");
        let paths = document["paths"].as_object().unwrap();
        for (path, operations) in paths {
            let concrete = path.replace("{board}", "tea").replace("{message}", "77");
            for method in METHODS {
                let answered = program.json(method, &format!("/api{concrete}"), &[no_stream], "");
                let is_described = operations.get(method.to_ascii_lowercase()).is_some();
                assert_eq!(
                    answered.status != 405,
                    is_described,
                    "{method} {path}: {answered:?}"
                );
                let Some(operation) = operations.get(method.to_ascii_lowercase()) else {
                    continue;
                };
                let responses = operation["responses"].as_object().unwrap();
                assert!(
                    responses.contains_key(&answered.status.to_string()),
                    "{method} {path}: {answered:?}"
                );
                for status in responses.values().filter_map(|it| it["$ref"].as_str()) {
                    let name = status.rsplit('/').next().unwrap();
                    assert!(
                        document["components"]["responses"].get(name).is_some(),
                        "{name}"
                    );
                }
            }
        }
    });
}

/// The routes as they are written down, so that none is forgotten in the description.
#[test]
fn every_route_is_described() {
    let source = include_str!("../../src/web/routes.rs");
    let api = source
        .split("fn api()")
        .nth(1)
        .unwrap()
        .split("fallback")
        .next()
        .unwrap();
    let document: serde_json::Value =
        serde_json::from_str(include_str!("../../assets/openapi.json")).unwrap();
    let routes = api.split('"').skip(1).step_by(2);
    let routes: Vec<_> = routes
        .map(|route| route.strip_prefix("/api").expect("it is for programs"))
        .collect();
    assert!(routes.len() > 8, "{routes:?}");
    for route in &routes {
        assert!(document["paths"].get(*route).is_some(), "{route}");
    }
    assert_eq!(document["paths"].as_object().unwrap().len(), routes.len());
}

/// An answer to a request whose query was not as described could be one to another question.
#[test]
fn a_parameter_that_is_empty_or_there_twice_counts_as_it_is_described() {
    with_board(|mut program| {
        program.json("POST", "/api/boards", &[], "{\"title\": \"Tea\"}");
        let said = "{\"title\": \"T\", \"text\": \"one\"}";
        let said = program.json("POST", "/api/boards/tea/messages", &[], said);
        let message = said.value()["id"].to_string();
        let version = said.value()["version"].as_str().unwrap().to_owned();
        let document = program.get("/api/openapi.json").value();
        let mut seen = 0;
        for (path, operations) in document["paths"].as_object().unwrap() {
            // The log is for moderators.
            if path == "/audit" {
                continue;
            }
            // It ends only if it is refused.
            let is_stream = path.ends_with("/events");
            let path = path
                .replace("{board}", "tea")
                .replace("{message}", &message);
            let parameters = operations["get"]["parameters"].as_array();
            for parameter in parameters.into_iter().flatten() {
                let place = parameter["$ref"].as_str().unwrap().trim_start_matches('#');
                let parameter = document.pointer(place).unwrap();
                if parameter["in"] != "query" {
                    continue;
                }
                let name = parameter["name"].as_str().unwrap();
                let schema = &parameter["schema"];
                let mut ask = |query: &str| program.get(&format!("/api{path}{query}"));
                let pattern = schema["pattern"].as_str();
                let takes_empty = schema["type"] == "string"
                    && pattern.is_none_or(|pattern| pattern.ends_with(")?$"));
                let mut tag = String::new();
                if !is_stream {
                    let status = ask(&format!("?{name}=")).status;
                    assert_eq!(status == 200, takes_empty, "{path} {name}: {status}");
                    let usual = ask("");
                    assert_eq!(usual.status, 200, "{path}");
                    tag.push_str(usual.header("etag"));
                }
                // Not even a client that has the answer, or knows where it was, gets it.
                let known = [("If-None-Match", &*tag), ("Last-Event-ID", &*version)];
                for (value, headers) in [("", &known[..0]), ("1", &[]), ("", &known)] {
                    let twice = format!("/api{path}?{name}={value}&{name}={value}");
                    let refused = program.ask("GET", &twice, headers, "");
                    assert_eq!(refused.status, 400, "{twice}");
                }
                seen += 1;
            }
        }
        assert!(seen > 8, "{seen}");
    });
}

#[test]
fn a_page_is_refused_too_if_a_part_of_its_query_is_there_twice() {
    with_board(|mut browser| {
        let topic = topic(&mut browser, "one");
        let of = browser.get("/api/boards/tea").value()["board"]["version"].to_string();
        let of = of.trim_matches('"');
        for query in [
            format!("step=1&step=1&last=1&of={of}"),
            format!("step=1&last=1&last=1&of={of}"),
            format!("step=1&last=1&of={of}&of={of}"),
        ] {
            let refused = browser.get(&format!("/b/tea?{query}"));
            assert_eq!(refused.status, 400, "{query}");
        }
        let refused = browser.get("/names?done=changed&done=changed");
        assert_eq!(refused.status, 400, "{refused:?}");
        for path in ["/", "/b/tea", &topic] {
            let tag = browser.get(path).header("etag").to_owned();
            for (query, status) in [("page=1&page=1", 400), ("page=", 404)] {
                let path = format!("{path}?{query}");
                let refused = browser.ask("GET", &path, &[("If-None-Match", &tag)], "");
                assert_eq!(refused.status, status, "{path}");
            }
        }
    });
}
