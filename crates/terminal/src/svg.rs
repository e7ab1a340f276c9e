//! The frame of every figure. SVG is written without a plotting library, which would be larger than this crate.

/// A white page of `width` × `height` pixels with a title and a line below it, both starting at `left`. Drawings start
/// below 50 pixels; [`close`] ends the page.
pub fn open(width: f64, height: f64, left: f64, title: &str, subtitle: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{left}\" y=\"24\" font-size=\"17\" font-weight=\"bold\">{}</text>\n\
         <text x=\"{left}\" y=\"42\" fill=\"#555\">{}</text>\n",
        escape(title),
        escape(subtitle)
    )
}

/// Ends a page.
pub fn close(mut svg: String) -> String {
    svg.push_str("</svg>\n");
    svg
}

/// Escapes text for markup.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
