from pathlib import Path

import pytest

from diffint import DiffInt


@pytest.fixture
def saved(fitted: DiffInt, tmp_path: Path) -> Path:
    """A model file, which a test may change."""
    path = tmp_path / "model.diffint"
    fitted.save(path)
    return path
