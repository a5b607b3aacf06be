use crate::Versions;

fn versions(oldest: u16, newest: u16) -> Versions {
    Versions { oldest, newest }
}

#[test]
fn the_newest_version_that_both_speak_is_used() {
    let cases = [
        ((1, 1), (1, 2), Some(1)),
        ((1, 2), (1, 2), Some(2)),
        ((1, 5), (3, 9), Some(5)),
        ((3, 9), (1, 5), Some(5)),
        ((2, 4), (4, 8), Some(4)),
        ((1, 2), (3, 4), None),
        ((3, 4), (1, 2), None),
    ];
    for ((a, b), (c, d), common) in cases {
        assert_eq!(versions(a, b).common(versions(c, d)), common, "{a} to {b}, {c} to {d}");
    }
    assert_eq!(Versions::SPOKEN.common(Versions::UNSAID), Some(1), "the release before this is spoken to");
}

/// A fixture: a changed one is a changed format.
#[test]
fn the_first_message_has_one_form() {
    assert_eq!(versions(1, 0x0302).first_message(), b"\xfftroth\x01\x00\x02\x03");
    assert_eq!(Versions::of_first_message(b"\xfftroth\x01\x00\x02\x03"), Some(versions(1, 0x0302)));
    let later = b"\xfftroth\x02\x00\x02\x00and what a later version says";
    assert_eq!(Versions::of_first_message(later), Some(versions(2, 2)));
}

#[test]
fn what_says_no_versions_is_an_ordinary_message() {
    for message in
        [&b""[..], b"\xff", b"\xfftrot", b"\xfftroth", b"\xfftroth\x01\x00\x01", b"\x00", b"\x04piece"]
    {
        assert_eq!(Versions::of_first_message(message), None, "{message:?}");
    }
    assert_eq!(Versions::of_first_message(b"\xfftroth\x02\x00\x01\x00"), None, "a range the wrong way round");
}
