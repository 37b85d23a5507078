"""The code in the README and the guides runs, and their links point to existing files."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def run_blocks(page):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    assert blocks
    space: dict = {}
    for block in blocks:
        exec(compile(block, page, "exec"), space)
    return space


def test_readme_code_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    space = run_blocks("README.md")
    assert (space["same"] == space["scores"]).all()
    assert (tmp_path / "benign.diffint").exists()


def test_explanations_guide_code_runs(capsys):
    space = run_blocks("docs/explanations.md")
    assert "would be normal if" in space["nearest"].text()
    shown = capsys.readouterr().out
    assert "Pattern" in shown
    assert "% of the score." in shown


PAGES = sorted(
    str(page.relative_to(ROOT))
    for pattern in ("*.md", "docs/**/*.md", "examples/*.md")
    for page in ROOT.glob(pattern)
)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    path = ROOT / page
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text()):
        assert (path.parent / target).exists(), f"{page} links to {target}"
