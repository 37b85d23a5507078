"""An mkdocs hook: include pages from outside docs/ in the documentation site.

The README is the home page. Links in the pages are relative to their file in the repository; here
they are rewritten for the site, whose root is docs/.
"""

from __future__ import annotations

import os.path
import re
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
OUTSIDE = (
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "examples/README.md"),
    *(f"examples/{path.name}" for path in sorted((ROOT / "examples").glob("*.py"))),
)


def on_files(files: Files, config: Any) -> Files:
    """Add the pages from outside docs/."""
    for name in OUTSIDE:
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Rewrite the links of a page for the site."""
    here = page.file.src_uri if page.file.src_uri in OUTSIDE else f"docs/{page.file.src_uri}"
    return re.sub(
        r"(\]\()(?!\w+:|#)([^)#\s]+)",
        lambda found: found[1] + site_link(here, found[2]),
        markdown,
    )


def site_link(here: str, link: str) -> str:
    """The link between two pages of the site, given the link between their files."""
    target = os.path.normpath(os.path.join(os.path.dirname(here), link))
    return os.path.relpath(_in_site(target), os.path.dirname(_in_site(here)) or ".")


def _in_site(path: str) -> str:
    parts = PurePosixPath(path).parts
    return os.path.join(*parts[1:]) if parts[0] == "docs" else path
