//! Values that try to reach another path or host, or to leak the credential.

use super::*;

/// Each value is either rejected, or arrives as one segment that decodes to itself, below the base.
#[tokio::test]
async fn no_path_value_leaves_its_segment() {
    let server = RecordingServer::start().await;
    let bench = loaded(&server).await;
    let refused = [
        ".",
        "..",
        "%2e",
        "%2e%2e",
        "%2E%2e",
        "%252e%252e",
        "%25252e.",
        "../admin",
        "..\\admin",
        "a/../b",
        "a%2f..%2fb",
        "a%2F%2e%2e%2Fb",
        "..;/admin",
        "..;x=1",
        "./x",
        "x/.",
        "a\rb",
        "a\nb",
        "a\0b",
        "a%00b",
        "a%0d%0aHost: evil",
        "",
        "..%5cadmin",
    ];
    let before = server.requests().len();
    for value in refused {
        let error =
            call(&bench, "/files/{name}", "GET", json!({"path_params": {"name": value}})).await.unwrap_err();
        assert_eq!(error.kind, Kind::Invalid, "{value:?}");
        assert!(error.message.contains("`name`"), "{error}");
    }
    assert_eq!(server.requests().len(), before, "something was sent");
    for (value, arrives) in [
        ("a/b", "/v1/files/a%2Fb"),
        ("//evil.example/x", "/v1/files/%2F%2Fevil.example%2Fx"),
        ("http://evil.example/", "/v1/files/http%3A%2F%2Fevil.example%2F"),
        ("@evil.example", "/v1/files/%40evil.example"),
        ("x?admin=1", "/v1/files/x%3Fadmin%3D1"),
        ("x#y", "/v1/files/x%23y"),
        ("a b+c", "/v1/files/a%20b%2Bc"),
        ("100%", "/v1/files/100%25"),
        ("...", "/v1/files/..."),
        ("v1..v2", "/v1/files/v1..v2"),
        ("ü", "/v1/files/%C3%BC"),
    ] {
        call(&bench, "/files/{name}", "GET", json!({"path_params": {"name": value}})).await.unwrap();
        let seen = server.requests().pop().unwrap();
        assert_eq!(seen.uri.to_string(), arrives, "{value}");
        let host = server.url.trim_start_matches("http://");
        assert_eq!(seen.headers["host"], host, "{value}");
    }
}

#[tokio::test]
async fn neither_query_nor_headers_nor_the_path_itself_change_who_is_asked() {
    let server = RecordingServer::start().await;
    let bench = loaded(&server).await;
    let with = |more: Value| {
        let mut all = json!({"path_params": {"name": "x"}});
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all
    };
    let before = server.requests().len();
    for headers in [
        json!({"Host": "evil.example"}),
        json!({"host ": "evil.example"}),
        json!({"X-Forwarded-Host": "evil.example"}),
        json!({"X-HTTP-Method-Override": "DELETE"}),
        json!({"Transfer-Encoding": "chunked"}),
        json!({"Content-Length": "5"}),
        json!({"Connection": "close"}),
        json!({"X-Tag": "a\r\nHost: evil.example"}),
        json!({"X-Other": "a\nb"}),
        json!({"X-Bad\r\nHost": "x"}),
        json!({"X Bad": "x"}),
    ] {
        let error =
            call(&bench, "/files/{name}", "GET", with(json!({"headers": headers}))).await.unwrap_err();
        assert_eq!(error.kind, Kind::Invalid, "{headers}: {error}");
    }
    for path in [
        "//evil.example/x",
        "http://evil.example/",
        "/files/../admin",
        "/files/{name}?x=1",
        "/files/{name}#x",
    ] {
        let error = call(&bench, path, "GET", with(json!({}))).await.unwrap_err();
        assert_eq!(error.kind, Kind::NotFound, "{path}: {error}");
    }
    let error = call(&bench, "/files/y", "GET", with(json!({}))).await.unwrap_err();
    assert_eq!(error.kind, Kind::Invalid, "{error}");
    assert_eq!(server.requests().len(), before, "something was sent");
    let query = json!({"query_params": {"q": "x&host=evil#\r\n", "odd name": "a/../b?"}});
    let got = call(&bench, "/files/{name}", "GET", with(query)).await.unwrap();
    assert!(got["notice"].as_str().unwrap().contains("odd name"), "{got}");
    assert_eq!(
        server.requests().pop().unwrap().uri,
        "/v1/files/x?q=x%26host%3Devil%23%0D%0A&odd%20name=a%2F..%2Fb%3F"
    );
}

#[tokio::test]
async fn a_credential_stays_with_its_origin() {
    let (own, other) = (RecordingServer::start().await, RecordingServer::start().await);
    let bench = bench();
    let text = document(&format!("{}/v1", own.url)).to_string();
    let load = |more: Value| {
        let mut all =
            json!({"name": "pets", "spec_content": text, "auth_header": "k3y", "auth_header_name": "X-Key"});
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all
    };
    // Another base URL is used: the credential is still that of the document's server.
    let got = bench.call("openapi_load", load(json!({"base_url_override": other.url}))).await.unwrap();
    assert_eq!(got["auth_origin"], own.url);
    assert!(got["notice"].as_str().unwrap().contains("auth_origin"), "{got}");
    let got = call(&bench, "/pets/{id}", "GET", json!({"path_params": {"id": 1}})).await.unwrap();
    assert!(got["notice"].as_str().unwrap().contains("was not sent"), "{got}");
    assert!(other.requests().pop().unwrap().headers.get("x-key").is_none());
    // Unless the owner of the credential names it.
    let named = json!({"base_url_override": other.url, "auth_origin": other.url});
    bench.call("openapi_load", load(named)).await.unwrap();
    call(&bench, "/pets/{id}", "GET", json!({"path_params": {"id": 1}})).await.unwrap();
    assert_eq!(other.requests().pop().unwrap().headers["x-key"], "k3y");
    // Loaded again without it, nothing is left of it.
    let again = json!({"name": "pets", "spec_content": text, "base_url_override": other.url});
    bench.call("openapi_load", again).await.unwrap();
    call(&bench, "/pets/{id}", "GET", json!({"path_params": {"id": 1}})).await.unwrap();
    assert!(other.requests().pop().unwrap().headers.get("x-key").is_none());
    // An operation with its own server does not get it either.
    bench.call("openapi_load", load(json!({}))).await.unwrap();
    let dry = call(&bench, "/elsewhere", "GET", json!({"dry_run": true})).await.unwrap();
    assert_eq!(dry["request"]["url"], "http://127.0.0.2:9/elsewhere");
    assert!(dry["request"]["headers"].get("x-key").is_none(), "{dry}");
}
