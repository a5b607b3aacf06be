//! The program behind `cargo xtask fuzz`. Built for it, it searches; built otherwise, it takes the inputs whose files
//! are named: `TROTH_FUZZ_TARGET=<name> troth-fuzz <file> …`.
#![cfg_attr(fuzzing, no_main)]
#![cfg_attr(fuzzing, allow(unsafe_code, reason = "the engine calls the target by a name for the linker"))]

use std::path::Path;
use troth_fuzz::Target;

/// Names the target.
const TARGET: &str = "TROTH_FUZZ_TARGET";

fn target() -> &'static Target {
    let name = std::env::var(TARGET).unwrap_or_default();
    troth_fuzz::find(&name).unwrap_or_else(|| {
        eprintln!("There is no target '{name}'; name one in {TARGET}.");
        std::process::exit(2)
    })
}

#[cfg(fuzzing)]
mod engine {
    use super::{Target, target, write_seeds};
    use std::path::Path;
    use std::sync::OnceLock;

    /// Names a directory; the seeds of all targets are written there, and nothing else is done.
    const SEEDS: &str = "TROTH_FUZZ_SEEDS";
    static CHOSEN: OnceLock<&'static Target> = OnceLock::new();

    libfuzzer_sys::fuzz_target!(
        init: {
            if let Some(directory) = std::env::var_os(SEEDS) {
                write_seeds(Path::new(&directory)).expect("the directory for the seeds can be written");
                std::process::exit(0);
            }
            let _ = CHOSEN.set(target());
        },
        |input: &[u8]| CHOSEN.get().expect("set at the start").check(input)
    );
}

/// Writes the seeds of every target into a directory of its name, with its longest input beside them.
#[cfg_attr(not(fuzzing), expect(dead_code, reason = "part of the search"))]
fn write_seeds(directory: &Path) -> std::io::Result<()> {
    let mut list = String::new();
    for target in troth_fuzz::TARGETS.iter().chain(troth_fuzz::CANARIES) {
        let place = directory.join(target.name);
        std::fs::create_dir_all(&place)?;
        for (number, seed) in (target.seeds)().iter().enumerate() {
            std::fs::write(place.join(number.to_string()), seed)?;
        }
        list += &format!("{} {}\n", target.name, target.longest);
    }
    std::fs::write(directory.join("targets"), list)
}

#[cfg(not(fuzzing))]
fn main() -> std::io::Result<()> {
    let target = target();
    for file in std::env::args_os().skip(1) {
        target.check(&std::fs::read(&file)?);
        println!("{}: {} takes it", Path::new(&file).display(), target.name);
    }
    Ok(())
}
