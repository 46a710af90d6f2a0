//! Checks that are always on, marks that prove a rare branch was visited, states that faults meet, and planted bugs.
//! Owns no protocol state; must never change behaviour unless a mutant is active.

/// Marks: which rare branches this process has visited.
pub mod marks;
/// Planted bugs, dead code unless the `mutants` feature is on.
pub mod mutants;
/// States: which faults have met which steps of the protocols.
pub mod states;

/// Stops the process (the node, under simulation) when something that must hold does not.
/// On in every build: a wrong answer is worse than a crash.
#[macro_export]
macro_rules! invariant {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            panic!("invariant violated: {}", format_args!($($message)+));
        }
    };
}

/// Marks a rare branch as visited. A campaign lists the marks never reached. Each name is used once.
#[macro_export]
macro_rules! reached {
    ($name:literal) => {{
        static MARK: $crate::invariant::marks::Mark = $crate::invariant::marks::Mark::new($name);
        MARK.hit();
    }};
}

/// Enters a step of a protocol that lasts, until the value is dropped. A campaign shows which kinds of fault met which
/// steps. Each name is used once.
#[macro_export]
macro_rules! in_state {
    ($name:literal) => {{
        static STATE: $crate::invariant::states::State =
            $crate::invariant::states::State::new($name);
        STATE.enter()
    }};
}

/// True when the planted bug of this name is active; constant false without the `mutants` feature.
#[macro_export]
macro_rules! mutant {
    ($name:literal) => {
        $crate::invariant::mutants::is_active($name)
    };
}
