//! All routes of all ports, and who may use them. The edge refuses a route that is not in its port's table.

use http::Method;

/// Who may use a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Anyone who reaches the port: probes and discovery.
    Open,
    /// A caller that the edge has authenticated.
    Caller,
    /// A caller with the scope `admin`.
    Admin,
}

impl Access {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Caller => "caller",
            Self::Admin => "admin",
        }
    }
}

/// One method of one path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    pub method: &'static str,
    /// As in the router. A last segment `{*rest}` covers all routes beneath.
    pub path: &'static str,
    pub access: Access,
    /// Description for the generated reference.
    pub about: &'static str,
}

const fn open(method: &'static str, path: &'static str, about: &'static str) -> Route {
    Route { method, path, access: Access::Open, about }
}

const fn caller(method: &'static str, path: &'static str, about: &'static str) -> Route {
    Route { method, path, access: Access::Caller, about }
}

const fn admin(method: &'static str, path: &'static str, about: &'static str) -> Route {
    Route { method, path, access: Access::Admin, about }
}

/// The main port. Calls come first, because the table is searched from the top for every request.
pub const ROUTES: &[Route] = &[
    caller("POST", "/mcp", "MCP over streamable HTTP, everything in one catalogue"),
    caller("POST", "/tools/{name}", "Call a tool"),
    caller("POST", "/mcp/{profile}", "MCP over streamable HTTP, one profile"),
    caller("POST", "/prompts/{name}", "Fill in a prompt"),
    caller("GET", "/mcp", "Stream of an older client's session"),
    caller("DELETE", "/mcp", "End an older client's session"),
    caller("GET", "/mcp/{profile}", "Stream of an older client's session"),
    caller("DELETE", "/mcp/{profile}", "End an older client's session"),
    caller("GET", "/tools", "List the tools"),
    caller("GET", "/tools/{name}", "Describe one tool"),
    caller("GET", "/prompts", "List the prompts"),
    caller("GET", "/v0.1/servers", "Registry API: list the servers of the catalogue"),
    caller("GET", "/v0.1/servers/{name}/versions", "Registry API: versions of one server"),
    caller("GET", "/v0.1/servers/{name}/versions/{version}", "Registry API: one version of one server"),
    admin("GET", "/metrics", "Metrics for Prometheus"),
    caller("GET", "/openapi.json", "This interface as an OpenAPI document"),
    open("GET", "/health", "Whether the process is up"),
    open("GET", "/ready", "Whether calls can be made; for callers also the state of all checks and sources"),
    open("GET", "/.well-known/{*rest}", "Discovery documents"),
];

/// The admin port.
pub const ADMIN_ROUTES: &[Route] = &[
    caller("GET", "/servers", "List the upstream servers"),
    caller("GET", "/servers/{id}", "Show the state of one server"),
    admin("POST", "/servers/{id}/connect", "Connect a server now"),
    admin("POST", "/servers/{id}/disconnect", "End a server's connection or program"),
    caller("POST", "/servers/{id}/auth/start", "Start a login"),
    caller("GET", "/servers/{id}/auth/status", "Show the state of a login"),
    caller(
        "POST",
        "/servers/{id}/auth/complete",
        "Complete a login with the pasted answer, or set an API key",
    ),
    caller("POST", "/servers/{id}/auth/logout", "End a login"),
    open("GET", "/auth/start/{id}", "Ask a person to confirm a login"),
    open("POST", "/auth/start/{id}", "Start that login in this browser"),
    open("GET", "/auth/callback", "Redirect URI of browser logins"),
    caller("GET", "/openapi.json", "This interface as an OpenAPI document"),
    open("GET", "/health", "Whether the process is up"),
];

impl Route {
    fn covers(&self, path: &str) -> bool {
        match self.path.strip_suffix("{*rest}") {
            Some(stem) => path.len() > stem.len() && path.starts_with(stem),
            // A trailing slash is the same route, if the router has it at all.
            None => self.path == path || path.strip_suffix('/') == Some(self.path),
        }
    }

    fn answers(&self, method: &Method) -> bool {
        self.method == method.as_str() || (self.method == "GET" && *method == Method::HEAD)
    }
}

/// Who may use the route that a request was matched to. `None`: it is not in the table and is refused. A method that
/// the path does not have requires a caller, who then gets the list of allowed methods.
pub(crate) fn access(table: &[Route], method: &Method, matched: &str) -> Option<Access> {
    let mut known = None;
    for route in table.iter().filter(|route| route.covers(matched)) {
        if route.answers(method) {
            return Some(route.access);
        }
        known = Some(Access::Caller);
    }
    known
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_who_may_use_a_route() {
        for (method, path, wanted) in [
            (Method::POST, "/tools/{name}", Some(Access::Caller)),
            (Method::GET, "/health", Some(Access::Open)),
            (Method::HEAD, "/health", Some(Access::Open)),
            (Method::POST, "/health", Some(Access::Caller)),
            (Method::GET, "/.well-known/oauth-protected-resource", Some(Access::Open)),
            (Method::POST, "/.well-known/oauth-protected-resource", Some(Access::Caller)),
            (Method::GET, "/.well-known/", None),
            (Method::GET, "/healthy", None),
            (Method::GET, "/tools/", Some(Access::Caller)),
            (Method::POST, "/mcp/", Some(Access::Caller)),
            (Method::GET, "/tools//", None),
            (Method::GET, "/admin", None),
        ] {
            assert_eq!(access(ROUTES, &method, path), wanted, "{method} {path}");
        }
        assert_eq!(access(ADMIN_ROUTES, &Method::POST, "/servers/{id}/connect"), Some(Access::Admin));
    }

    #[test]
    fn the_table_has_each_route_once() {
        for table in [ROUTES, ADMIN_ROUTES] {
            for (at, route) in table.iter().enumerate() {
                let again = table
                    .iter()
                    .skip(at + 1)
                    .any(|other| (other.method, other.path) == (route.method, route.path));
                assert!(!again, "{} {}", route.method, route.path);
                assert!(!route.about.is_empty());
            }
        }
    }
}
