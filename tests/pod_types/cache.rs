//! `PodCache`: asked with text and with UIDs, and what it says of pods that nobody set.

use super::*;

#[test]
fn asked_with_text_and_with_uids() {
    let cache = PodCache::new();
    let uid = PodUid::from("8f1c");
    assert!(cache.set(&uid, PodStatus::new(&uid).into(), at(5)));

    assert_eq!(cache.get("8f1c").modified(), Some(at(5)));
    assert_eq!(cache.get(&uid).modified(), Some(at(5)));
    assert!(cache.try_get_newer_than("8f1c", at(4)).is_some());
    assert!(cache.contains("8f1c"));
    cache.set_observed_time("8f1c", at(6));
    assert_eq!(cache.get(&uid).observed(), Some(at(6)));
    assert!(cache.delete("8f1c"));
    assert!(cache.is_empty());
}

#[test]
fn the_cache_keeps_a_clone_of_the_uid() {
    let cache = PodCache::new();
    let uid = PodUid::from("8f1c");
    cache.set(&uid, PodRecord::default(), at(1));
    let key = cache.keys().next().unwrap();
    assert!(std::ptr::eq(key.as_str(), uid.as_str()));
}

#[test]
fn a_pod_that_is_gone_reads_as_its_uid() {
    let cache = PodCache::new();
    let uid = PodUid::from("8f1c");
    let expected = PodRecord::from(PodStatus::new(&uid));
    assert_eq!(*cache.get("8f1c"), expected);

    let waiting = cache.subscribe(&uid, at(5));
    cache.update_time(at(5));
    let gone = waiting.wait().unwrap();
    assert!(!gone.is_present());
    assert_eq!(*gone, expected);
}

#[test]
fn a_reader_keeps_what_it_read_while_it_is_edited() {
    let cache = PodCache::new();
    let uid = PodUid::from("8f1c");
    let running = container("web", ContainerState::Running, 1);
    cache.set(&uid, pod(vec![running]).into(), at(1));

    let kept = cache.get(&uid);
    let exited = kept.edit(|record| {
        let status = record.status.as_mut().unwrap();
        let web = status.find_container_status_by_name_mut("web").unwrap();
        web.state = ContainerState::Exited;
        web.exit_code = 137;
    });
    cache.set(&uid, exited, at(2));

    let exit_status = |record: &PodRecord| {
        let status = record.status.as_ref().unwrap();
        status.container_statuses[0].exit_status()
    };
    assert_eq!(exit_status(&kept), None);
    assert_eq!(exit_status(&cache.get(&uid)), Some(137));
}
