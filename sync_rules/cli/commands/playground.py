"""`sync-rules playground`: serve the folder that `make playground` built, on the loopback interface, until stopped."""

from __future__ import annotations

from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Annotated, Final

import typer

from sync_rules.cli.exit_codes import ExitCode
from sync_rules.cli.signals import stop_signals
from sync_rules.cli.verb import Verb
from sync_rules.lab.embedded_engine import LOOPBACK, find_free_port
from sync_rules.model.errors import UserError

FOLDER: Final = Path("packages/playground/dist")
PORT: Final = 8080
LOOK_EVERY_SECONDS: Final = 0.2  # at the signal to stop, while no request comes

VERB: Final = Verb(stopped=ExitCode.WELL)


class Handler(SimpleHTTPRequestHandler):
    """Answers with the files of the folder. A browser must know modules and WebAssembly by their types."""

    extensions_map = {**SimpleHTTPRequestHandler.extensions_map, ".mjs": "text/javascript", ".wasm": "application/wasm"}

    def log_message(self, *_words: object) -> None:
        """Print nothing for a request."""


def playground(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder that `make playground` built.")] = FOLDER,
    *,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0: any that is free.")] = PORT,
) -> int:
    """Serve the playground, rules in a browser, until stopped."""
    if not (folder / "index.html").is_file():
        raise UserError(f"{folder}: no playground there. Run make playground in a clone, or name its folder")
    server = ThreadingHTTPServer((LOOPBACK, find_free_port(port)), partial(Handler, directory=str(folder)))
    with server, stop_signals() as stopping:
        server.timeout = LOOK_EVERY_SECONDS
        print(f"the playground is at http://{LOOPBACK}:{server.server_port}/ (Ctrl-C stops it)", flush=True)
        while not stopping():
            server.handle_request()
    return 0
