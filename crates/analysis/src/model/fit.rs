//! Fits the costs to few cells.

use super::costs::{COSTS, Costs, Model, Point, overload_at_knee};
use super::least_squares::{Equation, solve};
use super::network::Share;
use super::{Knee, Sample};

/// Most knees and cells of a calibration.
pub const MOST_CELLS: usize = 12;
/// Assumed factors of an unmeasured wire and radio.
const WIRE: f64 = 1.02;
const RADIO: f64 = 1.1;
/// Share of the squared relative error that a coefficient must remove.
const PRICE: f64 = 4e-4;
/// Exponents of the number of processes to try: how many, and their spacing.
const CONTENTIONS: u32 = 12;
const CONTENTION_STEP: f64 = 0.04;
/// An exponent that costs as much as a coefficient; larger ones must remove more error.
const USUAL: f64 = 0.1;

/// Relative errors beyond this count as disturbances.
const FAR: f64 = 0.15;
/// Steps in which the sharing of packets is tried.
const TOGETHER: u32 = 4;

/// Ratio of sizes that reveals the cost per byte.
const APART: f64 = 10.0;
/// Index of that cost in [`Costs::columns`].
const PER_BYTE: usize = 1;

/// Why no model can be fitted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FitError {
    /// Too few sweeps that break.
    #[error(
        "only {knees} sweeps reach their limit, but a fit needs at least 3: raise the frequency or the \
         number of nodes until delivery falls"
    )]
    TooFew {
        /// Number of sweeps that break.
        knees: usize,
    },
}

/// A knee as one equation: the load of the limiting resource is 1.
struct Row {
    point: Point,
    cpu_s: Option<f64>,
    limit: usize,
}

impl Model {
    /// Fits knees, and cells below them for the delay. Of more than [`MOST_CELLS`] together, the first are used.
    ///
    /// # Errors
    /// [`FitError::TooFew`].
    pub fn fit(knees: &[Knee], cells: &[Sample]) -> Result<Model, FitError> {
        let knees = &knees[..knees.len().min(MOST_CELLS)];
        let cells = &cells[..cells.len().min(MOST_CELLS - knees.len())];
        let mut model = Model::of_knees(knees, cells)?;
        // Confidence: predicts each knee from the others.
        if knees.len() >= 4 {
            let mut errors: Vec<f64> = (0..knees.len())
                .filter_map(|left_out| {
                    let mut others = knees.to_vec();
                    let knee = others.remove(left_out);
                    let predicted = Model::of_knees(&others, cells)
                        .ok()?
                        .knee(&knee.params, knee.varied)?;
                    Some(knee.error(predicted))
                })
                .collect();
            model.error = median(&mut errors);
        }
        Ok(model)
    }

    /// The same without the confidence.
    pub(super) fn of_knees(knees: &[Knee], cells: &[Sample]) -> Result<Model, FitError> {
        if knees.len() < 2 {
            return Err(FitError::TooFew { knees: knees.len() });
        }
        let rows: Vec<Row> = knees
            .iter()
            .map(|k| {
                let mut point = Point::of(&k.params);
                point.rate = k.rate() / overload_at_knee(k.rate(), point.trips);
                Row {
                    point,
                    cpu_s: k.cpu_us.map(|us| us / 1e6),
                    limit: 0,
                }
            })
            .collect();
        // The limiting resource of each knee is unknown: of several guesses, the one that explains most is used.
        let starts = [0.0, 1.0, 2.0, 4.0, 16.0, f64::INFINITY];
        let contentions = (0..CONTENTIONS).map(|i| f64::from(i) * CONTENTION_STEP);
        let tries = contentions.flat_map(|contention| starts.map(|most| (contention, most)));
        let tries = tries.map(|(contention, most)| settle(&rows, cells, most, contention));
        let (mut model, _) = tries
            .min_by(|a, b| a.1.total_cmp(&b.1))
            .ok_or(FitError::TooFew { knees: knees.len() })?;
        delays(&mut model, cells);
        model.cells = knees.len() + cells.len();
        Ok(model)
    }
}

