//! The database under a cluster: paused and resumed by commands.

use std::process::Command;

use anyhow::{Context, ensure};

/// How a database is paused and resumed as a whole. Dropped while it is paused, it is resumed.
#[derive(Debug)]
pub struct Database {
    pause: String,
    resume: String,
    is_paused: bool,
}

impl Database {
    /// A database that runs. Both commands are for the shell.
    pub fn new(pause: String, resume: String) -> Database {
        Database {
            pause,
            resume,
            is_paused: false,
        }
    }

    /// Pauses all of it.
    pub fn pause(&mut self) -> anyhow::Result<()> {
        // Before: a command that fails half way has paused some of it.
        self.is_paused = true;
        run(&self.pause)
    }

    /// Resumes all of it.
    pub fn resume(&mut self) -> anyhow::Result<()> {
        run(&self.resume)?;
        self.is_paused = false;
        Ok(())
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if self.is_paused
            && let Err(error) = self.resume()
        {
            eprintln!("the database is still paused: {error:#}");
        }
    }
}

/// Runs a command of the shell; its complaint is the error.
pub fn run(command: &str) -> anyhow::Result<()> {
    let output = Command::new("sh")
        .args(["-c", command])
        .output()
        .with_context(|| format!("cannot run `{command}`"))?;
    ensure!(
        output.status.success(),
        "`{command}` failed ({}): {}",
        output.status,
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_is_never_left_paused() {
        let dir = tempfile::tempdir().expect("a folder");
        let mark = dir.path().join("paused");
        let pause = format!("touch {}", mark.display());
        let resume = format!("rm {}", mark.display());
        let mut database = Database::new(pause, resume);
        database.pause().expect("it pauses");
        assert!(mark.exists());
        drop(database);
        assert!(!mark.exists());
        let mut broken = Database::new("false".into(), "true".into());
        assert!(broken.pause().is_err());
    }
}
