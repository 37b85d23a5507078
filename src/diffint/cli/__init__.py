"""The command, one file per subcommand."""


def main() -> None:
    """Run the command. Everything it needs is imported here, so that parts stay cheap to import."""
    from .app import main as run

    run()
