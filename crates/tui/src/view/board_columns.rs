//! The columns of the board for each width.

/// The width of each column in cells; 0 if the column is not shown. There is one cell between two columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct BoardColumns {
    pub(super) state: usize,
    pub(super) title: usize,
    pub(super) activity: usize,
    pub(super) agent: usize,
    pub(super) host: usize,
    pub(super) cost: usize,
    pub(super) age: usize,
}

/// Cells of the margin, the mark of the state, and the space after it.
pub(super) const MARK_CELLS: usize = 4;
const STATE_CELLS: usize = 9;
const AGENT_CELLS: usize = 10;
const HOST_CELLS: usize = 12;
const COST_CELLS: usize = 11;
const AGE_CELLS: usize = 4;

impl BoardColumns {
    /// A wide page shows more columns. The title gets what is left, and shares it with the activity.
    pub(super) fn new(width: u16, is_fleet: bool) -> BoardColumns {
        let width = usize::from(width);
        let shown = |width_min: usize, cells: usize| if width_min <= width { cells } else { 0 };
        let mut columns = BoardColumns {
            age: shown(46, AGE_CELLS),
            agent: shown(56, AGENT_CELLS),
            state: shown(96, STATE_CELLS),
            cost: shown(84, COST_CELLS),
            host: if is_fleet { shown(76, HOST_CELLS) } else { 0 },
            ..BoardColumns::default()
        };
        let fixed = [columns.age, columns.agent, columns.state, columns.cost, columns.host];
        let fixed: usize = fixed.iter().filter(|it| **it > 0).map(|it| it + 1).sum();
        let left = width.saturating_sub(MARK_CELLS + fixed + 1);
        if left < 44 {
            columns.title = left;
        } else {
            columns.title = (left - 1) * 9 / 20;
            columns.activity = left - 1 - columns.title;
        }
        columns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_fill_the_width_and_never_exceed_it() {
        for is_fleet in [false, true] {
            for width in 5..=300_u16 {
                let it = BoardColumns::new(width, is_fleet);
                let shown = [it.state, it.title, it.activity, it.agent, it.host, it.cost, it.age];
                let cells: usize = shown.iter().filter(|it| **it > 0).map(|it| it + 1).sum();
                assert!(MARK_CELLS + cells <= usize::from(width), "{width}: {it:?}");
                assert!(usize::from(width) <= MARK_CELLS + cells + 1, "{width}: {it:?}");
                assert!(it.title >= 1 || width < 7, "{width}: {it:?}");
            }
        }
    }
}
