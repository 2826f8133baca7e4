//! Reads scenario files and plain Kubernetes manifests. A folder stands for all `*.yaml` and `*.yml` below it;
//! JSON is read when named, through the same reader, since JSON is YAML. An error always names the file, the
//! key or the object, and the line.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::schema::Scenario;

/// Everything a set of paths contained.
#[derive(Debug, Default)]
pub struct Input {
    /// Scenario documents with the file each stands in, in the order of the paths and of the files.
    pub scenarios: Vec<(PathBuf, Scenario)>,
    /// Plain objects of all manifests, in order.
    pub manifests: Vec<Value>,
    /// Files and folders that could not be read; the others are read all the same.
    pub errors: Vec<ReadError>,
}

/// Why a path could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file or folder cannot be opened.
    #[error("{}: {source}", path.display())]
    Io {
        /// Path.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The text is not YAML, or has a key or value that does not belong there.
    #[error("{}{}: {message}", path.display(), line.map(|line| format!(":{line}")).unwrap_or_default())]
    Parse {
        /// Path.
        path: PathBuf,
        /// Line, starting at 1, when the position is known.
        line: Option<u64>,
        /// What is wrong; names the key.
        message: String,
    },
    /// A path holds nothing to read.
    #[error("{}: no *.yaml or *.yml file in this folder", path.display())]
    EmptyFolder {
        /// Path.
        path: PathBuf,
    },
}

/// Reads files and folders. What cannot be read is among [`Input::errors`].
pub fn read_paths(paths: &[PathBuf]) -> Input {
    let mut input = Input::default();
    for path in paths {
        let files = match files_of(path) {
            Ok(files) => files,
            Err(error) => {
                input.errors.push(error);
                continue;
            }
        };
        for file in files {
            if let Err(error) = read_file(&file, &mut input) {
                input.errors.push(error);
            }
        }
    }
    input
}

fn files_of(path: &Path) -> Result<Vec<PathBuf>, ReadError> {
    let metadata = std::fs::metadata(path)
        .map_err(|source| ReadError::Io { path: path.to_owned(), source })?;
    if !metadata.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let files = files_below(path, &["yaml", "yml"])?;
    if files.is_empty() {
        return Err(ReadError::EmptyFolder { path: path.to_owned() });
    }
    Ok(files)
}

/// Files in a folder and all folders below it whose names have one of these endings, in order.
///
/// # Errors
/// When a folder cannot be read.
pub fn files_below(folder: &Path, endings: &[&str]) -> Result<Vec<PathBuf>, ReadError> {
    let mut files = Vec::new();
    collect(folder, endings, &mut files)?;
    files.sort();
    Ok(files)
}

fn collect(folder: &Path, endings: &[&str], files: &mut Vec<PathBuf>) -> Result<(), ReadError> {
    let error = |source| ReadError::Io { path: folder.to_owned(), source };
    for entry in std::fs::read_dir(folder).map_err(error)? {
        let entry = entry.map_err(error)?;
        // `file_type` does not follow links, so a link to a parent folder cannot make this endless.
        let kind = entry.file_type().map_err(error)?;
        let path = entry.path();
        if kind.is_dir() {
            collect(&path, endings, files)?;
        } else if path.extension().is_some_and(|ext| endings.iter().any(|ending| ext == *ending)) {
            files.push(path);
        }
    }
    Ok(())
}

fn read_file(path: &Path, input: &mut Input) -> Result<(), ReadError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| ReadError::Io { path: path.to_owned(), source })?;
    let (scenarios, manifests) = parse(&text).map_err(|error| ReadError::Parse {
        path: path.to_owned(),
        line: error.line,
        message: error.message,
    })?;
    input.scenarios.extend(scenarios.into_iter().map(|scenario| (path.to_owned(), scenario)));
    input.manifests.extend(manifests);
    Ok(())
}

/// A fault in a text, before the file's name is known.
#[derive(Debug, PartialEq, Eq)]
pub struct Fault {
    /// Line, starting at 1.
    pub line: Option<u64>,
    /// What is wrong.
    pub message: String,
}

/// Reads one text: scenario documents, or manifests when its documents are Kubernetes objects.
pub fn parse(text: &str) -> Result<(Vec<Scenario>, Vec<Value>), Fault> {
    let documents: Vec<Value> =
        serde_saphyr::from_multiple_with_options(text, options()).map_err(|e| fault(text, &e))?;
    let documents: Vec<Value> = documents.into_iter().filter(|value| !value.is_null()).collect();
    if documents.is_empty() {
        return Err(Fault { line: None, message: "the file has no document".to_owned() });
    }
    let objects = documents.iter().filter(|value| value.get("kind").is_some()).count();
    if objects == 0 {
        let scenarios: Vec<Scenario> = serde_saphyr::from_multiple_with_options(text, options())
            .map_err(|e| fault(text, &e))?;
        for scenario in &scenarios {
            check(scenario)?;
        }
        return Ok((scenarios, Vec::new()));
    }
    if objects != documents.len() {
        let message = "scenario documents and Kubernetes objects are mixed in one file".to_owned();
        return Err(Fault { line: None, message });
    }
    let mut manifests = Vec::new();
    for document in documents {
        flatten(document, &mut manifests);
    }
    Ok((Vec::new(), manifests))
}

/// Takes `kind: List` apart, as `kubectl get -o yaml` writes it.
fn flatten(mut document: Value, manifests: &mut Vec<Value>) {
    let list = document.get("kind").and_then(Value::as_str).is_some_and(|kind| kind == "List");
    match document.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) if list => manifests.extend(items),
        Some(items) => {
            document["items"] = items;
            manifests.push(document);
        }
        None => manifests.push(document),
    }
}

