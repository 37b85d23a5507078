"""The code in the README and the guides runs, and their links point to existing files."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    str(page.relative_to(ROOT))
    for pattern in ("*.md", "docs/**/*.md", "examples/*.md")
    for page in ROOT.glob(pattern)
)


def blocks(page):
    return re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)


@pytest.fixture
def run_blocks(tmp_path, monkeypatch):
    """run_blocks(page) → what its blocks define, run in order in an empty folder"""

    def run(page):
        monkeypatch.chdir(tmp_path)
        space: dict = {}
        for block in blocks(page):
            exec(compile(block, page, "exec"), space)
        return space

    return run


def without_numbers(text):
    return re.sub(r"[\d.,]*\d", "0", " ".join(text.split()))


def test_readme_code_runs(run_blocks, tmp_path):
    space = run_blocks("README.md")
    assert (space["same"] == space["scores"]).all()
    assert (tmp_path / "benign.diffint").exists()
    headline = space["why"].headline(int(space["scores"].argmax()))
    assert without_numbers(headline) in without_numbers((ROOT / "README.md").read_text())


def test_explanations_guide_code_runs(run_blocks, capsys):
    space = run_blocks("docs/explanations.md")
    assert "would be normal if" in space["nearest"].text()
    shown = capsys.readouterr().out
    assert "Pattern" in shown
    assert "Parts of the score: " in shown


def test_certificates_guide_code_runs(run_blocks):
    space = run_blocks("docs/certificates.md")
    assert (space["certificate"].bound > 0).any()
    assert space["one"].verdict == "mixed"
    assert space["verification"].confirmed


OTHERS = set(PAGES) - {"README.md", "docs/explanations.md", "docs/certificates.md"}
# tests/platforms runs their code on the engines.
OTHERS -= {"docs/scale.md", "docs/platforms.md"}


@pytest.mark.parametrize("page", sorted(page for page in OTHERS if blocks(page)))
def test_the_code_of_every_other_page_runs(run_blocks, page):
    run_blocks(page)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    path = ROOT / page
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text()):
        assert (path.parent / target).exists(), f"{page} links to {target}"
