//! Tests proxies from the environment.

use std::collections::HashMap;

use serde_json::json;

use super::server::Server;
use super::{pull, push, template};
use crate::program::Calve;
use crate::spot::Spot;

#[test]
fn a_proxy_of_the_environment_gets_no_credentials() {
    let Some(server) = Server::with_password() else { return };
    let spot = Spot::anywhere();
    let login = json!({"auth": "dXNlcjpzZWNyZXQ="});
    let file = json!({"auths": {&*server.host: login, "registry.invalid": login}});
    spot.tree("right").file("config.json", file.to_string());
    spot.tree("src").file("a", b"1");
    template(&spot, "home", &["create", "-q", "shop", "src"]).succeeds();
    let proxy = Server::of(HashMap::new());
    let address = format!("http://{}", proxy.host);
    let by_proxy = |name, calve: Calve| {
        calve.env(name, &address).env("no_proxy", "").env("NO_PROXY", "").env("DOCKER_CONFIG", spot.join("right"))
    };
    for name in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "https_proxy", "HTTPS_PROXY"] {
        by_proxy(name, push(&spot, &server, "shop")).succeeds();
        by_proxy(name, pull(&spot, &format!("home-{name}"), &server, "shop")).succeeds();
        let asked = proxy.asked();
        assert!(asked.is_empty(), "{name}: a registry on this machine is asked by way of a proxy: {asked:?}");
    }
    // Any other is asked over an encrypted connection, of which the proxy sees where it goes.
    by_proxy("all_proxy", template(&spot, "other", &["pull", "registry.invalid/team/shop"])).fails(1);
    let asked = proxy.asked();
    assert!(asked.iter().any(|asked| asked.line.starts_with("CONNECT registry.invalid:443")), "{asked:?}");
    assert!(asked.iter().all(|asked| !asked.head.to_ascii_lowercase().contains("authorization")), "{asked:?}");
}
