//! A picture as text: the few shapes that plots need.
//!
//! It has a background of its own and writes every colour out, because whoever shows it may be dark or light and may
//! know nothing of style sheets.

use std::fmt::Write;

/// What a picture stands on.
pub const PAPER: &str = "#ffffff";
/// Letters and axes.
pub const INK: &str = "#222222";
/// Lines that help to read a value off.
pub const FAINT: &str = "#d9d9d9";
/// Colours that people who see red and green alike can tell apart (Okabe and Ito, 2008), dark enough for white paper.
pub const COLOURS: [&str; 4] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7"];

/// Where letters stand to their point.
#[derive(Clone, Copy)]
pub enum Anchor {
    /// They begin there.
    Start,
    /// Their middle is there.
    Middle,
    /// They end there.
    End,
}

/// A picture.
pub struct Picture {
    width: f64,
    height: f64,
    title: String,
    shapes: String,
}

impl Picture {
    /// An empty one, this many units wide and high. The title is for those who do not see it.
    pub fn new(width: f64, height: f64, title: &str) -> Self {
        Self { width, height, title: title.to_string(), shapes: String::new() }
    }

    fn shape(&mut self, shape: std::fmt::Arguments<'_>) {
        writeln!(self.shapes, "  {shape}").expect("a String takes everything");
    }

    /// A straight line; `dashes` as SVG has it, empty for none.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: &str, width: f64, dashes: &str) {
        let ((x1, y1), (x2, y2)) = (from, to);
        let dashes =
            if dashes.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dashes}\"") };
        self.shape(format_args!(
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{colour}\" stroke-width=\"{width}\"{dashes}/>"
        ));
    }

    /// A line through points.
    pub fn path(&mut self, points: &[(f64, f64)], colour: &str, dashes: &str) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let dashes =
            if dashes.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dashes}\"") };
        self.shape(format_args!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dashes}/>",
            points.join(" ")
        ));
    }

    /// A point: a disc, or a ring where it is `hollow`.
    pub fn dot(&mut self, (x, y): (f64, f64), colour: &str, hollow: bool) {
        let fill = if hollow { PAPER } else { colour };
        self.shape(format_args!(
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{fill}\" stroke=\"{colour}\" stroke-width=\"2\"/>"
        ));
    }

    /// A filled rectangle.
    pub fn bar(&mut self, (x, y): (f64, f64), width: f64, height: f64, colour: &str) {
        self.shape(format_args!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{colour}\"/>"
        ));
    }

    /// Letters.
    pub fn text(&mut self, (x, y): (f64, f64), size: f64, anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let text = escaped(text);
        self.shape(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" text-anchor=\"{anchor}\" fill=\"{INK}\">{text}</text>"
        ));
    }

    /// Letters from below to above, their middle at the point.
    pub fn upwards(&mut self, (x, y): (f64, f64), size: f64, text: &str) {
        let text = escaped(text);
        self.shape(format_args!(
            "<text transform=\"translate({x:.1} {y:.1}) rotate(-90)\" font-size=\"{size}\" text-anchor=\"middle\" \
             fill=\"{INK}\">{text}</text>"
        ));
    }

    /// The picture as a file.
    pub fn finish(self) -> String {
        let Self { width, height, title, shapes } = self;
        let title = escaped(&title);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\" font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\">\n  \
             <title>{title}</title>\n  \
             <rect x=\"0\" y=\"0\" width=\"{width}\" height=\"{height}\" fill=\"{PAPER}\"/>\n{shapes}</svg>\n"
        )
    }
}

/// Text as XML has it.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
