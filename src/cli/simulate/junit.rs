//! A campaign as a JUnit file: what continuous integration shows. One test case a seed, and one for what the campaign
//! as a whole has to have done.

use std::fmt::Write;
use std::time::Duration;

use super::totals::Line;
use super::verdict::Verdict;

/// The file's text.
pub(super) fn junit(verdict: &Verdict<'_>) -> String {
    let options = verdict.options;
    let (topology, profile) = (options.topology.as_str(), options.profile.as_str());
    let class = format!("sim.{topology}.{profile}");
    let totals = &verdict.totals;
    let whole = verdict.complaints();
    let failures = totals.failed + u64::from(!whole.is_empty());
    let counts = format!(
        "name=\"seawall sim {topology} {profile}\" tests=\"{}\" failures=\"{failures}\" time=\"{}\"",
        totals.lines.len() + 1,
        seconds(verdict.real)
    );
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {counts}>\n<testsuite {counts}>\n"
    );
    for line in &totals.lines {
        case(&mut text, &class, &format!("seed {}", line.seed), line.real, failure(verdict, line));
    }
    let whole = (!whole.is_empty()).then(|| ("campaign".to_owned(), whole.join("\n")));
    case(&mut text, &class, "the campaign as a whole", verdict.real, whole);
    text.push_str("</testsuite>\n</testsuites>\n");
    text
}

/// Type and text of a failed run.
fn failure(verdict: &Verdict<'_>, line: &Line) -> Option<(String, String)> {
    if !line.failed {
        return None;
    }
    let mut trial = verdict.options.trial(line.seed);
    let mut text = String::new();
    let mut promise = "promise".to_owned();
    if let Some(failure) = verdict.totals.failures.get(&line.seed) {
        // It may have had the settings of another seed.
        trial.clone_from(&failure.trial);
        if let Some(first) = failure.violations.first() {
            promise.clone_from(&first.promise);
        }
        for violation in &failure.violations {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{violation}");
        }
    }
    text.push_str(&trial.replay_command());
    Some((promise, text))
}

fn case(
    text: &mut String,
    class: &str,
    name: &str,
    time: Duration,
    failure: Option<(String, String)>,
) {
    let head =
        format!("<testcase classname=\"{class}\" name=\"{name}\" time=\"{}\"", seconds(time));
    let line = match failure {
        None => format!("{head}/>\n"),
        Some((promise, detail)) => {
            let message = escaped(detail.lines().next().unwrap_or_default());
            let (promise, detail) = (escaped(&promise), escaped(&detail));
            format!(
                "{head}><failure type=\"{promise}\" message=\"{message}\">{detail}</failure></testcase>\n"
            )
        }
    };
    text.push_str(&line);
}

fn seconds(time: Duration) -> String {
    format!("{:.3}", time.as_secs_f64())
}

/// Text as it may stand in XML, where most control characters may not stand at all.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\n' | '\t' => safe.push(character),
            '\u{fffe}' | '\u{ffff}' => safe.push('\u{fffd}'),
            character if character.is_control() => safe.push('\u{fffd}'),
            character => safe.push(character),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::simulate::totals::tests::two_runs;
    use crate::cli::simulate::verdict::tests::verdict_of;

    #[test]
    fn a_campaign_is_one_suite() {
        let text = verdict_of(two_runs(), junit);
        assert!(text.contains("tests=\"3\" failures=\"2\""), "{text}");
        assert!(text.contains("name=\"seed 6\" time=\"0.250\"/>"), "{text}");
        assert!(text.contains("<failure type=\"P1\" message=\""), "{text}");
        assert!(text.contains("&lt;entry&gt; &amp; &quot;body&quot;\u{fffd}"), "{text}");
        assert!(text.contains("seawall sim replay 7 --topology swarm --profile swarm"), "{text}");
        assert!(text.contains("no_ghost compared nothing"), "{text}");
        assert_eq!(text.matches("<testcase").count(), 3);
    }
}
