//! An open loop as a whole, as short as it can be.

mod support;

#[test]
fn it_measures_every_variant_at_every_rate() {
    // A test of this package alone does not build the `troth` that trusted processes are.
    let variants = ["--variant", "in-process,unreplicated"];
    let shape = ["open", "kv", "--percent", "5,20", "--seconds", "1", "--rounds", "1", "--connections", "3"];
    let support::Measured { result, code, printed } =
        support::measure(&[&shape[..], &["--outstanding", "32"], &variants].concat());
    // Whether a build for tests keeps up says nothing; that the exit code follows the claim does.
    assert_eq!(code, Some(i32::from(result["ok"] != true)), "{printed}");
    assert_eq!(result["operation_bytes"], 256);

    let variants = result["variants"].as_array().expect("variants");
    assert_eq!(variants.len(), 2);
    for variant in variants {
        assert!(variant["closed_loop"]["median"].as_f64() > Some(0.0), "{variant}");
        let points = variant["points"].as_array().expect("a point for each rate");
        assert_eq!(points.len(), 2);
        for point in points {
            let figure = |name: &str| point[name]["median"].as_f64().expect("a figure");
            assert!(figure("offered") > 0.0 && figure("achieved") > 0.0, "{point}");
            assert!(figure("p50_us") > 0.0, "{point}");
            assert!(figure("p50_us") <= figure("p99_us") && figure("p99_us") <= figure("p999_us"), "{point}");
            assert!(figure("servers_allocations") > 0.0, "{point}");
            assert_eq!(point["counted_from_due"], true, "{point}");
            assert!(figure("asked_late_p99_us") <= figure("p99_us"), "{point}");
        }
    }
}
