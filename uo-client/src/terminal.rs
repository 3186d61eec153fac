//! The terminal: raw keys in, lines out, and everything as it was when the client ends.

use std::io::{self, Write};

use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::event::{self, Event, KeyEvent};
use crossterm::style::Print;
use crossterm::terminal::{self, Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen};
use crossterm::{execute, queue};
use tokio::sync::mpsc;

/// Keys that may wait; more are dropped by the terminal's own queue.
const KEYS_MAX: usize = 64;

/// A terminal in raw mode for as long as this lives.
pub struct Terminal {
    shown: Vec<String>,
}

impl Terminal {
    /// Takes the terminal over.
    pub fn open() -> io::Result<Terminal> {
        terminal::enable_raw_mode()?;
        // From here on, dropping it puts everything back.
        let terminal = Terminal { shown: Vec::new() };
        execute!(io::stdout(), EnterAlternateScreen, Hide)?;
        Ok(terminal)
    }

    /// Columns and rows.
    pub fn size(&self) -> (usize, usize) {
        let (width, height) = terminal::size().unwrap_or((80, 24));
        (width.into(), height.into())
    }

    /// Shows `lines`; writes only those that changed.
    pub fn show(&mut self, lines: Vec<String>) -> io::Result<()> {
        let mut out = io::stdout().lock();
        let all = lines.len() != self.shown.len();
        for (row, line) in lines.iter().enumerate() {
            if all || self.shown[row] != *line {
                let row = u16::try_from(row).unwrap_or(u16::MAX);
                queue!(
                    out,
                    MoveTo(0, row),
                    Clear(ClearType::CurrentLine),
                    Print(line)
                )?;
            }
        }
        self.shown = lines;
        out.flush()
    }

    /// Draws everything anew next time.
    pub fn forget(&mut self) {
        self.shown.clear();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Nothing can be done about a terminal that is gone.
        let _ = execute!(io::stdout(), Show, LeaveAlternateScreen);
        let _ = terminal::disable_raw_mode();
    }
}

/// What the terminal tells.
pub enum Told {
    /// A key.
    Key(KeyEvent),
    /// Another size.
    Resized,
}

/// Reads keys on a thread of its own, since a terminal can only be waited for by blocking; it ends with the process.
pub fn keys() -> mpsc::Receiver<Told> {
    let (sender, receiver) = mpsc::channel(KEYS_MAX);
    std::thread::spawn(move || {
        while let Ok(event) = event::read() {
            let told = match event {
                Event::Key(key) => Told::Key(key),
                Event::Resize(..) => Told::Resized,
                _ => continue,
            };
            if sender.blocking_send(told).is_err() {
                break;
            }
        }
    });
    receiver
}
