//! One picture of a report: a column for each run with the teams' shares over time against their targets, the utilisation,
//! and the teams' waits. Medians over the seeds.

use anyhow::anyhow;
use plotters::prelude::*;
use serde_json::Value;

use super::summary::{Cell, Report};

const COLUMN: u32 = 460;
const HEIGHT: u32 = 780;
/// Points of a line: longer series are drawn as means of so many parts.
const POINTS: usize = 120;

/// The picture as SVG.
///
/// # Errors
/// When the drawing library refuses a range.
pub fn svg(report: &Report) -> anyhow::Result<String> {
    let mut text = String::new();
    {
        let width = COLUMN * report.runs.len().max(1) as u32;
        let root = SVGBackend::with_string(&mut text, (width, HEIGHT)).into_drawing_area();
        root.fill(&WHITE).map_err(refused)?;
        for (cell, area) in report.runs.iter().zip(root.split_evenly((1, report.runs.len()))) {
            let parts = area.split_evenly((3, 1));
            shares(cell, &parts[0]).map_err(refused)?;
            utilisation(cell, &parts[1]).map_err(refused)?;
            waits(cell, &parts[2]).map_err(refused)?;
        }
        root.present().map_err(refused)?;
    }
    Ok(text)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Drawn<'a> = Result<(), DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>>;

fn refused(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow!("cannot draw: {error}")
}

fn shares<'a>(cell: &Cell, area: &Area<'a>) -> Drawn<'a> {
    let teams = teams(cell);
    let series: Vec<Vec<(f64, f64)>> =
        teams.iter().map(|team| line(&team["hourlyShare"])).collect();
    let hours = hours(cell);
    let top = series.iter().flatten().map(|point| point.1).fold(0.1, f64::max) * 1.1;
    let mut chart = ChartBuilder::on(area)
        .caption(format!("{} {}: share", cell.variant, cell.policy), ("sans-serif", 15))
        .margin(8)
        .x_label_area_size(28)
        .y_label_area_size(42)
        .build_cartesian_2d(0.0..hours, 0.0..top)?;
    chart.configure_mesh().light_line_style(TRANSPARENT).x_desc("hours").draw()?;
    let weights: f64 = teams.iter().filter_map(|team| team["weight"].as_f64()).sum();
    for (at, (team, points)) in teams.iter().zip(series).enumerate() {
        let colour = Palette99::pick(at).to_rgba();
        let name = team["name"].as_str().unwrap_or_default();
        chart
            .draw_series(LineSeries::new(points, colour.stroke_width(1)))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 14, y)], colour));
        let target = team["weight"].as_f64().unwrap_or(0.0) / weights.max(1.0);
        chart.draw_series(DashedLineSeries::new(
            [(0.0, target), (hours, target)],
            4,
            4,
            colour.into(),
        ))?;
    }
    chart.configure_series_labels().background_style(WHITE.mix(0.8)).border_style(BLACK).draw()
}

fn utilisation<'a>(cell: &Cell, area: &Area<'a>) -> Drawn<'a> {
    let mut chart = ChartBuilder::on(area)
        .caption("utilisation", ("sans-serif", 15))
        .margin(8)
        .x_label_area_size(28)
        .y_label_area_size(42)
        .build_cartesian_2d(0.0..hours(cell), 0.0..1.05)?;
    chart.configure_mesh().light_line_style(TRANSPARENT).x_desc("hours").draw()?;
    chart.draw_series(LineSeries::new(line(&cell.median["hourlyUtilisation"]), BLUE))?;
    Ok(())
}

/// For each team a bar up to the 95th percentile and a darker one up to the median.
fn waits<'a>(cell: &Cell, area: &Area<'a>) -> Drawn<'a> {
    let teams = teams(cell);
    let wait = |team: &Value, key: &str| team["waits"][key].as_f64().unwrap_or(0.0) / 60.0;
    let top = teams.iter().map(|team| wait(team, "p95")).fold(0.1, f64::max) * 1.1;
    let mut chart = ChartBuilder::on(area)
        .caption("wait, median and 95 % (hours)", ("sans-serif", 15))
        .margin(8)
        .x_label_area_size(28)
        .y_label_area_size(42)
        .build_cartesian_2d(0.0..teams.len().max(1) as f64, 0.0..top)?;
    let name = |at: &f64| {
        let team = teams.get(at.floor() as usize).filter(|_| at.fract() != 0.0);
        team.and_then(|team| team["name"].as_str()).unwrap_or_default().to_owned()
    };
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .x_labels(teams.len() * 2 + 1)
        .x_label_formatter(&name)
        .draw()?;
    for (at, team) in teams.iter().enumerate() {
        let colour = Palette99::pick(at).to_rgba();
        let (left, right) = (at as f64 + 0.15, at as f64 + 0.85);
        for (key, style) in [("p95", colour.mix(0.4).filled()), ("median", colour.filled())] {
            let corners = [(left, 0.0), (right, wait(team, key))];
            chart.draw_series([Rectangle::new(corners, style)])?;
        }
    }
    Ok(())
}

fn teams(cell: &Cell) -> &[Value] {
    cell.median["teams"].as_array().map_or(&[], Vec::as_slice)
}

fn hours(cell: &Cell) -> f64 {
    cell.median["hourlyUtilisation"].as_array().map_or(1.0, |hours| hours.len().max(1) as f64)
}

/// A series by hour as points.
fn line(values: &Value) -> Vec<(f64, f64)> {
    let values: Vec<f64> =
        values.as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
    let step = values.len().div_ceil(POINTS).max(1);
    let mean = |(at, part): (usize, &[f64])| {
        let middle = at as f64 * step as f64 + part.len() as f64 / 2.0;
        (middle, part.iter().sum::<f64>() / part.len() as f64)
    };
    values.chunks(step).enumerate().map(mean).collect()
}
