"""The code of the guide to Ray and MLflow runs."""

import pandas as pd
import pytest

from tests.test_readme import run_blocks  # noqa: F401

ray = pytest.importorskip("ray", reason="the extra 'ray' is not installed")
pytest.importorskip("mlflow", reason="the extra 'mlflow' is not installed")


@pytest.fixture
def no_cluster_is_left():
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield
    ray.shutdown()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("no_cluster_is_left")
def test_the_guide_to_platforms_runs(run_blocks, tmp_path):  # noqa: F811
    space = run_blocks("docs/platforms.md")
    found = pd.read_parquet(tmp_path / "scored").set_index("id").sort_index()
    rows = space["normal"].drop(columns="store")
    assert (found["score"] == space["detector"].anomaly_score(rows)).all()
    assert (found["score"] == space["same"].anomaly_score(rows)).all()
    assert set(space["stores"]) == {"north", "south"}
