//! Reads from a crate's sources which module names which, and finds the modules that name each other.
//!
//! An arrow leads from a file to the file that defines what it names. A file and the folder beside it are one room:
//! a child may name items of its parent. Cycles are looked for between the rooms of each folder.

use std::collections::{BTreeMap, BTreeSet};

/// A path inside a crate: `["session", "output"]`; the root is empty.
type Path = Vec<String>;

/// The modules of one crate, without its tests.
#[derive(Default)]
pub struct Crate {
    /// The tokens of each module, without its inline tests.
    modules: BTreeMap<Path, Vec<String>>,
    /// What each name that a module imports or declares stands for.
    names: BTreeMap<Path, BTreeMap<String, Path>>,
}

impl Crate {
    /// Reads a crate from the paths of its files below `src` and their texts.
    pub fn new<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut krate = Crate::default();
        let mut tests = Vec::new();
        for (file, text) in files {
            if let Some(module) = module(file) {
                let (shipped, outside) = without_tests(tokens(text));
                tests.extend(outside.into_iter().map(|name| joined(&module, name)));
                krate.modules.insert(module, shipped);
            }
        }
        krate.modules.retain(|module, _| !tests.iter().any(|test| module.starts_with(test)));
        krate.names =
            krate.modules.iter().map(|(module, tokens)| (module.clone(), imports(tokens))).collect();
        krate
    }

    /// Returns the groups of modules in which each reaches each other, by the folder they stand in.
    pub fn cycles(&self) -> Vec<(String, Vec<String>)> {
        let arrows = self.arrows();
        let folders: BTreeSet<&[String]> =
            self.modules.keys().filter_map(|m| Some(m.split_last()?.1)).collect();
        let mut found = Vec::new();
        for folder in folders {
            let near = |(from, to): &(Path, Path)| {
                let both = from.starts_with(folder) && to.starts_with(folder);
                let (from, to) = (from.get(folder.len())?, to.get(folder.len())?);
                (both && from != to).then(|| (from.clone(), to.clone()))
            };
            let groups = groups(&arrows.iter().filter_map(near).collect());
            found.extend(groups.into_iter().map(|group| (folder.join("::"), group)));
        }
        found
    }

    /// Returns each pair of modules of which the first names something of the second.
    fn arrows(&self) -> BTreeSet<(Path, Path)> {
        let mut arrows = BTreeSet::new();
        for (module, tokens) in &self.modules {
            let imported = self.names[module].values().cloned();
            for path in imported.chain(paths(tokens)) {
                if let Some(target) = self.resolve(module, &path, 0).filter(|target| target != module) {
                    arrows.insert((module.clone(), target));
                }
            }
        }
        arrows
    }

    /// Returns the module that defines what `path` means in `module`, through re-exports. None: not in this crate.
    fn resolve(&self, module: &[String], path: &[String], depth: usize) -> Option<Path> {
        let (first, rest) = path.split_first()?;
        let named = |module: &[String], name: &String| self.names.get(module)?.get(name).cloned();
        let through = |module: &[String], mut path: Path, rest: &[String]| {
            path.extend_from_slice(rest);
            self.resolve(module, &path, depth + 1)
        };
        let mut at = match first.as_str() {
            _ if depth > 20 => return None,
            "crate" => Path::new(),
            "self" => module.to_vec(),
            "super" => module.split_last()?.1.to_vec(),
            name if self.modules.contains_key(&joined(module, name)) => joined(module, name),
            _ => match named(module, first) {
                Some(path) if path[0] != *first => return through(module, path, rest),
                _ => return None,
            },
        };
        for (behind, name) in rest.iter().enumerate() {
            if name == "super" {
                at.pop();
            } else if self.modules.contains_key(&joined(&at, name)) {
                at.push(name.clone());
            } else {
                let path = named(&at, name);
                return path.and_then(|path| through(&at, path, &rest[behind + 1..])).or(Some(at));
            }
        }
        Some(at)
    }
}

/// Returns the module that a file below `src` holds. None: a program, which other modules cannot name.
fn module(file: &str) -> Option<Path> {
    let mut module: Path = file.trim_end_matches(".rs").split('/').map(String::from).collect();
    match (module[0].as_str(), module.last()?.as_str()) {
        ("main" | "bin", _) => return None,
        (_, "lib" | "mod") => drop(module.pop()),
        _ => {}
    }
    Some(module)
}

fn joined(module: &[String], name: impl Into<String>) -> Path {
    [module, &[name.into()]].concat()
}

/// Returns the groups of two names or more that reach each other over these arrows.
fn groups(arrows: &BTreeSet<(String, String)>) -> Vec<Vec<String>> {
    let reached = |start: &String| {
        let mut reached = BTreeSet::new();
        let mut next = vec![start.clone()];
        while let Some(from) = next.pop() {
            let targets = arrows.iter().filter(|arrow| arrow.0 == from).map(|arrow| arrow.1.clone());
            next.extend(targets.filter(|to| reached.insert(to.clone())));
        }
        reached
    };
    let from: BTreeMap<&String, BTreeSet<String>> =
        arrows.iter().map(|(from, _)| (from, reached(from))).collect();
    let mut found: Vec<Vec<String>> = Vec::new();
    for (start, reach) in &from {
        let mutual = |other: &&String| from.get(other).is_some_and(|back| back.contains(*start));
        let group: Vec<String> = reach.iter().filter(mutual).cloned().collect();
        if group.len() > 1 && !found.contains(&group) {
            found.push(group);
        }
    }
    found
}

