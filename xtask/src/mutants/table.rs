//! The table of planted bugs.

use toml::{Table, Value};

/// How the simulator hunts a bug.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Search {
    /// Faults tolerated.
    pub f: u64,
    /// Seeds to search at most.
    pub seeds: u64,
    /// Further options of the simulator.
    pub options: Vec<String>,
}

/// One bug to plant.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// Its name.
    pub id: String,
    /// The file to change.
    pub file: String,
    /// The text to replace.
    pub find: String,
    /// What stands there instead.
    pub replace: String,
    /// What goes wrong, in words.
    pub breaks: String,
    /// The rules whose guard this removes.
    pub labels: Vec<String>,
    /// The package whose tests should notice.
    pub tests: Option<String>,
    /// The search that should notice.
    pub sim: Option<Search>,
    /// The checker that must be the one to notice in the search.
    pub checker: Option<String>,
}

impl Mutant {
    /// The text of the file with the bug in it; an error where it does not apply.
    pub fn plant(&self, text: &str) -> Result<String, String> {
        match text.matches(&self.find).count() {
            1 => Ok(text.replacen(&self.find, &self.replace, 1)),
            0 => Err(format!("{}: {} does not contain the text to replace", self.id, self.file)),
            many => Err(format!("{}: {} contains the text to replace {many} times", self.id, self.file)),
        }
    }

    /// What hunts it, for people.
    pub fn hunters(&self) -> String {
        let tests = self.tests.iter().map(|package| format!("tests of {package}"));
        let sim = self.sim.iter().map(|search| format!("sim f={} ≤{} seeds", search.f, search.seeds));
        tests.chain(sim).collect::<Vec<_>>().join(", ")
    }
}

const FIELDS: &[&str] = &["id", "file", "find", "replace", "breaks", "label", "tests", "sim", "checker"];

/// The protocol that the simulator runs for a table: the one of the table's name, unless it says which.
pub fn protocol(table: &Table, name: &str) -> String {
    table.get("protocol").and_then(Value::as_str).unwrap_or(name).to_string()
}

/// Reads the table.
pub fn parse(table: &Table) -> Result<Vec<Mutant>, String> {
    let entries = table.get("mutant").and_then(Value::as_array).ok_or("there is no [[mutant]]")?;
    let mut mutants: Vec<Mutant> = Vec::new();
    for (number, entry) in entries.iter().enumerate() {
        let mutant = one(entry).map_err(|why| format!("bug {}: {why}", number + 1))?;
        if mutants.iter().any(|other| other.id == mutant.id) {
            return Err(format!("two bugs have the name '{}'", mutant.id));
        }
        mutants.push(mutant);
    }
    Ok(mutants)
}

fn one(entry: &Value) -> Result<Mutant, String> {
    let entry = entry.as_table().ok_or("is no table")?;
    if let Some(unknown) = entry.keys().find(|key| !FIELDS.contains(&key.as_str())) {
        return Err(format!("there is no field '{unknown}'"));
    }
    let optional = |name: &str| entry.get(name).and_then(Value::as_str).map(str::to_string);
    let needed = |name: &str| optional(name).ok_or(format!("'{name}' is missing"));
    let labels = match entry.get("label") {
        None => Vec::new(),
        Some(Value::String(label)) => vec![label.clone()],
        Some(other) => texts(other).ok_or("'label' is neither a text nor a list of texts")?,
    };
    let sim = entry.get("sim").map(search).transpose()?;
    let mutant = Mutant {
        id: needed("id")?,
        file: needed("file")?,
        find: needed("find")?,
        replace: needed("replace")?,
        breaks: needed("breaks")?,
        labels,
        tests: optional("tests"),
        sim,
        checker: optional("checker"),
    };
    if mutant.tests.is_none() && mutant.sim.is_none() {
        return Err("nothing hunts it: give 'tests', 'sim' or both".to_string());
    }
    if mutant.find == mutant.replace {
        return Err("it changes nothing".to_string());
    }
    Ok(mutant)
}

fn texts(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|text| text.as_str().map(str::to_string)).collect()
}

fn search(value: &Value) -> Result<Search, String> {
    let number = |name: &str| {
        let number =
            value.get(name).and_then(Value::as_integer).and_then(|number| u64::try_from(number).ok());
        number.ok_or(format!("'sim' needs a number '{name}'"))
    };
    let options = value.get("options").map_or(Some(Vec::new()), texts);
    let options = options.ok_or("the 'options' of 'sim' are no list of texts")?;
    Ok(Search { f: number("f")?, seeds: number("seeds")?, options })
}

/// Bugs that no longer apply.
pub fn stale(mutants: &[Mutant], read: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    let apply = |mutant: &Mutant| match read(&mutant.file) {
        None => Some(format!("{}: there is no file {}", mutant.id, mutant.file)),
        Some(text) => mutant.plant(&text).err(),
    };
    mutants.iter().filter_map(apply).collect()
}
