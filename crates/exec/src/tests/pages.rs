//! The form of nodes from outside: whatever is accepted can be read, and has one encoding.

use crate::map::{Page, check_branch, entries};
use bytes::Bytes;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn page() -> impl Strategy<Value = (Page, BTreeMap<Vec<u8>, Bytes>)> {
    let value = prop_oneof![4 => 0_usize..20, 1 => 505_usize..520];
    let entry = (proptest::collection::vec(any::<u8>(), 0..6), value, any::<u8>());
    proptest::collection::vec(entry, 0..20).prop_map(|list| {
        let mut page = Page::empty();
        let mut model = BTreeMap::new();
        for (key, length, fill) in list {
            let value = Bytes::from(vec![fill; length]);
            page = page.written(&key, Some(&value));
            model.insert(key, value);
        }
        (page, model)
    })
}

fn read_all(bytes: &[u8]) {
    let mut last: Option<Vec<u8>> = None;
    for entry in entries(bytes) {
        assert!(last.as_deref().is_none_or(|last| last < entry.key), "keys ascend");
        if entry.blob.is_some() {
            assert!(entry.blob_length() > 512);
            let _ = entry.blob_digest();
        }
        last = Some(entry.key.to_vec());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_page_holds_what_was_written((page, model) in page()) {
        prop_assert!(Page::check(page.bytes()));
        let found: Vec<_> = page.entries().map(|entry| (entry.key.to_vec(), page.value(&entry))).collect();
        prop_assert_eq!(found, model.iter().map(|(key, value)| (key.clone(), value.clone())).collect::<Vec<_>>());
        prop_assert_eq!(page.len(), model.len());
        for (key, value) in &model {
            prop_assert!(page.says(key, Some(value)) && !page.says(key, None));
            let less = page.written(key, None);
            prop_assert!(less.says(key, None) && Page::check(less.bytes()));
            prop_assert_eq!(&less.written(key, Some(value)), &page, "written back, it is the same");
        }
    }

    #[test]
    fn damaged_pages_are_refused_or_readable((page, _) in page(), at in any::<usize>(), bits in 1_u8.., cut in any::<usize>()) {
        let mut bytes = page.bytes().to_vec();
        let length = bytes.len();
        bytes[at % length] ^= bits;
        if Page::check(&bytes) {
            read_all(&bytes);
        }
        let _ = check_branch(&bytes);
        prop_assert!(!Page::check(&page.bytes()[..cut % length]), "a page does not end early");
        let longer = [page.bytes(), &[0]].concat();
        prop_assert!(!Page::check(&longer));
    }

    #[test]
    fn noise_is_refused_or_readable(tag in 0_u8..3, count in 0_u8..4, noise in proptest::collection::vec(0_u8..8, 0..60)) {
        let bytes = [&[tag, count, 0][..], &noise].concat();
        if Page::check(&bytes) {
            read_all(&bytes);
        }
        let _ = check_branch(&bytes);
    }
}

#[test]
fn pages_out_of_form_are_refused() {
    let entry = |key: u8, value: &[u8]| {
        let length = u8::try_from(value.len()).expect("short");
        [&[1, 0, length, 0, key], value].concat()
    };
    let page = |count: u16, entries: &[Vec<u8>]| [&[1][..], &count.to_le_bytes(), &entries.concat()].concat();
    assert!(Page::check(&page(2, &[entry(1, b"x"), entry(2, b"y")])));
    assert!(!Page::check(&page(2, &[entry(2, b"x"), entry(1, b"y")])), "keys descend");
    assert!(!Page::check(&page(2, &[entry(1, b"x"), entry(1, b"y")])), "a key twice");
    let many: Vec<_> = (0..=255).map(|key| entry(key, b"")).collect();
    assert!(!Page::check(&page(256, &many)), "no page has so many entries");
    let inline = [&[1, 1, 0, 1, 0, 1, 2, 7][..], &[0; 513]].concat();
    assert!(!Page::check(&inline), "too long to be inline");
    let blob = |length: u32| [&[1, 1, 0, 1, 0, 255, 255, 7][..], &length.to_le_bytes(), &[0; 32]].concat();
    assert!(Page::check(&blob(513)));
    assert!(!Page::check(&blob(512)), "too short to be a blob");
    assert!(!Page::check(&blob(u32::MAX)), "larger than any value");
}
