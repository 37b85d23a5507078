"""A model file with any description is a model, or is refused with a `ModelFileError`."""

import copy
import json
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from benchmarks.attacks.forged_files import ModelFile, sealed

from diffint import DiffInt, InputError, ModelFileError

from ..conftest import QUICK


def nest(depth: int) -> list:
    nested: list = []
    for _ in range(depth):
        nested = [nested]
    return nested


HOSTILE = [None, [], {}, "", -1, 1e308, True, [[]], [[1]], [[0, 1, 2]], nest(300), 2**62, "x"]


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> tuple[bytes, pd.DataFrame]:
    """A small model with everything that a description has, and rows to score."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "zip": rng.choice(["10", "20", "30"], 60),
            "x": np.where(rng.random(60) < 0.2, np.nan, rng.normal(size=60)),
            "t": pd.date_range("2020-01-01", periods=60, freq="7h"),
            "s": rng.choice(["p", "q"], 60),
        }
    )
    settings = {**QUICK, "n_units": 4, "hidden_width": 4, "epochs": 1, "decoder": "certified"}
    detector = DiffInt(**settings).fit(table, segments="s")
    detector.accept(table.head(2).assign(x=1e9, zip="40"))
    detector.refresh(table)
    path = tmp_path_factory.mktemp("forged") / "m"
    detector.save(path)
    return path.read_bytes(), table


def places(value, path=()):
    """The paths of all values in a description."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        yield (*path, key)
        if isinstance(inner, (dict, list)):
            yield from places(inner, (*path, key))


def load(path, content: bytes) -> DiffInt | None:
    """The model, None if it is refused."""
    path.write_bytes(sealed(content))
    try:
        return DiffInt.load(path)
    except ModelFileError:
        return None


def with_description(content: bytes, description) -> bytes:
    file = ModelFile.parse(content)
    file.description = description
    return file.content()


def test_every_value_replaced_removed_and_repeated(saved, tmp_path):
    content, table = saved
    description = ModelFile.parse(content).description
    count = {"refused": 0, "loaded": 0}
    for place in places(description):
        for value in [*HOSTILE, "remove", "repeat"]:
            changed = copy.deepcopy(description)
            owner = changed
            for key in place[:-1]:
                owner = owner[key]
            if value == "remove":
                del owner[place[-1]]
            elif value == "repeat" and isinstance(owner, list):
                owner.append(owner[place[-1]])
            else:
                owner[place[-1]] = value
            detector = load(tmp_path / "m", with_description(content, changed))
            count["refused" if detector is None else "loaded"] += 1
            if detector is not None and count["loaded"] % 10 == 0:
                try:
                    assert np.isfinite(detector.anomaly_score(table)).all()
                except InputError:  # other columns
                    continue
    assert count["refused"] > 1_000
    assert count["loaded"] > 50
    for text in ("", "null", "[]", "{}", "[" * 5_000, "9" * 5_000, json.dumps(nest(300))):
        assert load(tmp_path / "m", with_description(content, text)) is None


@pytest.mark.parametrize("categories", [[[]], [[0]], [0], [[0, 1, 2]], {"0": 1}, "00"])
def test_damaged_categories(saved, tmp_path, categories):
    content, _ = saved
    description = ModelFile.parse(content).description
    path = tmp_path / "m"
    path.write_bytes(with_description(content, {**description, "categories": categories}))
    with pytest.raises(ModelFileError, match="description is damaged"):
        DiffInt.load(path)


def test_texts_of_categories_without_any(saved, tmp_path):
    content, _ = saved
    file = ModelFile.parse(content)
    file.description["categories"] = [[j, 0] for j, _ in file.description["categories"]]
    file.arrays["categories.value_ends"] = file.arrays["categories.value_ends"][:0]
    for name in [name for name in file.arrays if name.startswith("members.associations")]:
        shape = list(file.arrays[name].shape)
        if name.rpartition(".")[2] in ("counts", "prior", "weight", "unseen"):
            shape[1] = 0
        file.arrays[name] = np.resize(file.arrays[name], shape)
    path = tmp_path / "m"
    path.write_bytes(sealed(file.content()))
    with pytest.raises(ModelFileError, match="values of categories are damaged"):
        DiffInt.load(path)


SIZES = [
    *("n_features", "n_scores", "n_kept_rows", "name_bytes", "value_bytes", "n_segments"),
    *("segment_bytes", "n_sample", "config.n_units", "config.n_members", "config.hidden_width"),
    *("config.kept_rows", "config.epochs", "training.epochs", "training.n_rows"),
]


@pytest.mark.parametrize("name", SIZES)
def test_a_size_that_the_file_does_not_have_takes_no_memory(saved, tmp_path, name):
    content, _ = saved
    description = ModelFile.parse(content).description
    *within, last = name.split(".")
    owner = description[within[0]] if within else description
    path = tmp_path / "m"
    for size in (10**7, 10**9, 2**62):
        owner[last] = size
        path.write_bytes(with_description(content, description))
        tracemalloc.start()
        try:
            with pytest.raises(ModelFileError):
                DiffInt.load(path)
            assert tracemalloc.get_traced_memory()[1] < len(content) + 2_000_000
        finally:
            tracemalloc.stop()
