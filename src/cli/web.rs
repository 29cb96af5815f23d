//! `sidenote web`: serves the page of a vault, and opens it in the browser.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::Args;
use sidenote_base::error::Result;
use sidenote_config as config;

use super::{CommandContext, open};
use crate::web::{Asset, Web};

/// The port that is taken unless another one is given. If it is in use, any free one is.
const PORT: u16 = 7327;

/// The built files of the page, which `npm run build` in `web/` lists.
const ASSETS: &[Asset] = include!("../../assets/web/files.rs");

/// Open a page that shows the vault: search, notes, graph, memory, activity, problems.
///
/// The page is served on this machine until Ctrl-C. Its address has a token, which becomes a cookie in the browser. Every change goes through the same plans as a command, is shown before it is made, and can be undone.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sidenote web
  sidenote --vault ~/notes web --read-only
  sidenote web --addr 127.0.0.1:8080 --no-open")]
pub(super) struct WebArgs {
    /// The address to listen on. Default: 127.0.0.1:7327, or another free port if that is in use.
    #[arg(long, value_name = "ADDRESS")]
    addr: Option<SocketAddr>,
    /// Do not open the browser. It is opened with $SIDENOTE_OPENER, or with the program that the system has for it.
    #[arg(long)]
    no_open: bool,
    /// Show nothing that writes, and write no note and no journal.
    #[arg(long)]
    read_only: bool,
    /// The file with the token of the first address. It is created if it is missing. Required for an address that other
    /// machines can reach.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

pub(super) fn run(context: &mut CommandContext, args: &WebArgs) -> Result<()> {
    context.open.fill = true;
    context.open.read_only = args.read_only;
    let store = context.store()?;
    let web = Web {
        address: args.addr.unwrap_or_else(|| SocketAddr::from((Ipv4Addr::LOCALHOST, PORT))),
        may_move: args.addr.is_none(),
        token_file: args.token_file.clone(),
        secret_folder: config::user_cache(),
        assets: ASSETS,
    };
    let out = context.out;
    let mut printed = Ok(());
    crate::web::serve(store, &web, &mut |address| {
        printed = out.print(&format!("{address}\n"));
        out.message("press Ctrl-C to stop");
        if !args.no_open {
            open::open_browser(out, address.to_owned());
        }
    })?;
    printed
}
