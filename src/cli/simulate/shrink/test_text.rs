//! A shrunk run as the text of a test.

use crate::simulator::checkers::Violation;
use crate::simulator::report::Report;
use crate::simulator::trial::Trial;

/// Characters of a line of documentation.
const WIDTH: usize = 100;

/// Where shrunk runs stay.
pub(super) const FILE: &str = "sim-tests/shrunk_runs.rs";

/// A test for `sim-tests` that does the run again and demands that it breaks no promise.
pub(super) fn test_text(report: &Report, wanted: &Violation) -> String {
    let trial = &report.trial;
    let is_it = |violation: &&Violation| {
        violation.promise == wanted.promise && violation.checker == wanted.checker
    };
    let violations = &report.violations;
    let violation = violations.iter().find(is_it).or(violations.first()).unwrap_or(wanted);
    let mut story = vec![
        match trial.settings {
            None => format!("Seed {}, made small. {violation}", trial.seed),
            Some(settings) => {
                format!(
                    "Seed {} with the settings of {settings}, made small. {violation}",
                    trial.seed
                )
            }
        },
        format!("Replay: {}", trial.replay_command()),
    ];
    if let Some(mutant) = &trial.mutant {
        story.push(format!("It fails with SEAWALL_MUTANT={mutant}."));
    }
    let strikes = report.strikes.iter().map(|strike| {
        format!("Strike {}, at {} ms: {}.", strike.number, strike.at_ms, strike.kind.as_str())
    });
    story.extend(strikes);
    let mut text = "\n".to_owned();
    for line in story.iter().flat_map(|part| part.lines()).flat_map(wrapped) {
        text.push_str(&format!("/// {line}\n"));
    }
    // A bug is planted from outside: the test has to pass without.
    let sound = Trial { mutant: None, ..trial.clone() };
    let json = serde_json::to_string(&sound).unwrap_or_default();
    let (seed, checker) = (trial.seed, name(&violation.checker));
    text.push_str(&format!(
        "#[test]\nfn seed_{seed}_and_{checker}() {{\n    keeps_every_promise(\n        r#\"{json}\"#,\n    );\n}}"
    ));
    text
}

/// Words of a line, so many on each as fit.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let is_full = lines.last().is_some_and(|line| {
            !line.is_empty() && line.chars().count() + word.chars().count() >= WIDTH
        });
        if is_full {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

/// Something that may stand in a function's name.
fn name(text: &str) -> String {
    let letter = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
    text.chars().map(letter).collect::<String>().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulator::cuts::Cuts;
    use crate::simulator::nemesis::Strike;
    use crate::simulator::plan::{FaultKind, Topology};

    #[test]
    fn a_shrunk_run_is_a_test() {
        let violation = Violation {
            promise: "P1".to_owned(),
            checker: "time limit".to_owned(),
            detail: "a\nlonger story".to_owned(),
        };
        let trial = Trial {
            mutant: Some("S8".to_owned()),
            cuts: Cuts { strikes: Some([3].into()), ..Cuts::default() },
            ..Trial::new(7, Topology::Standalone)
        };
        let mut report = Report::of_failure(trial, violation.clone());
        report.strikes.push(Strike { number: 3, at_ms: 12, kind: FaultKind::PowerLoss });
        let text = test_text(&report, &violation);
        assert!(text.contains("fn seed_7_and_time_limit() {"), "{text}");
        assert!(text.contains("/// Strike 3, at 12 ms: power_loss."), "{text}");
        let json = text.split("r#\"").nth(1).unwrap().split("\"#").next().unwrap();
        let trial: Trial = serde_json::from_str(json).unwrap();
        assert_eq!(trial, Trial { mutant: None, ..report.trial });
        // Behind whatever is there.
        let text = text.strip_prefix('\n').unwrap();
        assert!(std::path::Path::new(FILE).exists());
        let (story, test) = text.split_once("#[test]").unwrap();
        assert!(story.lines().all(|line| line.starts_with("/// ")), "{text}");
        assert!(story.contains("SEAWALL_MUTANT=S8") && !test.contains("S8"), "{text}");
    }
}
