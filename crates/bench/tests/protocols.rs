//! PBFT by what shows whose its clients' frames are, as short as it can be.

mod support;

#[test]
fn it_measures_pbft_with_signatures_with_authenticators_and_with_everything_signed() {
    let shape = ["protocols", "--protocol", "pbft", "--f", "1", "--cell", "0/0", "--pairs", "1"];
    let time = ["--millis", "300", "--alone-millis", "200", "--connections", "3", "--outstanding", "32"];
    let support::Measured { result, code, printed } = support::measure(&[&shape[..], &time].concat());

    let groups = &result["pbft_by_auth"]["protocols"];
    let figure = |auth: &str, name: &str| groups[auth][name]["median"].as_f64().expect("a figure");
    for auth in ["signed", "mac", "all-signed"] {
        assert!(
            figure(auth, "operations_per_second") > 0.0 && figure(auth, "alone_p50_us") > 0.0,
            "{groups}"
        );
        assert!(figure(auth, "ratio_to_signed") > 0.0, "{groups}");
    }

    // Nothing is demanded of them: the one gate is that of the cell, in which PBFT is alone.
    let gates = result["gates"].as_array().expect("gates");
    assert_eq!((gates.len(), result["cells"].as_array().map(Vec::len)), (1, Some(1)), "{result}");
    assert_eq!(code, Some(i32::from(result["ok"] != true)), "{printed}");
}
