//! The route table against the real router.

use super::web_fixture::{TOKEN, WebFixture, request, send};
use crate::{ADMIN_ROUTES, Access, ROUTES};
use axum::body::Body;
use std::collections::BTreeSet;

/// Routes of the router, parsed from its debug output.
fn mounted_paths(router: &axum::Router) -> BTreeSet<String> {
    let text = format!("{router:?}");
    let routes = text.split("fallback_router").next().unwrap();
    routes.split('"').filter(|part| part.starts_with('/')).map(str::to_owned).collect()
}

/// A trailing slash is the same route.
fn without_slash(path: &str) -> &str {
    path.strip_suffix('/').unwrap_or(path)
}

#[tokio::test]
async fn every_mounted_route_is_in_the_table() {
    let mounted = mounted_paths(&WebFixture::new().rest(false));
    assert!(mounted.len() >= 8, "the router no longer tells its paths: {mounted:?}");
    for path in &mounted {
        assert!(ROUTES.iter().any(|route| route.path == without_slash(path)), "{path} is not in the table");
    }
    let of_others = |path: &str| path.starts_with("/mcp") || path.starts_with("/.well-known");
    for route in ROUTES.iter().filter(|route| !of_others(route.path)) {
        assert!(mounted.contains(route.path), "{} is in the table only", route.path);
    }
}

#[tokio::test]
async fn the_admin_port_has_exactly_the_routes_of_its_table() {
    let mounted = mounted_paths(&WebFixture::new().admin(false));
    let listed: BTreeSet<String> = ADMIN_ROUTES.iter().map(|route| route.path.to_owned()).collect();
    assert_eq!(mounted, listed);
}

#[tokio::test]
async fn every_method_of_every_path_does_what_the_table_says() {
    let bed = WebFixture::new();
    for (router, routes) in [(bed.secured(), ROUTES), (bed.admin(true), ADMIN_ROUTES)] {
        check_every_method(&router, routes).await;
    }
}

async fn check_every_method(router: &axum::Router, routes: &'static [crate::Route]) {
    for path in mounted_paths(router) {
        let url = path.replace("{name}", "echo").replace("{profile}", "small").replace("{id}", "x");
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"] {
            let listed =
                routes.iter().find(|route| route.path == without_slash(&path) && route.method == method);
            let ask = |token: bool| {
                let plain = request(method, &url).header("content-type", "application/json");
                let known =
                    if token { plain.header("authorization", format!("Bearer {TOKEN}")) } else { plain };
                send(router, known.body(Body::empty()).unwrap())
            };
            let open = listed.is_some_and(|route| route.access == Access::Open);
            let without = ask(false).await;
            assert_eq!(without.status == 401, !open, "{method} {url} {}", without.status);
            assert_eq!(without.header("www-authenticate"), if open { "" } else { "Bearer" });
            let with = ask(true).await;
            assert_eq!(with.status == 405, listed.is_none(), "{method} {url} {}", with.status);
            assert_ne!(with.status, 401);
            // The token of these tests is not an administrator's.
            let admin = listed.is_some_and(|route| route.access == Access::Admin);
            assert_eq!(with.status == 403, admin, "{method} {url} {}", with.status);
            if listed.is_none() {
                assert!(!with.header("allow").is_empty());
                assert_eq!(with.json()["error"]["kind"], "invalid");
            }
        }
    }
}

#[tokio::test]
async fn what_is_nowhere_is_401_first_and_404_then() {
    let router = WebFixture::new().secured();
    for path in [
        "/",
        "/nowhere",
        "/health/",
        "/health/x",
        "/.well-known/x",
        "/../tools",
        "/TOOLS",
        "//tools",
        "/tools//",
    ] {
        let without = send(&router, request("GET", path).body(Body::empty()).unwrap()).await;
        assert_eq!(without.status, 401, "{path}");
        let known = request("GET", path).header("authorization", format!("Bearer {TOKEN}"));
        let with = send(&router, known.body(Body::empty()).unwrap()).await;
        assert_eq!(with.status, 404, "{path}");
        assert_eq!(with.json()["error"]["kind"], "not_found");
    }
}
