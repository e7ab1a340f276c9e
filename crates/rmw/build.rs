//! Builds `src/cxx.cpp`.

fn main() {
    println!("cargo::rerun-if-changed=src/cxx.cpp");
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .warnings(true)
        .extra_warnings(true)
        .warnings_into_errors(true)
        .file("src/cxx.cpp")
        .compile("ropewalk_cxx");
}
