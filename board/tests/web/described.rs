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
        let document = program.get("/api/openapi.json").value();
        let mut seen = 0;
        for (path, operations) in document["paths"].as_object().unwrap() {
            // A stream would not end, and the log is for moderators.
            if path.ends_with("/events") || path == "/audit" {
                continue;
            }
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
                let mut ask = |query: &str| program.get(&format!("/api{path}{query}")).status;
                let pattern = schema["pattern"].as_str();
                let takes_empty = schema["type"] == "string"
                    && pattern.is_none_or(|pattern| pattern.ends_with(")?$"));
                let status = ask(&format!("?{name}="));
                assert_eq!(ask(""), 200, "{path}");
                assert_eq!(status == 200, takes_empty, "{path} {name}: {status}");
                for value in ["", "1"] {
                    let twice = format!("?{name}={value}&{name}={value}");
                    assert_eq!(ask(&twice), 400, "{path}{twice}");
                }
                seen += 1;
            }
        }
        assert!(seen > 8, "{seen}");
    });
}