/// Fits, and reassigns limits until they no longer change; returns the model and the unexplained error. Initially
/// assumes that processes are the limit up to `senders` senders.
fn settle(rows: &[Row], cells: &[Sample], senders: f64, contention: f64) -> (Model, f64) {
    let blank = Model {
        contention,
        wire: WIRE,
        radio: RADIO,
        ..Model::default()
    };
    let mut rows: Vec<Row> = rows
        .iter()
        .map(|r| Row {
            limit: match r.point.rate * blank.occupied(&r.point) {
                0.8.. => 2,
                _ if r.point.senders <= senders => 0,
                _ => 1,
            },
            ..*r
        })
        .collect();
    let mut best = (blank, f64::INFINITY);
    for _ in 0..16 {
        let model = solve_limits(&rows, cells, contention);
        let left: f64 = rows
            .iter()
            .map(|r| {
                let load = model.loads(&r.point).iter().fold(1e-9f64, |a, b| a.max(*b));
                load.ln().powi(2)
            })
            .sum();
        let price = f64::from(coefficients(&model)) + (contention / USUAL).powi(2);
        let cost = left + PRICE * rows.len() as f64 * price;
        if cost < best.1 {
            best = (model.clone(), cost);
        }
        let mut moved = false;
        for row in &mut rows {
            let loads = model.loads(&row.point);
            let busiest = (0..3).fold(row.limit, |b, i| if loads[i] > loads[b] { i } else { b });
            moved |= busiest != row.limit;
            row.limit = busiest;
        }
        if !moved {
            break;
        }
    }
    best
}

fn coefficients(m: &Model) -> u32 {
    let rest = [m.wake_s, m.idle_node];
    let all = m.process.all().into_iter().chain(m.machine.all()).chain(rest);
    all.map(|v| u32::from(v > 0.0)).sum()
}

fn solve_limits(rows: &[Row], cells: &[Sample], contention: f64) -> Model {
    let mut model = Model {
        contention,
        ..Model::default()
    };
    let of = |limit: usize| rows.iter().filter(move |r| r.limit == limit);
    let bytes_show = shows_bytes(of(0).map(|r| &r.point));
    let process: Vec<Equation> = of(0)
        .map(|r| {
            let mut columns = columns(&r.point);
            columns[PER_BYTE] *= f64::from(u8::from(bytes_show));
            equation(
                columns.to_vec(),
                r.point.senders * r.point.share / r.point.rate,
                1.0,
            )
        })
        .collect();
    model.process = Costs::from_all(&solve(&process, COSTS, PRICE));
    machine(&mut model, rows, cells);
    for share in [Share::Wire, Share::Radio] {
        let medium: Vec<&Row> = of(2).filter(|r| r.point.network.share() == Some(share)).collect();
        occupation(&mut model, share, &medium);
    }
    model
}

/// Fits the time for which messages occupy a kind of media, from the knees that the medium limits. Uses the median. For
/// an even number of knees, the closed form with its usual factor is added, so that a knee with another cause does not
/// move the result far.
fn occupation(model: &mut Model, share: Share, rows: &[&Row]) {
    let (usual, name) = match share {
        Share::Wire => (WIRE, "wires"),
        Share::Radio => (RADIO, "radios"),
    };
    if rows.is_empty() {
        model.assumed.push(format!(
            "{name} are occupied for {usual} of the closed form: no knee of the calibration is limited by them"
        ));
    }
    let tries = (0..=TOGETHER)
        .map(|i| f64::from(i) / f64::from(TOGETHER))
        .map(|together| {
            let mut blank = Model::default();
            set(&mut blank, share, 1.0, together);
            let each = rows
                .iter()
                .map(|r| 1.0 / (r.point.rate * blank.occupied(&r.point)));
            let usual = rows.len().is_multiple_of(2).then_some(usual);
            let mut all: Vec<f64> = each.chain(usual).collect();
            let factor = median(&mut all).unwrap_or(1.0);
            let left: f64 = all.iter().map(|f| deviation((f / factor).ln())).sum();
            let price = f64::from(u8::from(together > 0.0)) * FAR * FAR;
            (left + price, factor, together)
        });
    let best = tries.min_by(|a, b| a.0.total_cmp(&b.0));
    let (_, factor, together) = best.unwrap_or((0.0, usual, 0.0));
    set(model, share, factor.clamp(0.5, 4.0), together);
}

