"""The site has every page; facts stated in two places agree."""

import importlib.util
import re
from pathlib import Path

import pytest

import diffint

ROOT = Path(__file__).parent.parent


def test_the_navigation_holds_every_page_once():
    navigation = (ROOT / "mkdocs.yml").read_text().split("\nnav:\n")[1]
    listed = re.findall(r": (\S+\.md)$", navigation, re.MULTILINE)
    inside = {page.relative_to(ROOT / "docs").as_posix() for page in ROOT.glob("docs/**/*.md")}
    outside = {page for page in listed if not (ROOT / "docs" / page).exists()}
    assert len(listed) == len(set(listed))
    assert set(listed) - outside == inside
    assert outside == {
        *(page.name for page in ROOT.glob("*.md")),
        "examples/README.md",
    }


@pytest.mark.parametrize(
    ("here", "link", "shown"),
    [
        ("README.md", "docs/command.md", "command.md"),
        ("README.md", "CHANGELOG.md", "CHANGELOG.md"),
        ("docs/architecture.md", "../CONTRIBUTING.md", "CONTRIBUTING.md"),
        ("docs/results/soundness.md", "../certificates.md", "../certificates.md"),
        ("examples/README.md", "payments.py", "payments.py"),
        ("examples/README.md", "../docs/command.md", "../command.md"),
    ],
)
def test_links_of_the_repository_become_links_of_the_site(here, link, shown):
    pytest.importorskip("mkdocs", reason="the extra 'docs' is not installed")
    place = importlib.util.spec_from_file_location("site_pages", ROOT / "docs" / "site_pages.py")
    pages = importlib.util.module_from_spec(place)
    place.loader.exec_module(pages)
    assert pages.site_link(here, link) == shown


def test_the_citation_has_the_version_of_the_package():
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.findall(r"^version: (.*)$", citation, re.MULTILINE) == [diffint.__version__]


def test_what_the_reference_describes_exists():
    for page in ROOT.glob("docs/api/*.md"):
        for path in re.findall(r"^::: (\S+)$", page.read_text(), re.MULTILINE):
            if path.startswith("diffint.pyod_detector") and not importlib.util.find_spec("pyod"):
                continue
            module, _, name = path.rpartition(".")
            found = getattr(importlib.import_module(module), name, None)
            assert found or importlib.util.find_spec(path), f"{page.name} describes {path}"


def test_every_public_name_can_be_imported():
    for name in diffint.__all__:
        assert getattr(diffint, name) is not None