/// Returns the words and signs of a source text, without comments and literals; `::` is one token.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let word = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let len = match c {
            _ if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            _ if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            _ if rest.starts_with("::") => 2,
            '"' => string(rest),
            '\'' => character(rest),
            _ if word > 0 => match (&rest[..word], &rest[word..]) {
                ("r" | "br" | "cr", behind) if behind.starts_with(['"', '#']) => word + raw_string(behind),
                _ => word,
            },
            c => c.len_utf8(),
        };
        let (token, behind) = rest.split_at(len);
        let is_literal = token.contains(['"', '\'']) || token.starts_with(['/', ' ', '\n']) && token != "/";
        if !is_literal {
            tokens.push(token.to_string());
        }
        rest = behind;
    }
    tokens
}

/// Returns the length of the string literal at the front.
fn string(text: &str) -> usize {
    let mut escaped = false;
    let end = text.char_indices().skip(1).find(|(_, c)| {
        let ends = *c == '"' && !escaped;
        escaped = *c == '\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |(at, _)| at + 1)
}

/// Returns the length of what follows the `r` of a raw string; 0 for a raw identifier.
fn raw_string(text: &str) -> usize {
    let hashes = text.len() - text.trim_start_matches('#').len();
    if !text[hashes..].starts_with('"') {
        return 0;
    }
    let end = format!("\"{}", &text[..hashes]);
    text[hashes + 1..].find(&end).map_or(text.len(), |at| hashes + 1 + at + end.len())
}

/// Returns the length of the character literal at the front, or 1 for the quote of a lifetime.
fn character(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), Some((at, c))) => {
            let behind = at + c.len_utf8();
            text[behind..].find('\'').map_or(text.len(), |end| behind + end + 1)
        }
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 1,
    }
}

/// Returns the words of a source text, without its inline tests, comments and literals.
pub fn words(text: &str) -> Vec<String> {
    without_tests(tokens(text)).0
}

/// Returns the tokens without inline test modules, and the names of test modules in files of their own.
fn without_tests(tokens: Vec<String>) -> (Vec<String>, Vec<String>) {
    const TEST: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let (mut shipped, mut outside) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < tokens.len() {
        let rest = &tokens[at..];
        let is_test = rest.len() > TEST.len() && rest.iter().zip(TEST).all(|(token, test)| token == test);
        let module = rest.iter().position(|token| ["mod", "{", ";"].contains(&token.as_str()));
        if let Some(module) = module.filter(|at| is_test && rest[*at] == "mod") {
            if rest[module + 2] == ";" {
                outside.push(rest[module + 1].clone());
            }
            at += module + 2 + block(&rest[module + 2..]);
        } else {
            shipped.push(tokens[at].clone());
            at += 1;
        }
    }
    (shipped, outside)
}

