//! Commands as they can be typed again where this program was started: by the name it was started with.

/// The command, which begins with `seawall`, with the name of this process in its place.
pub(super) fn typed(command: &str) -> String {
    named(std::env::args().next().as_deref(), command)
}

fn named(program: Option<&str>, command: &str) -> String {
    let is_plain = |name: &&str| {
        !name.is_empty()
            && name.chars().all(|letter| letter.is_alphanumeric() || "/._-+".contains(letter))
    };
    match (program, command.strip_prefix("seawall ")) {
        (Some(program), Some(words)) => match Some(program).filter(is_plain) {
            Some(program) => format!("{program} {words}"),
            None => format!("'{}' {words}", program.replace('\'', r"'\''")),
        },
        _ => command.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_names_the_program_as_it_was_started() {
        let command = "seawall sim replay 7";
        assert_eq!(named(Some("seawall"), command), command);
        assert_eq!(named(None, command), command);
        assert_eq!(
            named(Some("target/release/seawall"), command),
            "target/release/seawall sim replay 7"
        );
        assert_eq!(named(Some("/a b/it's"), command), r"'/a b/it'\''s' sim replay 7");
    }
}