fn set(model: &mut Model, share: Share, factor: f64, together: f64) {
    match share {
        Share::Wire => (model.wire, model.wire_together) = (factor, together),
        Share::Radio => (model.radio, model.radio_together) = (factor, together),
    }
}

/// Cost of a relative error: its square, and beyond [`FAR`] linear, since a knee may have been found while the machine
/// was disturbed (Huber 1964).
fn deviation(error: f64) -> f64 {
    match error.abs() {
        e if e <= FAR => e * e,
        e => FAR * (2.0 * e - FAR),
    }
}

/// Whether these points separate the cost per byte of a process from that of sockets. Otherwise all of it is assigned
/// to sockets, since hosts without sockets share memory, and it would count as a cost of long messages on one host.
fn shows_bytes<'a>(points: impl Iterator<Item = &'a Point> + Clone) -> bool {
    let without = points.filter(|p| !p.network.is_sockets());
    let sizes = without.map(|p| p.bytes.max(1) as f64);
    let (least, most) = sizes
        .clone()
        .fold((f64::MAX, 0.0), |(a, b), s| (s.min(a), s.max(b)));
    sizes.count() == 0 || most >= least * APART
}

/// Fits the machine's costs to the knees that processors limit, and to the processor time of each cell.
fn machine(model: &mut Model, rows: &[Row], cells: &[Sample]) {
    let limited: Vec<&Row> = rows.iter().filter(|r| r.limit == 1).collect();
    // A knee that the processors limit keeps all of them busy.
    let mut busy: Vec<f64> = limited
        .iter()
        .filter_map(|r| Some(r.point.busy(r.cpu_s?)))
        .collect();
    let processors = median(&mut busy);
    // The cost of idle processes shows when there is little other load.
    let idle = f64::from(u8::from(cells.iter().any(|c| c.cpu_us.is_some())));
    // By the share of the time in which processors are idle.
    let with_rest = |p: &Point, free: f64| {
        let contended = model.contended(p);
        let mut all = columns(p).map(|c| c * contended).to_vec();
        all.extend([idle * p.nodes / p.rate, contended * free.clamp(0.0, 1.0)]);
        all
    };
    let mut equations: Vec<Equation> = limited
        .iter()
        .map(|r| {
            let trip = r.point.share * r.point.machines / r.point.rate;
            equation(with_rest(&r.point, 0.0), trip, 1.0)
        })
        .collect();
    let seen = rows
        .iter()
        .filter(|r| r.limit == 0)
        .filter_map(|r| Some((r.point, r.cpu_s?)))
        .chain(
            cells
                .iter()
                .filter_map(|c| Some((Point::of(&c.params), c.cpu_us? / 1e6))),
        )
        .filter(|(p, s)| p.rate > 0.0 && *s > 0.0);
    let seen: Vec<(Point, f64)> = seen.collect();
    // Without a knee that they limit, there are at least as many processors as were ever busy.
    let most = seen.iter().map(|(p, s)| p.busy(*s)).fold(0.0, f64::max);
    let known = processors.or_else(|| (most > 0.0 && limited.is_empty()).then_some(most));
    if let Some(processors) = known {
        for (point, cpu_s) in &seen {
            let busy = point.busy(*cpu_s) / processors;
            equations.push(equation(with_rest(point, 1.0 - busy), cpu_s / processors, 0.5));
        }
        if limited.is_empty() {
            let note = format!(
                "{processors:.2} processors: no knee of the calibration is limited by them, there may be more"
            );
            model.assumed.push(note);
        }
    }
    let x = solve(&equations, COSTS + 2, PRICE);
    model.machine = Costs::from_all(&x);
    (model.idle_node, model.wake_s) = (x[COSTS], x[COSTS + 1]);
    model.processors = known;
}

