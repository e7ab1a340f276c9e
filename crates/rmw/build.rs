//! Builds `src/cxx.cpp` of the crate rmw, also for rmw-jazzy, which stands beside it.

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
    // Memory that nodes free calls back into the library (`loans/owned.rs`), also after rcl has let it go.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
