"""A hook of mkdocs: pages that stand outside docs/ become part of the site.

The README is the home page. Links are written for readers of the repository, relative to the file
they stand in; here they are turned into links of the site, whose root is docs/.
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
    """Add the pages from outside."""
    for name in OUTSIDE:
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The page's links, as the site has them."""
    here = page.file.src_uri if page.file.src_uri in OUTSIDE else f"docs/{page.file.src_uri}"
    return re.sub(
        r"(\]\()(?!\w+:|#)([^)#\s]+)",
        lambda found: found[1] + site_link(here, found[2]),
        markdown,
    )


def site_link(here: str, link: str) -> str:
    """A link from one file of the repository to another, as one between pages of the site."""
    target = os.path.normpath(os.path.join(os.path.dirname(here), link))
    return os.path.relpath(_in_site(target), os.path.dirname(_in_site(here)) or ".")


def _in_site(path: str) -> str:
    parts = PurePosixPath(path).parts
    return os.path.join(*parts[1:]) if parts[0] == "docs" else path
