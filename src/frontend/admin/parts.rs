//! Requests that concern several topics, each served by a broker of its own: what is here is done here, for
//! the rest their brokers are asked.

use bytes::Bytes;
use http::Method;
use serde_json::Value;

use super::AdminState;
use super::peer;
use super::refusal::Refusal;
use crate::broker::Located;
use crate::domain::TopicName;

/// Where a topic is served.
pub(crate) enum Holder {
    /// Here.
    Here,
    /// By the broker at this `http://host:port`, which may have to take it first.
    There(String, bool),
}

/// Where a topic is served; it is taken if it is nobody's.
pub(crate) async fn holder(state: &AdminState, name: &TopicName) -> Result<Holder, Refusal> {
    Ok(match state.broker()?.locate(name, false).await? {
        Located::Here => Holder::Here,
        Located::At(owner) => Holder::There(owner.http, false),
        Located::Ask(candidate) => Holder::There(candidate.http, true),
    })
}

/// Asks another broker for something below a topic's path.
pub(crate) async fn ask(
    state: &AdminState,
    method: Method,
    (http, authoritative): (&str, bool),
    name: &TopicName,
    rest: &str,
) -> Result<Bytes, Refusal> {
    let joint = if rest.contains('?') { '&' } else { '?' };
    let path = format!("/admin/v2/{}{rest}{joint}authoritative={authoritative}", topic_path(name));
    peer::ask(&state.runtime, method, http, &path).await
}

/// `persistent/tenant/namespace/topic`, as it is part of a path.
pub(crate) fn topic_path(name: &TopicName) -> String {
    format!(
        "{}/{}/{}/{}",
        name.domain().as_str(),
        encoded(&name.namespace().tenant),
        encoded(&name.namespace().namespace),
        encoded(name.local()),
    )
}

/// Percent-encodes everything but what is never special in a path.
pub(crate) fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// Adds one broker's statistics to another's: numbers add up, lists follow each other, of two texts the
/// first that says something stays.
pub(crate) fn add(to: &mut Value, more: Value) {
    match (to, more) {
        (Value::Object(to), Value::Object(more)) => {
            for (key, value) in more {
                match to.get_mut(&key) {
                    Some(known) => add(known, value),
                    None => drop(to.insert(key, value)),
                }
            }
        }
        (Value::Array(to), Value::Array(more)) => to.extend(more),
        (Value::Bool(to), Value::Bool(more)) => *to |= more,
        (Value::String(to), Value::String(more)) if to.is_empty() => *to = more,
        (to @ Value::Number(_), Value::Number(more)) => {
            let sum = match (to.as_i64(), more.as_i64()) {
                (Some(one), Some(two)) => Value::from(one.saturating_add(two)),
                _ => Value::from(to.as_f64().unwrap_or(0.0) + more.as_f64().unwrap_or(0.0)),
            };
            *to = sum;
        }
        (to @ Value::Null, more) => *to = more,
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn statistics_add_up() {
        let mut sum =
            json!({"a": 1, "b": 1.5, "s": {"x": {"n": 2, "t": ""}}, "l": [1], "f": false});
        add(
            &mut sum,
            json!({"a": 2, "b": 1.0, "s": {"x": {"n": 3, "t": "u"}, "y": 1}, "l": [2], "f": true}),
        );
        let expected = json!({
            "a": 3, "b": 2.5, "s": {"x": {"n": 5, "t": "u"}, "y": 1}, "l": [1, 2], "f": true
        });
        assert_eq!(sum, expected);
        assert_eq!(encoded("a b/ü-1.x"), "a%20b%2F%C3%BC-1.x");
    }
}
