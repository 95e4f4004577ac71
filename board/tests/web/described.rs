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
