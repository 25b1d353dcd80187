//! `ContainerId`: `type://id` there and back.

use super::*;
use proptest::prelude::*;

#[test]
fn what_is_one() {
    let parse = |text: &str| text.parse::<ContainerId>().unwrap();
    assert_eq!(
        parse("containerd://4f2a"),
        ContainerId::new("containerd", "4f2a")
    );
    assert_eq!(
        parse("\"docker://4f2a\""),
        ContainerId::new("docker", "4f2a")
    );
    assert_eq!(parse("://"), ContainerId::default());
    assert!(parse("://").is_empty());
    assert!(!parse("docker://").is_empty());
}

#[test]
fn what_is_none() {
    for text in ["", "4f2a", "docker:/4f2a", "docker//4f2a", "a://b://c"] {
        let error = text.parse::<ContainerId>().unwrap_err();
        assert!(error.to_string().contains(&format!("{text:?}")), "{error}");
    }
}

proptest! {
    #[test]
    fn text_reads_back(r#type in "[^/\"]{0,8}", id in "[^/\"]{0,8}") {
        let id = ContainerId::new(r#type, id);
        prop_assert_eq!(id.to_string().parse(), Ok(id));
    }
}
