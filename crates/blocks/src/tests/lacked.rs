use crate::LackedFrames;
use troth_types::Digest;

#[test]
fn a_start_is_looked_at_again_when_it_lacks_no_frame_any_more() {
    let [one, two, three, four] = [1, 2, 3, 4].map(|byte| Digest([byte; 32]));
    let mut lacked = LackedFrames::default();
    lacked.lacks([one, two].into_iter());
    lacked.lacks([two, three].into_iter());
    assert!(!lacked.came(&four), "nobody lacked it");
    assert!(lacked.has(&one) && !lacked.has(&four));
    assert!(!lacked.came(&one));
    assert!(!lacked.came(&one) && !lacked.has(&one), "it came before");
    assert!(lacked.came(&two), "the first has all");
    assert!(!lacked.came(&two));
    assert!(lacked.came(&three));
    lacked.lacks([four].into_iter());
    lacked.forget();
    assert!(!lacked.came(&four));
}
