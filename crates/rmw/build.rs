//! Builds `src/cxx.cpp` of the crate rmw, also for rmw-jazzy, which lies next to it.

fn main() {
    let source = "../rmw/src/cxx.cpp";
    println!("cargo::rerun-if-changed={source}");
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .warnings(true)
        .extra_warnings(true)
        .warnings_into_errors(true)
        .file(source)
        .compile("ropewalk_cxx");
    // Memory that nodes free calls back into the library (`loans/owned.rs`), even after rcl has closed it.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
