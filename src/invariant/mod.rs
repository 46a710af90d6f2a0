//! Checks that are always on, marks that prove a rare branch was visited, and planted bugs.
//! Owns no protocol state; must never change behaviour unless a mutant is active.

/// Marks: which rare branches this process has visited.
pub mod marks;
/// Planted bugs, dead code unless the `mutants` feature is on.
pub mod mutants;

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

/// True when the planted bug of this name is active; constant false without the `mutants` feature.
#[macro_export]
macro_rules! mutant {
    ($name:literal) => {
        $crate::invariant::mutants::is_active($name)
    };
}
