//! Logs in, walks to the nearest tree and says hello. `cargo run -p uo-sdk --example hello_bot -- ws://127.0.0.1:7777`

use uo_proto::{ObjectKind, Order, ServerMsg};
use uo_sdk::{Client, Event, Options};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let gateway = arguments.next().unwrap_or("ws://127.0.0.1:7777".into());
    let name = arguments.next().unwrap_or("hello-bot".into());
    let mut client = Client::connect(Options::new(gateway, name)).await?;
    while client.world().me().is_none() {
        client.next().await;
    }
    let tree = client.world().nearest_object(ObjectKind::Tree, 64);
    let tree = tree.ok_or("there is no tree far and wide")?.pos();
    // A tree fills its tile: one can only stand beside it.
    let goal = client.world().tile_beside(tree).ok_or("no way there")?;
    client.send(Order::WalkTo {
        x: goal.x,
        y: goal.y,
    })?;
    while client.world().pos() != goal {
        match client.next().await {
            Event::Message(ServerMsg::StepRejected(_)) => return Err("no way there".into()),
            Event::Stopped(reason) => return Err(reason.into()),
            _ => {}
        }
    }
    let text = format!("Hello, tree at {}, {}!", tree.x, tree.y);
    println!("{text}");
    let hello = client.send(Order::Say { text })?;
    while client.world().ack() < hello {
        client.next().await;
    }
    client.send(Order::Logout)?;
    while !matches!(client.next().await, Event::Stopped(_)) {}
    Ok(())
}
