//! Felucca in a terminal: the area of interest as text, orders by keys.
//!
//! Reading order:
//! - [`glyph`]: which character stands for what;
//! - [`journal`]: what happened lately, in words;
//! - [`input`]: from keys to orders;
//! - [`view`]: the screen as lines of text;
//! - [`terminal`]: raw keys in, lines out;
//! - this file: the loop between the server, the keys and the screen.

mod glyph;
mod input;
mod journal;
mod terminal;
#[cfg(test)]
mod test_world;
mod view;

use std::time::Duration;

use anyhow::{Context, bail};
use clap::Parser;
use tokio::time::{MissedTickBehavior, interval, timeout};
use uo_proto::{Encoding, Order};
use uo_sdk::{Client, Event, Options, SendError};

use input::{Input, Wish};
use journal::Journal;
use terminal::{Terminal, Told};

/// How often the screen is drawn at most.
const DRAW_EVERY: Duration = Duration::from_millis(50);
/// How long the first view and the goodbye may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The size of a screen that is no terminal.
const PLAIN_SIZE: (usize, usize) = (80, 45);

/// Play Felucca in a terminal.
#[derive(Parser)]
struct Arguments {
    /// Address of a gateway; more than one may be given.
    #[arg(long, default_value = "ws://127.0.0.1:7777")]
    server: Vec<String>,
    /// The character's name: 1 to 32 letters, digits, `_` or `-`.
    #[arg(long)]
    name: String,
    /// Where accounts are on.
    #[arg(long, env = "FELUCCA_PASSWORD", hide_env_values = true)]
    password: Option<String>,
    /// Print one screen and leave.
    #[arg(long)]
    plain: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    uo_proto::validate_name(&arguments.name)?;
    let options = Options {
        gateways: arguments.server.clone(),
        password: arguments.password.clone(),
        encoding: Encoding::MessagePack,
        ..Options::new(String::new(), &arguments.name)
    };
    let connecting = Client::connect(options);
    let client = timeout(PATIENCE, connecting)
        .await
        .with_context(|| format!("no answer from {}", arguments.server.join(", ")))??;
    let mut game = Game {
        client,
        journal: Journal::default(),
        input: Input::default(),
        last_step: 0,
    };
    game.learn_spells();
    if arguments.plain {
        game.print_one_screen().await
    } else {
        game.play().await
    }
}

struct Game {
    client: Client,
    journal: Journal,
    input: Input,
    /// The number of the step sent last.
    last_step: u64,
}

impl Game {
    async fn print_one_screen(mut self) -> anyhow::Result<()> {
        let seen = timeout(PATIENCE, async {
            while self.client.world().me().is_none() {
                if let Some(end) = self.next().await {
                    bail!("{end}");
                }
            }
            Ok(())
        });
        seen.await.context("the server showed nothing")??;
        let (width, height) = PLAIN_SIZE;
        for line in self.screen(width, height) {
            println!("{}", line.trim_end());
        }
        self.leave().await;
        Ok(())
    }

    async fn play(mut self) -> anyhow::Result<()> {
        let mut terminal = Terminal::open()?;
        let mut keys = terminal::keys();
        let mut draw = interval(DRAW_EVERY);
        draw.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut is_stale = true;
        loop {
            tokio::select! {
                event = self.client.next() => {
                    is_stale = true;
                    if let Some(end) = self.take(&event) {
                        drop(terminal);
                        println!("{end}");
                        return Ok(());
                    }
                }
                told = keys.recv() => match told {
                    Some(Told::Key(key)) => {
                        is_stale = true;
                        if !self.take_key(key) {
                            break;
                        }
                    }
                    Some(Told::Resized) => {
                        is_stale = true;
                        terminal.forget();
                    }
                    None => break,
                },
                _ = draw.tick(), if is_stale => {
                    is_stale = false;
                    let (width, height) = terminal.size();
                    terminal.show(self.screen(width, height))?;
                }
            }
        }
        self.leave().await;
        Ok(())
    }

    fn screen(&self, width: usize, height: usize) -> Vec<String> {
        view::screen(
            self.client.world(),
            &self.journal,
            &self.input,
            width,
            height,
        )
    }

    /// Waits for the next event. The reason, if it is the end.
    async fn next(&mut self) -> Option<String> {
        let event = self.client.next().await;
        self.take(&event)
    }

    fn take(&mut self, event: &Event) -> Option<String> {
        self.journal.take(event, self.client.world());
        match event {
            Event::Welcomed { resumed, .. } => {
                self.learn_spells();
                if !resumed {
                    self.last_step = 0;
                }
                None
            }
            Event::Stopped(reason) => Some(reason.to_string()),
            _ => None,
        }
    }

    fn learn_spells(&mut self) {
        if let Some(welcome) = self.client.welcome() {
            self.input.set_spells(&welcome.spells);
        }
    }

    /// Takes a key; false if it asks to leave.
    fn take_key(&mut self, key: crossterm::event::KeyEvent) -> bool {
        let world = self.client.world();
        match self.input.key(key, world) {
            Some(Wish::Quit) => return false,
            Some(Wish::Order(order)) => {
                let is_step = matches!(order, Order::Step { .. });
                if input::is_step_too_many(&order, self.last_step, world) {
                    return true;
                }
                match self.client.send(order) {
                    Ok(seq) if is_step => self.last_step = seq,
                    Ok(_) => {}
                    Err(error) => self.journal.add(refused(error)),
                }
            }
            None => {}
        }
        true
    }

    /// Says goodbye and waits for the answer, but not for ever.
    async fn leave(&mut self) {
        if self.client.send(Order::Logout).is_ok() {
            let gone = async { while self.next().await.is_none() {} };
            // A server that does not answer will let the character go by itself.
            let _ = timeout(PATIENCE, gone).await;
        }
    }
}

fn refused(error: SendError) -> String {
    format!("Not sent: {error}.")
}
