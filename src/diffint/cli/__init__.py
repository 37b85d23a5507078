"""The `diffint` command, one file per subcommand."""


def main() -> None:
    """Run the command; imports are inside, so that importing a part of this folder stays cheap."""
    from .app import main as run

    run()
