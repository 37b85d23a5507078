"""The site has every page; facts stated in two places agree."""

import ast
import importlib.util
import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import diffint
from diffint.core.model import FeatureSummary, FittedModel, Member

ROOT = Path(__file__).parent.parent
# What modules of extras cannot be imported without.
EXTRAS = {
    "diffint.pyod_detector": "pyod",
    "diffint.spark": "pyspark",
    "diffint.ray": "ray",
    "diffint.mlflow": "mlflow",
}


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
            extra = EXTRAS.get(".".join(path.split(".")[:2]))
            if extra is not None and not importlib.util.find_spec(extra):
                continue
            module, _, name = path.rpartition(".")
            found = getattr(importlib.import_module(module), name, None)
            assert found or importlib.util.find_spec(path), f"{page.name} describes {path}"


def test_every_public_name_can_be_imported():
    for name in diffint.__all__:
        assert getattr(diffint, name) is not None


def test_numbers_in_the_guides_are_those_of_the_code():
    from diffint.core.calibration import MAX_SCORES
    from diffint.fit.boxes import _FEWEST_ROWS
    from diffint.fit.measurement import _COUNTED_ROWS

    method = (ROOT / "docs" / "method.md").read_text()
    assert f"the calibration scores (at most {MAX_SCORES:,})" in method
    explanations = " ".join((ROOT / "docs" / "explanations.md").read_text().split())
    assert _FEWEST_ROWS == 2
    assert "the units with at least two training rows in their box are the patterns" in explanations
    assert f"At most {_COUNTED_ROWS:,} rows are counted." in explanations


def test_defaults_in_the_guides_are_those_of_the_code():
    from diffint.core import associations, config
    from diffint.core.constants import COMMONLY_MISSING
    from diffint.core.scaling import curves
    from diffint.fit import score_parts, suspects

    def text(page):
        return " ".join((ROOT / page).read_text().split())

    usual, method = config.RECOMMENDED, text("docs/method.md")
    fewest, most = f"{config._FEWEST_KEPT:,}", f"{config._MOST_KEPT:,}"
    assert (
        f"as many as have {config._KEPT_CELLS:,} cells together, from {fewest} to {most}" in method
    )
    assert f"{config._KEPT_CELLS // 9:,} rows of a table with nine features" in method
    assert (config._MEMBERS_OF_SMALL_TABLES, config._MEMBERS) == (5, 3)
    assert f"five up to {config.SMALL_TABLE:,} rows and three for more" in method
    assert f"through {curves.N_KNOTS} quantiles" in method
    assert f"{curves._LONG_TAIL} times as wide as that of the inner 98 %" in method
    assert curves._INNER_TAIL == 0.01
    assert f"the {curves._END_TAIL:.1%} quantiles".replace("%", " %") in method
    assert f"at least {curves._FEWEST_CELLS} cells" in method
    assert f"each of up to {associations.N_EDGES + 1} bins" in method
    assert f"at least {associations._FEWEST_BINS})" in method
    assert f"Up to {associations._MOST_BINS} bins" in method
    assert f"over {score_parts._COMMONLY_NEW:.0%} of".replace("%", " %") in method
    assert f"At most {associations.MOST_VALUES} values" in method
    assert (score_parts._SURPRISE_WEIGHT, score_parts._NUMBER_WEIGHT) == (3.0, 2.0)
    assert f"less than {suspects._CLOSE} times as far" in method
    assert f"to be {suspects._TOGETHER} times as wide" in method
    assert f"a distribution {suspects._ALONE} times as wide" in method
    assert f"over {suspects._MOST_TOGETHER:.0%} of the rows".replace("%", " %") in method
    assert suspects._MOST_REPEATS == 400
    assert f"at least {COMMONLY_MISSING:.0%} of the training rows".replace("%", " %") in method
    assert f"over at most {score_parts._MEASURED_ROWS:,} rows" in method
    steps = f'about {config._FEW_STEPS:,} steps (`"auto"`) for up to {config._FEW_ROWS:,} rows'
    assert steps in method
    assert f"up to {config._MANY_STEPS:,} steps; half as many" in method
    few = f"more than {config._MANY_FEATURES} features; at most {config.MAX_EPOCHS} epochs"
    assert few in method
    assert f"coverage term with weight {usual.coverage_weight}" in method
    assert f"λ = {usual.coverage_weight};" in text("docs/explanations.md")
    kept = f"{fewest} to {most} scaled training rows"
    for page in ("SECURITY.md", "docs/command.md", "README.md"):
        assert kept in text(page)


