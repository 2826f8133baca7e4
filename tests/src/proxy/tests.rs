//! Which requests a rule strikes, and which pass.

use std::time::Duration;

use http::Method;

use super::rule::{Active, Fault, Rule, Target};

fn target(method: &Method, path: &str, query: &str) -> (&'static str, String) {
    let target = Target::read(method, path, query);
    (target.verb, target.resource)
}

#[test]
fn verb_and_resource_are_read_as_access_rules_name_them() {
    let pods = "/api/v1/namespaces/n/pods";
    let read = |method: &Method, path: &str, query: &str| target(method, path, query);
    assert_eq!(read(&Method::GET, "/api/v1/pods", "watch=true"), ("watch", "pods".to_owned()));
    assert_eq!(read(&Method::GET, pods, "limit=500"), ("list", "pods".to_owned()));
    assert_eq!(read(&Method::DELETE, &format!("{pods}/p"), ""), ("delete", "pods".to_owned()));
    let binding = read(&Method::POST, &format!("{pods}/p/binding"), "");
    assert_eq!(binding, ("create", "pods/binding".to_owned()));
    let namespace = read(&Method::GET, "/api/v1/namespaces/n", "");
    assert_eq!(namespace, ("get", "namespaces".to_owned()));
    let group = "/apis/scheduling.volcano.sh/v1beta1/namespaces/n/podgroups/g/status";
    assert_eq!(read(&Method::PATCH, group, ""), ("patch", "podgroups/status".to_owned()));
    assert_eq!(read(&Method::GET, "/readyz", ""), ("list", String::new()));
}

#[test]
fn a_rule_strikes_only_what_it_names_and_counts_it() {
    let rule = Rule::every("delete", "pods", Fault::Reset).naming("/low-").skip(1).times(2);
    let active = Active::new(rule);
    let pods = |verb| Target { verb, resource: "pods".to_owned() };
    assert_eq!(active.strikes(&pods("get"), "/low-0"), None);
    assert_eq!(active.strikes(&pods("delete"), "/high-0"), None);
    let struck: Vec<bool> =
        (0..4).map(|_| active.strikes(&pods("delete"), "/low-0").is_some()).collect();
    assert_eq!(struck, [false, true, true, false]);
    assert_eq!(active.struck(), 2);
    let delay = Rule::every("", "", Fault::Delay(Duration::ZERO));
    assert!(!delay.fault.is_of_events());
}
