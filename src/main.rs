//! The process: parse, check, bind, serve, drain.

use std::io::{ErrorKind, Write};
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::time::Duration;
use toolsearch_proxy::app::{self, App, Listeners, Stop};
use toolsearch_proxy::config::{Cli, Command, ConfigCommand, FetchModelArgs, HealthcheckArgs, ServeArgs};
use toolsearch_proxy::host::{StopSignal, StopSignals};
use toolsearch_proxy::telemetry::Tracing;
use toolsearch_proxy::{config, demo, eval, healthcheck, host, telemetry};

#[global_allocator]
static ALLOCATOR: host::Allocator = host::ALLOCATOR;

/// Settings that can't be used.
const EXIT_USAGE: u8 = 2;

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|panic| {
        // The message could hold what a caller sent; the place can't.
        let place = panic.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
        say(&format!("panic at {place}"));
    }));
    host::forbid_core_dumps();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(1, &format!("the runtime can't start: {error}")),
    };
    let exit = match Cli::read(std::env::args_os()).unwrap_or_else(|error| error.exit()).command {
        Command::Serve(args) => runtime.block_on(serve(*args)),
        Command::Eval(args) => {
            let token = config::variable(&args.token_env).filter(|token| !token.trim().is_empty());
            match runtime.block_on(eval::run(&args, token.as_deref(), &mut std::io::stdout())) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => fail(EXIT_USAGE, &error.to_string()),
            }
        }
        Command::Demo(args) => match runtime.block_on(demo::run(args, stop_signal())) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(1, &error.to_string()),
        },
        Command::FetchModel(args) => runtime.block_on(fetch_model(*args)),
        Command::Config { command: ConfigCommand::Check(args) } => check(*args),
        Command::Healthcheck(args) => runtime.block_on(ask(args)),
    };
    // Work that was cut off at the deadline is not waited for.
    runtime.shutdown_background();
    exit
}

fn variables() -> impl Iterator<Item = String> {
    std::env::vars_os().filter_map(|(name, _)| name.into_string().ok())
}

async fn fetch_model(args: FetchModelArgs) -> ExitCode {
    let config = match args.check(variables()) {
        Ok(config) => config,
        Err(error) => return fail(EXIT_USAGE, &error.to_string()),
    };
    match app::fetch(config).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(error.exit_code(), &error.to_string()),
    }
}

fn check(args: ServeArgs) -> ExitCode {
    let file = args.as_file();
    match args.check(variables()) {
        Ok(_) => match std::io::stdout().write_all(file.as_bytes()) {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                fail(1, &format!("the settings can't be written: {error}"))
            }
            // Whoever reads them may stop when they have seen enough.
            Ok(()) | Err(_) => ExitCode::SUCCESS,
        },
        Err(error) => fail(EXIT_USAGE, &error.to_string()),
    }
}

async fn ask(args: HealthcheckArgs) -> ExitCode {
    let config = match args.check(variables()) {
        Ok(config) => config,
        Err(error) => return fail(EXIT_USAGE, &error.to_string()),
    };
    match healthcheck::run(&config).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(1, &error.to_string()),
    }
}

async fn serve(args: ServeArgs) -> ExitCode {
    let mut config = match args.check(variables()) {
        Ok(config) => config,
        Err(error) => return fail(EXIT_USAGE, &error.to_string()),
    };
    let traces = match config.tracing.as_ref().map(Tracing::new).transpose() {
        Ok(traces) => traces,
        Err(error) => return fail(EXIT_USAGE, &error.to_string()),
    };
    let _last_lines = telemetry::init_logs(config.log_format, config.log_level, traces.as_ref());
    let connections = host::connections_allowed(config.max_connections.get());
    if let Some(fewer) = NonZeroUsize::new(connections).filter(|fewer| *fewer < config.max_connections) {
        tracing::warn!(connections, "the limit of open files leaves room for fewer than --max-connections");
        config.max_connections = fewer;
    }
    let app = match App::new(&config) {
        Ok(app) => app,
        Err(error) => return fail(EXIT_USAGE, &error.to_string()),
    };
    let listeners = match Listeners::bind(config.listen, config.admin_listen).await {
        Ok(listeners) => listeners,
        Err(error) => return fail(EXIT_USAGE, &error.to_string()),
    };
    if let (Some(listen), Some(admin)) = (listeners.mcp_address(), listeners.admin_address()) {
        tracing::info!(%listen, %admin, "listening on {listen} for MCP at /mcp/search, and on {admin} for probes");
        app::tell_unserved_path(config.public_url.as_ref(), listen);
    }
    if !app.serve(listeners, stop_signal()).await {
        tracing::warn!("requests were cut off: they did not finish within --drain-timeout");
    }
    if let Some(traces) = traces {
        traces.finish().await;
    }
    ExitCode::SUCCESS
}

/// Completes at the first signal to stop; a second one ends the process at once.
async fn stop_signal() -> Stop {
    let Ok(mut signals) = StopSignals::listen() else {
        return std::future::pending().await;
    };
    let why = match signals.next().await {
        StopSignal::Terminate => Stop::Terminated,
        StopSignal::Interrupt => Stop::Interrupted,
    };
    tokio::spawn(async move {
        signals.next().await;
        // Lines of the last moments are on their way to standard error.
        std::thread::sleep(Duration::from_millis(20));
        std::process::exit(1);
    });
    why
}

fn fail(code: u8, problems: &str) -> ExitCode {
    problems.lines().for_each(say);
    ExitCode::from(code)
}

/// Writes a line to standard error. Where that fails there is no other place to say so, and no reason to panic.
fn say(line: &str) {
    let _nobody_reads = writeln!(std::io::stderr(), "toolsearch-proxy: {line}");
}