@pytest.mark.parametrize(
    ("n_rows", "n_calibrate"), [(399, 395), (400, 400), (2000, 2000), (2001, 1200), (5000, 1000)]
)
def test_as_many_rows_calibrate_as_the_guides_say(n_rows, n_calibrate):
    rows = np.random.default_rng(0).normal(size=(n_rows, 2))
    fitted = diffint.DiffInt(epochs=1, n_units=5, kept_rows=10, random_state=0).fit(rows)
    assert len(fitted.model_.calibration.scores) == n_calibrate


def test_the_method_page_lists_what_the_model_keeps():
    """Everything in the fitted model has its words on the page."""
    words = {
        "scaler": "scaler", "center": "intervals", "half_width": "intervals", "decoder": "decoder",
        "support": "support", "mean_membership": "mean membership", "stability": "stability",
        "is_pattern": "patterns", "box_scale": "scale of the boxes", "counted_rows": "counted rows",
        "box_rows": "inside each box", "peers": "all but one", "peers_inside": "all but one",
        "training_coverage": "on training rows", "coverage": "coverage of every range",
        "coverage_counts": "numbers of rows", "joint_coverage": "ranges together",
        "coverage_rows": "numbers of rows", "coverage_held_out": "left out of training",
        "kept_rows": "kept rows", "kept_missing": "cells were missing",
        "kept_weight": "features' weights",
        "distance_weight": "weight of the distance part",
        "missing_error": "what a missing cell", "missing_surprise": "surprise",
        "associations": "how often the values of categories occur",
        "kinds": "the values of every category",
        "history": "loss of every epoch", "center_movement": "moved",
        "half_width_movement": "moved",
        "n_rows": "number of training rows",
        "levels": "quantiles", "quantiles": "quantiles", "bin_edges": "histogram",
        "bin_counts": "histogram", "missing_share": "missing values", "whole": "whole numbers",
        "config": "settings", "feature_names": "names of the features", "members": "member",
        "features": "every feature", "calibration": "calibration scores", "training": "trained",
        "flag_rates": "raise each flag", "called_normal": "rows that were accepted",
        "refreshed_from": "models that it was refreshed from",
    }  # fmt: skip
    page = (ROOT / "docs" / "method.md").read_text().split("## What the model keeps")[1]
    text = " ".join(page.split())
    for kind in (Member, FeatureSummary, FittedModel):
        for field in fields(kind):
            assert words[field.name] in text, field.name


def test_the_tuning_page_explains_every_warning():
    """Each warning in the code has one line on the page, and its words are in the code."""
    page = (ROOT / "docs" / "tuning.md").read_text().split("## What warnings mean")[1]
    lines = [line.split("|")[1] for line in page.splitlines() if line.startswith("| ")]
    described = [line for line in lines if line != " text "]
    warnings, words = 0, set()
    for path in (ROOT / "src" / "diffint").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            name = getattr(getattr(node, "func", None), "id", "")
            is_text = name in ("warn", "_warn_once") and not isinstance(node.args[0], ast.Name)
            warnings += is_text
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                words |= set(re.findall("[a-z]+", node.value))
    assert len(described) == warnings
    for text in described:
        assert set(re.findall("[a-z]+", text)) <= words, text
