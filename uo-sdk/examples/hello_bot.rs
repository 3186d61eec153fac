//! Logs in, walks to the nearest tree and says hello. `cargo run -p uo-sdk --example hello_bot -- ws://127.0.0.1:7777`

use uo_proto::{ObjectKind, Order};
use uo_sdk::{Client, Event, Options};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let gateway = std::env::args().nth(1);
    let gateway = gateway.unwrap_or_else(|| "ws://127.0.0.1:7777".into());
    let mut client = Client::connect(Options::new(gateway, "hello-bot")).await?;
    while client.world().me().is_none() {
        client.next().await;
    }
    let tree = client.world().nearest_object(ObjectKind::Tree, 64);
    let tree = tree.ok_or("there is no tree far and wide")?.pos();
    println!("from {:?} to a tree at {tree:?}", client.world().pos());
    client.send(Order::WalkTo {
        x: tree.x,
        y: tree.y,
    })?;
    // A tree fills its tile, so being next to it is being there.
    while client.world().pos().distance(tree) > 1 {
        if let Event::Stopped(reason) = client.next().await {
            return Err(reason.into());
        }
    }
    let hello = client.send(Order::Say {
        text: "Hello, tree!".into(),
    })?;
    while client.world().ack() < hello {
        client.next().await;
    }
    println!("said hello at {:?}", client.world().pos());
    client.send(Order::Logout)?;
    while !matches!(client.next().await, Event::Stopped(_)) {}
    Ok(())
}