/// Returns the number of tokens from the front to the brace that closes the first one; 1 where none opens.
fn block(tokens: &[String]) -> usize {
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate() {
        match token.as_str() {
            "{" => depth += 1,
            "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

/// Returns each name that `use` brings, with the path it stands for.
fn imports(tokens: &[String]) -> BTreeMap<String, Path> {
    let mut names = BTreeMap::new();
    let uses = tokens.iter().enumerate().filter(|(_, token)| *token == "use");
    for (at, _) in uses {
        import(&mut tokens[at + 1..].iter().map(String::as_str).peekable(), Path::new(), &mut names);
    }
    names
}

/// Reads one tree of a `use` up to the `,`, `}` or `;` behind it.
fn import<'a>(
    tokens: &mut std::iter::Peekable<impl Iterator<Item = &'a str>>,
    mut path: Path,
    names: &mut BTreeMap<String, Path>,
) {
    while let Some(token) = tokens.next_if(|token| ![",", "}", ";"].contains(token)) {
        match token {
            "::" => {}
            "self" if !path.is_empty() => {}
            "as" => {
                let name = tokens.next().unwrap_or_default();
                // `as _` brings no name, and still names its module.
                let name = if name == "_" { path.join("::") } else { name.to_string() };
                names.insert(name, path);
                return;
            }
            "{" => {
                while tokens.next_if_eq(&"}").is_none() {
                    import(&mut *tokens, path.clone(), names);
                    if tokens.next_if_eq(&",").is_none() && tokens.peek() != Some(&"}") {
                        return;
                    }
                }
                return;
            }
            word => path.push(word.to_string()),
        }
    }
    let name = match path.last().map(String::as_str) {
        None => return,
        Some("*") => path.join("::"),
        Some(name) => name.to_string(),
    };
    names.insert(name, path);
}

/// Returns every path of two words or more, `use` apart.
fn paths(tokens: &[String]) -> Vec<Path> {
    let is_word = |token: &String| token.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at] == "use" {
            at += tokens[at..].iter().position(|token| token == ";").unwrap_or(0) + 1;
            continue;
        }
        let mut path = Path::new();
        while at < tokens.len() && is_word(&tokens[at]) {
            path.push(tokens[at].clone());
            if tokens.get(at + 1).is_none_or(|next| next != "::") {
                break;
            }
            at += 2;
        }
        if path.len() > 1 {
            found.push(path);
        }
        at += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycles(files: &[(&str, &str)]) -> Vec<(String, Vec<String>)> {
        Crate::new(files.iter().copied()).cycles()
    }

    fn cycle(folder: &str, group: &[&str]) -> Vec<(String, Vec<String>)> {
        vec![(folder.to_string(), group.iter().map(|name| name.to_string()).collect())]
    }

    #[test]
    fn two_modules_that_name_each_other_are_a_cycle() {
        let groups = cycle("", &["a", "b"]);
        assert_eq!(cycles(&[("a.rs", "use crate::b::B;"), ("b.rs", "use super::a::A;")]), groups);
        assert_eq!(
            cycles(&[("a.rs", "fn f() { crate::b::g() }"), ("b.rs", "type A = crate::a::A;")]),
            groups
        );
        assert_eq!(
            cycles(&[("a.rs", "use crate::{c, b::{self, B}};"), ("b.rs", "use crate::a as x;")]),
            groups
        );
        assert_eq!(cycles(&[("a.rs", "use crate::b::*;"), ("b.rs", "use crate::a::A as _;")]), groups);
        assert_eq!(cycles(&[("a.rs", "use crate::b;"), ("b.rs", "")]), vec![]);
    }

    #[test]
    fn a_cycle_may_lead_over_three_corners() {
        let files =
            [("a.rs", "use crate::b::B;"), ("b.rs", "use crate::c::C;"), ("c.rs", "use crate::a::A;")];
        assert_eq!(cycles(&files), cycle("", &["a", "b", "c"]));
    }

    #[test]
    fn a_file_and_the_folder_beside_it_are_one_room() {
        let room = [("a.rs", "mod b; use b::B;"), ("a/b.rs", "use super::A; use crate::a::C;")];
        assert_eq!(cycles(&room), vec![]);
        let rooms =
            [("a/b.rs", "use crate::c::C;"), ("c/d.rs", "use crate::a::A;"), ("a.rs", ""), ("c.rs", "")];
        assert_eq!(cycles(&rooms), cycle("", &["a", "c"]));
        let inside = [("a.rs", ""), ("a/b.rs", "use super::c::C;"), ("a/c.rs", "use crate::a::b::B;")];
        assert_eq!(cycles(&inside), cycle("a", &["b", "c"]));
    }

    #[test]
    fn a_name_leads_to_the_file_that_defines_it() {
        let root = ("lib.rs", "mod a; mod b; pub use b::B;");
        assert_eq!(
            cycles(&[root, ("a.rs", "use crate::B;"), ("b.rs", "use crate::a;")]),
            cycle("", &["a", "b"])
        );
        let inner = ("x.rs", "mod a; mod b; use crate::y as z;");
        let files = [inner, ("x/a.rs", "super::z::f();"), ("x/b.rs", ""), ("y.rs", "use crate::x;")];
        assert_eq!(cycles(&files), cycle("", &["x", "y"]));
        let outside = ("a.rs", "use std::fmt; use crate::b; fmt::b::a(); b::f();");
        assert_eq!(cycles(&[outside, ("b.rs", "use std::a; a::x();")]), vec![]);
    }

    #[test]
    fn tests_comments_and_literals_name_nothing() {
        let a = ("a.rs", "use crate::b;");
        for b in [
            "// use crate::a;\n/* crate::a::A */",
            "const S: &str = \"\\\" crate::a::A\"; const C: char = '\"';",
            "const R: &[u8] = br#\"\" crate::a::A\"#; fn f<'a>(c: &'a u8) {}",
            "#[cfg(test)]\n#[path = \"x\"] mod tests { mod m { use crate::a; } fn f() {} }",
        ] {
            assert_eq!(cycles(&[a, ("b.rs", b)]), vec![], "{b}");
            let b = format!("{b} fn g() {{ crate::a::h() }}");
            assert_eq!(cycles(&[a, ("b.rs", &b)]), cycle("", &["a", "b"]), "{b}");
        }
        let beside = [a, ("b.rs", "#[cfg(test)] mod tests;"), ("b/tests.rs", "use crate::a;")];
        assert_eq!(cycles(&beside), vec![]);
        assert_eq!(cycles(&[a, ("b.rs", "mod tests;"), beside[2]]), cycle("", &["a", "b"]));
        assert_eq!(cycles(&[a, ("b.rs", ""), ("main.rs", "use crate::b;")]), vec![]);
    }
}
