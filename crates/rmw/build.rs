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
}
