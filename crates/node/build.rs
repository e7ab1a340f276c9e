//! Generates the structures of `ropewalk::msgs`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "msgs")]
    {
        let out = std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
        std::fs::write(
            std::path::Path::new(&out).join("msgs.rs"),
            generate::standard_rust_text()?,
        )?;
    }
    Ok(())
}
