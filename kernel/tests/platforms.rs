//! On a platform without support the build ends with one sentence.

#[allow(dead_code, reason = "its `main` runs before the build")]
#[path = "../build.rs"]
mod build;

#[test]
fn where_the_kernel_does_not_run_the_build_says_so_in_a_sentence() {
    for (os, architecture, reason) in [
        ("windows", "x86_64", "Linux only, not on windows"),
        ("macos", "aarch64", "Linux only, not on macos"),
        ("linux", "riscv64", "not on riscv64"),
    ] {
        let sentence = build::refusal(os, architecture).expect("no support there");
        assert!(sentence.contains(reason), "{sentence}");
        assert!(
            sentence.ends_with('.') && !sentence.contains('\n'),
            "{sentence}"
        );
    }
    for architecture in ["x86_64", "aarch64"] {
        assert_eq!(build::refusal("linux", architecture), None);
    }
}
