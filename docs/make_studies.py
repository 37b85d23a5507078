"""Write the page over all studies from their result files: ``python docs/make_studies.py``."""

from pathlib import Path

from diffint.studies.overview import overview_page
from diffint.tables.atomic_write import atomic_write

DOCS = Path(__file__).parent


def main() -> None:
    """Write docs/studies.md."""
    page = overview_page(DOCS / "results" / "studies", "results/studies")
    atomic_write(DOCS / "studies.md", page.encode())


if __name__ == "__main__":
    main()
