"""The code of the guide to Spark runs."""

import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[3] / "docs" / "scale.md"


def test_the_guide(spark, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    section = GUIDE.read_text().split("\n## Spark\n")[1].split("\n## ")[0]
    blocks = re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 2
    space: dict = {}
    for block in blocks:
        exec(compile(block, str(GUIDE), "exec"), space)
    shown = capfd.readouterr().out
    assert "|payment|score" in shown
    assert "top 3 rows" in shown
    found = spark.read.parquet(f"{space['here']}/alerts").toArrow().to_pandas()
    assert found["flagged"].all()
    assert found["score"].max() > space["detector"].offset_


def test_numbers_in_the_guide_are_those_of_the_code(spark):
    from diffint.core.calibration import MAX_SCORES
    from diffint.core.config import _MOST_KEPT
    from diffint.fit.row_split import HELD_OUT_SHARE
    from diffint.platforms.spark import fitting
    from diffint.tables.files.reading import BATCH_ROWS

    text = " ".join(GUIDE.read_text().split())
    drawn = fitting.SAMPLE_ROWS / (1 - HELD_OUT_SHARE)
    assert f"A table of up to {drawn:,.0f} rows is fitted as by the library" in text
    calibrated = f"{drawn - fitting.SAMPLE_ROWS:,.0f}"
    assert f"draws {fitting.SAMPLE_ROWS:,} rows at random to train on and {calibrated}" in text
    assert f"{fitting._N_QUANTILES:,} quantiles" in text
    assert f"off by at most {1 / fitting._RANK_ERROR:.2%}".replace("%", " %") in text
    assert f"at most {_MOST_KEPT:,} rows per member" in text
    assert f"{MAX_SCORES:,} calibration rows, the most that a model stores" in text
    assert pytest.approx(BATCH_ROWS, rel=0.01) == 65_000
