//! Which layers this machine can enforce plans with, and why not the others.

use crate::plan::EnforcementLayer;
use std::sync::OnceLock;

/// What a layer is worth on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerSupport {
    pub layer: EnforcementLayer,
    /// The version of the layer, or the reason why it does not work.
    pub state: Result<String, LayerProblem>,
}

/// Why a layer does not work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerProblem {
    pub reason: String,
    /// What the user can do about it.
    pub hint: String,
}

/// The layers of this system, the best one first. They are tried once in the life of a process.
pub fn layer_support() -> &'static [LayerSupport] {
    static SUPPORT: OnceLock<Vec<LayerSupport>> = OnceLock::new();
    SUPPORT.get_or_init(super::detect_layers)
}

/// The best layer that works.
pub fn choose_layer(support: &[LayerSupport]) -> Option<EnforcementLayer> {
    support.iter().find(|it| it.state.is_ok()).map(|it| it.layer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_working_layer_is_chosen() {
        let layer = |layer, works: bool| {
            let problem = LayerProblem { reason: String::new(), hint: String::new() };
            LayerSupport { layer, state: works.then(String::new).ok_or(problem) }
        };
        let choose = |bubblewrap, landlock| {
            choose_layer(&[
                layer(EnforcementLayer::Bubblewrap, bubblewrap),
                layer(EnforcementLayer::Landlock, landlock),
            ])
        };
        assert_eq!(choose(true, true), Some(EnforcementLayer::Bubblewrap));
        assert_eq!(choose(false, true), Some(EnforcementLayer::Landlock));
        assert_eq!(choose(false, false), None);
    }
}