/// Fits the delay on idle machines to the remainder without media and queues.
fn delays(model: &mut Model, cells: &[Sample]) {
    let equations: Vec<Equation> = cells
        .iter()
        .filter(|c| c.sustained)
        .filter_map(|c| {
            let (point, mean) = (Point::of(&c.params), c.mean_ms? / 1e3);
            let rest = mean - 2.0 * model.one_way(&point) - model.waiting(&point);
            let contended = model.contended(&point);
            Some(Equation {
                of: columns(&point).map(|c| c * contended).to_vec(),
                value: rest.max(0.02 * mean),
                weight: 1.0 / mean,
            })
        })
        .collect();
    if equations.is_empty() {
        model
            .assumed
            .push("no delay besides media and queues: the calibration has no cell that works".into());
    }
    model.delay = Costs::from_all(&solve(&equations, COSTS, PRICE));
}

/// Factors of the cost of a round trip, for two processes.
fn columns(p: &Point) -> [f64; COSTS] {
    Costs::columns(p.bytes, p.network)
}

/// Errors are weighted relative to the value.
fn equation(of: Vec<f64>, value: f64, weight: f64) -> Equation {
    Equation {
        of,
        value,
        weight: weight / value.max(1e-12),
    }
}

pub(super) fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    match n {
        0 => None,
        _ if n % 2 == 1 => Some(values[n / 2]),
        _ => Some((values[n / 2 - 1] + values[n / 2]) / 2.0),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Params;
    use super::*;

    fn points(of: &[(&str, u64)]) -> Vec<Point> {
        let point = |(medium, bytes): &(&str, u64)| {
            Point::of(&Params {
                medium: (*medium).into(),
                bytes: *bytes,
                ..Params::default()
            })
        };
        of.iter().map(point).collect()
    }

    fn row(medium: &str, bytes: u64, rate: f64) -> Row {
        let mut point = points(&[(medium, bytes)]).remove(0);
        point.rate = rate;
        Row {
            point,
            cpu_s: None,
            limit: 2,
        }
    }

    fn occupied_by(share: Share, rows: &[Row]) -> Model {
        let mut model = Model::default();
        occupation(&mut model, share, &rows.iter().collect::<Vec<_>>());
        model
    }

    #[test]
    fn a_knee_that_something_else_made_does_not_move_a_medium_far() {
        let rows = [row("100mbit", 4250, 2700.0), row("100mbit", 1000, 5000.0)];
        let model = occupied_by(Share::Wire, &rows);
        assert!((0.97..1.05).contains(&model.wire), "{model:?}");
        let one = occupied_by(Share::Wire, &rows[1..]);
        assert!((2.2..2.4).contains(&one.wire), "alone it counts: {one:?}");
        assert!(occupied_by(Share::Wire, &[]).wire == WIRE);
    }

    #[test]
    fn small_messages_that_share_packets_are_noticed() {
        let alone = [row("wifi-24", 1000, 950.0), row("wifi-24", 11, 2300.0)];
        let together = [row("wifi-24", 1000, 950.0), row("wifi-24", 11, 21_000.0)];
        assert_eq!(occupied_by(Share::Radio, &alone).radio_together, 0.0);
        assert_eq!(occupied_by(Share::Radio, &together).radio_together, 1.0);
    }

    #[test]
    fn a_byte_costs_what_is_seen_where_there_are_no_sockets() {
        let shows = |of: &[(&str, u64)]| shows_bytes(points(of).iter());
        assert!(!shows(&[("bus", 1_000), ("veth", 50_000), ("veth", 11)]));
        assert!(!shows(&[("bus", 1_000), ("bus", 4_250), ("veth", 50_000)]));
        assert!(shows(&[("bus", 1_000), ("bus", 50_000), ("veth", 11)]));
        assert!(shows(&[("loopback", 11), ("loopback", 50_000)]), "sockets alone");
    }
}
