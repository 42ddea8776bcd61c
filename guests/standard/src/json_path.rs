//! Paths into JSON documents: `$.user.emails[*]`.

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Key(String),
    AnyKey,
    Index(usize),
    AnyIndex,
}

/// A path. It names a value and all that lies in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path(Vec<Step>);

/// Where a value lies in a document.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    Key(String),
    Index(usize),
}

impl Path {
    /// Reads `$`, `.key`, `['key']`, `.*`, `[0]` and `[*]`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("arguments: {text:?} is no path; write $.user.email, $.items[*].name or $['a key']");
        let mut rest = text.strip_prefix('$').ok_or_else(wrong)?;
        let mut steps = Vec::new();
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix("['") {
                let (key, after) = after.split_once("']").ok_or_else(wrong)?;
                steps.push(Step::Key(key.to_owned()));
                rest = after;
            } else if let Some(after) = rest.strip_prefix('[') {
                let (index, after) = after.split_once(']').ok_or_else(wrong)?;
                let any = index == "*";
                steps.push(if any { Step::AnyIndex } else { Step::Index(index.parse().map_err(|_| wrong())?) });
                rest = after;
            } else {
                let after = rest.strip_prefix('.').ok_or_else(wrong)?;
                let (key, after) = after.split_at(after.find(['.', '[']).unwrap_or(after.len()));
                if key.is_empty() {
                    return Err(wrong());
                }
                steps.push(if key == "*" { Step::AnyKey } else { Step::Key(key.to_owned()) });
                rest = after;
            }
        }
        Ok(Self(steps))
    }

    /// Whether a place is the one that the path names, or lies in it.
    pub(crate) fn covers(&self, place: &[Place]) -> bool {
        let fits = |(step, place): (&Step, &Place)| match (step, place) {
            (Step::Key(wanted), Place::Key(key)) => wanted == key,
            (Step::Index(wanted), Place::Index(index)) => wanted == index,
            (Step::AnyKey, Place::Key(_)) | (Step::AnyIndex, Place::Index(_)) => true,
            _ => false,
        };
        place.len() >= self.0.len() && self.0.iter().zip(place).all(fits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_cover_what_lies_in_them() {
        let place = [Place::Key("items".to_owned()), Place::Index(3), Place::Key("a b".to_owned())];
        for (path, covers) in [
            ("$", true),
            ("$.items", true),
            ("$.items[*]", true),
            ("$.items[3]['a b']", true),
            ("$.*[*].*", true),
            ("$.items[2]", false),
            ("$.other", false),
            ("$[3]", false),
            ("$.items[3]['a b'].deeper", false),
        ] {
            assert_eq!(Path::parse(path).map(|path| path.covers(&place)), Ok(covers), "{path}");
        }
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for path in ["", "user", "$user", "$.", "$..a", "$[", "$[x]", "$['a"] {
            assert!(Path::parse(path).is_err(), "{path}");
        }
    }
}