/// Rules that the shapes alone do not express.
fn check(scenario: &Scenario) -> Result<(), Fault> {
    let refuse = |message: String| Err(Fault { line: None, message });
    if !matches!(&scenario.conf, None | Some(Value::String(_) | Value::Object(_))) {
        return refuse("conf: expected the text of a configuration or an object".to_owned());
    }
    let steps = scenario.steps.iter().flatten();
    let applied = steps.clone().flat_map(|step| &step.apply);
    for (index, object) in scenario.objects.iter().chain(applied).enumerate() {
        if object.get("kind").and_then(Value::as_str).is_none() {
            return refuse(format!("object {} has no kind: {}", index + 1, excerpt(object)));
        }
    }
    for advance in steps.filter_map(|step| step.advance.as_deref()) {
        if let Err(error) = parse_duration(advance) {
            return refuse(format!("advance: {advance:?} is no duration: {error}"));
        }
    }
    if let Some(clock) = &scenario.clock
        && let Err(error) = clock.parse::<jiff::Timestamp>()
    {
        return refuse(format!("clock: {clock:?} is no RFC 3339 time: {error}"));
    }
    Ok(())
}

/// Reads `30s`, `5m`, `1h30m`; answers milliseconds.
pub fn parse_duration(text: &str) -> Result<i64, jiff::Error> {
    let duration: jiff::SignedDuration = text.parse()?;
    Ok(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX))
}

fn excerpt(value: &Value) -> String {
    value.to_string().chars().take(80).collect()
}

fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        with_snippet: false,
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
    }
}

/// Keeps the line and quotes it: the reader's own words name an unknown key, but not the key of a bad value.
fn fault(text: &str, error: &serde_saphyr::Error) -> Fault {
    let line = error.location().map(|location| location.line()).filter(|line| *line > 0);
    let mut message = error.without_snippet().render();
    let index = line.and_then(|line| usize::try_from(line - 1).ok());
    if let Some(quoted) = index.and_then(|index| text.lines().nth(index)) {
        message.push_str(&format!(" in `{}`", quoted.trim()));
    }
    Fault { line, message }
}

#[cfg(test)]
mod tests {
    use super::super::schema::OneOrMany;
    use super::*;

    fn scenario(text: &str) -> Scenario {
        let (mut scenarios, manifests) = parse(text).expect("parses");
        assert!(manifests.is_empty());
        scenarios.remove(0)
    }

    #[test]
    fn an_unknown_key_is_named_with_its_line() {
        let fault = parse("name: a\ncycles: 1\nexpct:\n  bindCount: 0\n").unwrap_err();
        assert_eq!(fault.line, Some(3));
        assert!(fault.message.contains("expct"), "{}", fault.message);
    }

    #[test]
    fn an_unknown_expectation_inside_a_step_is_named_with_its_line() {
        let text = "name: a\nsteps:\n- run: 1\n- check:\n    bindCount: 0\n    bindcount: 1\n";
        let fault = parse(text).unwrap_err();
        assert_eq!(fault.line, Some(6));
        assert!(fault.message.contains("bindcount"), "{}", fault.message);
    }

    #[test]
    fn a_value_of_the_wrong_type_is_named_with_its_line() {
        let fault = parse("name: a\nexpect:\n  bindCount: many\n").unwrap_err();
        assert_eq!(fault.line, Some(3));
        assert!(fault.message.contains("bindCount: many"), "{}", fault.message);
    }

    #[test]
    fn broken_yaml_is_named_with_its_line() {
        let fault = parse("name: a\nobjects: [\n").unwrap_err();
        assert!(fault.line.is_some());
    }

    #[test]
    fn n_and_y_stay_texts() {
        let read = scenario("expect:\n  bind:\n    n: y\n    a: [n, yes, off]\n");
        let bind = read.expect.expect("expect").bind.expect("bind");
        assert_eq!(bind["n"], OneOrMany::One("y".to_owned()));
        assert!(bind["a"].allows("yes"));
    }

    #[test]
    fn documents_with_a_kind_are_manifests_and_lists_are_taken_apart() {
        let text =
            "kind: Node\nmetadata: {name: n1}\n---\nkind: List\nitems:\n- kind: Pod\n- kind: Pod\n";
        let (scenarios, manifests) = parse(text).expect("parses");
        assert!(scenarios.is_empty());
        assert_eq!(manifests.len(), 3);
    }

    #[test]
    fn a_json_document_is_read() {
        let read = scenario("{\"name\": \"j\", \"objects\": [{\"kind\": \"Node\"}]}");
        assert_eq!(read.label(), "j");
        assert_eq!(read.objects.len(), 1);
    }

    #[test]
    fn an_object_without_kind_is_refused() {
        let fault = parse("name: a\nobjects:\n- metadata: {name: x}\n").unwrap_err();
        assert!(fault.message.contains("no kind"), "{}", fault.message);
    }

    #[test]
    fn a_bad_duration_is_refused() {
        let fault = parse("name: a\nsteps:\n- advance: soon\n").unwrap_err();
        assert!(fault.message.contains("soon"), "{}", fault.message);
        assert_eq!(parse_duration("1h30m").expect("duration"), 5_400_000);
    }

    #[test]
    fn an_empty_file_is_refused() {
        assert!(parse("# nothing\n").is_err());
    }
}
