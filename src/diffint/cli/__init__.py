"""The `diffint` command, one file per subcommand."""

NOTHING_WRITTEN = "diffint: interrupted; no file was written"


def main() -> None:
    """Run the command as a process of its own, with stop signals handled to its very end.

    `app.main` runs it inside another program. Imports are inside: the first one is quick and
    handles stop signals while the others take their time.
    """
    import os

    try:
        from .signals import EndOnSignal

        end = EndOnSignal()
    except KeyboardInterrupt:
        os.write(2, f"{NOTHING_WRITTEN}\n".encode())
        os._exit(130)
    from .app import main as run

    try:
        run(end.work_is_done)
    except SystemExit as ended:
        if isinstance(ended.code, int) and ended.code > 128:
            os._exit(ended.code)  # stopped: do not wait for threads that are still at work
        raise
