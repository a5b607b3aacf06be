//! Building the targets with the engine, and running it.

use super::output::{Found, Run};
use crate::{process, workspace};
use std::path::{Path, PathBuf};
use std::process::Command as Program;
use std::time::Duration;

/// The instrumentation that libFuzzer is guided by. All of it is in the compiler that is pinned, and none of
/// it needs a nightly one.
const FLAGS: &[&str] = &[
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];
/// The longest that one input may take.
const INPUT_SECONDS: u64 = 10;
/// The memory of the whole process, against what no allocator of ours counts.
const PROCESS_MEGABYTES: u64 = 2_048;
/// For the start of a target and for the inputs that are kept, beyond its time.
const GRACE: Duration = Duration::from_secs(60);

/// What to search.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The target.
    pub target: String,
    /// The longest input.
    pub longest: u64,
    /// For how long.
    pub seconds: u64,
}

impl Plan {
    /// The search for what is wrong on purpose.
    pub fn canary((target, longest): &(String, u64)) -> Self {
        Self { target: target.clone(), longest: *longest, seconds: super::CANARY_SECONDS }
    }

    fn is_canary(&self) -> bool {
        self.target.starts_with("canary-")
    }
}

/// The built targets.
pub struct Engine {
    program: PathBuf,
    /// Where everything that is made stands.
    place: PathBuf,
    /// What was found before.
    regressions: PathBuf,
}

impl Engine {
    /// Builds the targets.
    pub fn build(root: &Path, limit: Duration) -> Result<Self, String> {
        let compiler = std::env::var_os("CXX").unwrap_or_else(|| "c++".into());
        process::output(Program::new(&compiler).arg("--version")).map_err(|why| {
            format!("{why}\n  mend: a C++ compiler builds the engine: apt-get install build-essential")
        })?;
        let host = host(root)?;
        let place = workspace::target(root).join("fuzz");
        println!("building the targets; minutes the first time");
        let mut cargo = workspace::cargo(root);
        cargo
            .env("CARGO_TARGET_DIR", &place)
            .env("RUSTFLAGS", FLAGS.join(" "))
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .args(["build", "--quiet", "--locked", "--profile", "fuzz", "--target", &host])
            .args(["--package", "troth-fuzz", "--bin", "troth-fuzz"]);
        let ran = process::run(&mut cargo, limit, &mut |elapsed, _| println!("  … {} s", elapsed.as_secs()))?;
        if !ran.ending.good() {
            return Err(format!("the targets do not build ({}):\n{}", ran.ending.describe(), ran.tail(30)));
        }
        let program = place.join(host).join("fuzz").join("troth-fuzz");
        Ok(Self { program, place, regressions: root.join("fuzz").join("regressions") })
    }

    /// Writes the seeds of all targets; gives the targets, each with the length of its longest input.
    pub fn write_seeds(&self) -> Result<Vec<(String, u64)>, String> {
        let seeds = self.seeds();
        let _ = std::fs::remove_dir_all(&seeds);
        make(&seeds)?;
        process::output(Program::new(&self.program).env("TROTH_FUZZ_SEEDS", &seeds))?;
        let list = seeds.join("targets");
        let list = std::fs::read_to_string(&list).map_err(|why| format!("{}: {why}", list.display()))?;
        let entry = |line: &str| {
            let (name, longest) = line.split_once(' ')?;
            Some((name.to_string(), longest.parse().ok()?))
        };
        list.lines().map(|line| entry(line).ok_or(format!("'{line}' is no target"))).collect()
    }

    fn seeds(&self) -> PathBuf {
        self.place.join("seeds")
    }

    /// Searches for the time of the plan, or until something is found.
    pub fn search(&self, plan: &Plan) -> Result<Run, String> {
        let corpus = self.place.join("corpus").join(&plan.target);
        if plan.is_canary() {
            // What an earlier run has learned would be no proof that this one sees.
            let _ = std::fs::remove_dir_all(&corpus);
        }
        let found = self.place.join("found").join(&plan.target);
        make(&corpus)?;
        make(&found)?;
        let mut program = self.program(&plan.target);
        program
            .arg(format!("-max_total_time={}", plan.seconds))
            .arg(format!("-max_len={}", plan.longest))
            .arg(format!("-timeout={}", if plan.is_canary() { 1 } else { INPUT_SECONDS }))
            .arg(format!("-rss_limit_mb={PROCESS_MEGABYTES}"))
            .arg(format!("-artifact_prefix={}/", found.display()))
            .args(["-print_final_stats=1", "-detect_leaks=0"])
            .arg(&corpus)
            .arg(self.seeds().join(&plan.target));
        let before = self.regressions.join(&plan.target);
        if before.is_dir() {
            program.arg(before);
        }
        let limit = Duration::from_secs(plan.seconds + INPUT_SECONDS) + GRACE;
        Ok(Run::of(&plan.target, &process::run(&mut program, limit, &mut |_, _| {})?))
    }

    /// Gives one input to a target: what was found, and everything it said.
    pub fn again(&self, target: &str, input: &Path) -> Result<(Option<Found>, String), String> {
        if !input.is_file() {
            return Err(format!("there is no file {}", input.display()));
        }
        let mut program = self.program(target);
        program.arg(format!("-timeout={INPUT_SECONDS}")).arg(format!("-rss_limit_mb={PROCESS_MEGABYTES}"));
        program.arg("-artifact_prefix=/dev/null/").arg(input);
        let ran = process::run(&mut program, Duration::from_secs(INPUT_SECONDS) + GRACE, &mut |_, _| {})?;
        Ok((Found::of(ran.ending, &ran.all), ran.tail(60)))
    }

    fn program(&self, target: &str) -> Program {
        let mut program = Program::new(&self.program);
        program.env("TROTH_FUZZ_TARGET", target).env("RUST_BACKTRACE", "0");
        program
    }
}

fn make(directory: &Path) -> Result<(), String> {
    std::fs::create_dir_all(directory).map_err(|why| format!("cannot make {}: {why}", directory.display()))
}

/// The name of the machine that this compiler builds for.
fn host(root: &Path) -> Result<String, String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let said = process::output(Program::new(rustc).current_dir(root).arg("-vV"))?;
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_string).ok_or_else(|| "rustc does not say what it builds for".to_string())
}
