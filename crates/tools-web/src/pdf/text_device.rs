//! Output device that collects only the text of a page.

use super::layout::{PageText, PlacedGlyph};
use hayro_interpret::font::{Glyph, GlyphRun, PositionedGlyph};
use hayro_interpret::hayro_cmap::BfString;
use hayro_interpret::kurbo::{Affine, BezPath, Point};
use hayro_interpret::{BlendMode, ClipPath, Device, DrawMode, DrawProps, Image, ImageDrawProps, SoftMask};

/// Units per em of a font.
const UNITS_PER_EM: f64 = 1000.0;

pub struct TextDevice {
    pub page: PageText,
    /// Glyphs without a Unicode mapping.
    pub unmapped: usize,
    /// Start of the last run; a run that is filled and stroked is drawn twice.
    last_run: Option<(Affine, usize)>,
}

impl TextDevice {
    pub fn new(page: PageText) -> Self {
        Self { page, unmapped: 0, last_run: None }
    }

    fn push_glyph(&mut self, glyph: &PositionedGlyph<'_>, page: Affine) {
        let text = match glyph.as_unicode() {
            Some(BfString::Char(letter)) => letter.to_string(),
            Some(BfString::String(text)) => text,
            None => {
                self.unmapped += 1;
                return;
            }
        };
        let advance = match &**glyph {
            Glyph::Outline(outline) => outline.advance_width(),
            Glyph::Type3(drawn) => drawn.advance_width(),
        };
        let place = page * glyph.transform();
        let origin = place * Point::ORIGIN;
        let right = place * Point::new(UNITS_PER_EM, 0.0) - origin;
        let size = (place * Point::new(0.0, UNITS_PER_EM) - origin).hypot();
        let wide = right.hypot();
        let along = if wide > 0.0 { (right.x / wide, right.y / wide) } else { (1.0, 0.0) };
        let advance = f64::from(advance.unwrap_or(500.0)) / UNITS_PER_EM * wide;
        self.page.push_glyph(PlacedGlyph { text, x: origin.x, y: origin.y, advance, size, along });
    }
}

impl<'a> Device<'a> for TextDevice {
    fn draw_glyph_run(&mut self, run: &GlyphRun<'_, 'a>, props: DrawProps<'a>, mode: &DrawMode) {
        let begun =
            run.glyphs().first().map(|glyph| (props.transform * glyph.transform(), run.glyphs().len()));
        if matches!(mode, DrawMode::Stroke(_)) && begun == self.last_run {
            return;
        }
        self.last_run = begun;
        for glyph in run.glyphs() {
            self.push_glyph(glyph, props.transform);
        }
    }

    fn draw_path(&mut self, _: &BezPath, _: DrawProps<'a>, _: &DrawMode) {}
    fn push_clip_path(&mut self, _: &ClipPath) {}
    fn push_transparency_group(&mut self, _: f32, _: Option<SoftMask<'a>>, _: BlendMode) {}
    fn draw_image(&mut self, _: Image<'a, '_>, _: ImageDrawProps<'a>) {}
    fn pop_clip(&mut self) {}
    fn pop_transparency_group(&mut self) {}
}
