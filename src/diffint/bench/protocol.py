"""The protocol: the paper's 48 tables, the split, the scaling, and the two regimes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from ..core.config import paper_batch_size
from ..core.errors import InputError
from ..tables.datasets import LabelledTable, SplitTable

Scale = Literal["small", "medium", "large", "high-dimensional"]
Regime = Literal["paper", "fair"]
TrainsOn = Literal["inliers", "everything"]
Scaling = Literal["minmax", "standard", "none"]

SCALES: tuple[Scale, ...] = get_args(Scale)
REGIMES: tuple[Regime, ...] = get_args(Regime)
TEST_SHARE = 0.4


@dataclass(frozen=True)
class BenchTable:
    """A table of the benchmark, with its size as listed in the paper."""

    name: str
    scale: Scale
    n_rows: int
    n_features: int
    n_anomalies: int

    @property
    def batch_size(self) -> int:
        """Rows per step in the paper's configuration; depends on the rows of the whole table."""
        return paper_batch_size(self.n_rows)


def _tables(scale: Scale, listed: str) -> list[BenchTable]:
    lines = [line.split() for line in listed.strip().splitlines()]
    return [BenchTable(name, scale, *map(int, sizes)) for name, *sizes in lines]


TABLES: dict[str, BenchTable] = {
    table.name: table
    for table in (
        # name, rows, features, anomalies
        *_tables(
            "small",
            """
            4_breastw 683 9 239
            14_glass 214 7 9
            15_Hepatitis 80 19 13
            18_Ionosphere 351 33 126
            21_Lymphography 148 18 6
            29_Pima 768 8 268
            37_Stamps 340 9 31
            39_vertebral 240 6 30
            42_WBC 223 9 10
            43_WDBC 367 30 10
            45_wine 129 13 10
            46_WPBC 198 33 47
            """,
        ),
        *_tables(
            "medium",
            """
            2_annthyroid 7200 6 534
            6_cardio 1831 21 176
            7_Cardiotocography 2114 21 466
            12_fault 1941 27 673
            19_landsat 6435 36 1333
            20_letter 1600 32 100
            27_PageBlocks 5393 10 510
            28_pendigits 6870 16 156
            30_satellite 6435 36 2036
            31_satimage-2 5803 36 71
            38_thyroid 3772 6 93
            40_vowels 1456 12 50
            41_Waveform 3443 21 100
            44_Wilt 4819 5 257
            47_yeast 1500 8 20
            """,
        ),
        *_tables(
            "large",
            """
            1_ALOI 49534 27 1508
            8_celeba 202599 39 4547
            10_cover 286048 10 2747
            11_donors 619326 10 36710
            13_fraud 284807 29 492
            16_http 567498 3 2211
            22_magic.gamma 19020 10 6688
            23_mammography 11183 6 260
            32_shuttle 49097 9 3511
            33_skin 245057 3 50859
            34_smtp 95156 3 30
            """,
        ),
        *_tables(
            "high-dimensional",
            """
            3_backdoor 95329 196 2329
            5_campaign 41188 62 4640
            9_census 299285 500 18568
            17_InternetAds 1966 1555 368
            24_mnist 7603 100 700
            25_musk 3062 166 97
            26_optdigits 5216 64 150
            35_SpamBase 4207 57 1679
            36_speech 3686 400 61
            48_arrhythmia 452 274 66
            """,
        ),
    )
}


class Trial(NamedTuple):
    """One split, as one method gets it.

    train: (train rows, features); test: (test rows, features); test_labels: (test rows,) 1 marks
    an anomaly.
    """

    train: NDArray[np.float64]
    test: NDArray[np.float64]
    test_labels: NDArray[np.int64]


def make_trial(table: LabelledTable, seed: int, trains_on: TrainsOn) -> Trial:
    """The 60/40 split of a seed, not stratified; rows in original units."""
    train, test, train_labels, test_labels = train_test_split(
        table.x, table.y, test_size=TEST_SHARE, random_state=seed
    )
    if trains_on == "inliers":
        train = train[train_labels == 0]
    return Trial(train, test, test_labels)


def fixed_trial(table: SplitTable, seed: int, trains_on: TrainsOn) -> Trial:
    """The table's own split, the same for all seeds: all its training rows are inliers."""
    return Trial(table.train, table.test, table.test_labels)


def fill_missing(trial: Trial) -> Trial:
    """Replace missing values with their column's mean over the training rows (0 if it has none).

    For methods that cannot handle NaN.
    """
    if not (np.isnan(trial.train).any() or np.isnan(trial.test).any()):
        return trial
    present = ~np.isnan(trial.train)
    totals = np.where(present, trial.train, 0.0).sum(axis=0)
    means = totals / np.maximum(present.sum(axis=0), 1)
    return trial._replace(
        train=np.where(present, trial.train, means),
        test=np.where(np.isnan(trial.test), means, trial.test),
    )


def scale_trial(trial: Trial, scaling: Scaling = "minmax") -> Trial:
    """Scale the features by their training values.

    "minmax": the training range to [−1, 1], with test values clipped to it. The ends are exactly −1
    and 1, which scikit-learn's MinMaxScaler does not guarantee: it matters to detectors that count
    values in bins (HBOS, ECOD). "standard": mean 0 and standard deviation 1, without clipping.
    "none": unchanged. Features that are constant in the training rows are divided by 1.
    """
    if scaling == "none":
        return trial
    lower, upper = trial.train.min(axis=0), trial.train.max(axis=0)
    varies = upper > lower
    if scaling == "standard":
        mean = np.where(varies, trial.train.mean(axis=0), lower)
        deviation = np.where(varies, trial.train.std(axis=0), 1.0)
        return trial._replace(
            train=(trial.train - mean) / deviation, test=(trial.test - mean) / deviation
        )
    span = np.where(varies, upper - lower, 1.0)

    def scaled(rows: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.clip(2.0 * (rows - lower) / span - 1.0, -1.0, 1.0))

    return trial._replace(train=scaled(trial.train), test=scaled(trial.test))


def read_seeds(text: str) -> tuple[int, ...]:
    """Seeds from a text such as '0-9' or '0,2,5-7', sorted and unique."""
    seeds: set[int] = set()
    try:
        for part in text.split(","):
            first, dash, last = part.partition("-")
            numbers = range(int(first), int(last if dash else first) + 1)
            seeds.update(numbers[:20_000])
    except ValueError:
        seeds = set()
    if not seeds or max(seeds) >= 2**31 or len(seeds) > 10_000:
        raise InputError(f"seeds {text!r} must look like 0-9 or 0,1,5")
    return tuple(sorted(seeds))


def chosen_tables(names: Iterable[str], more: Iterable[str] = ()) -> list[str]:
    """Full names of tables from names, short names and scale groups; smallest first.

    more: valid table names besides the benchmark's 48.
    """
    known = list(TABLES) + [name for name in more if name not in TABLES]
    # If two tables have the same short name, it means the benchmark's.
    short = {name.partition("_")[2].lower(): name for name in reversed(known)}
    chosen: set[str] = set()
    for one in names:
        if one in SCALES or one == "high":
            scale = "high-dimensional" if one == "high" else one
            chosen.update(name for name, table in TABLES.items() if table.scale == scale)
        elif one in known or one.lower() in short:
            chosen.add(one if one in known else short[one.lower()])
        else:
            raise InputError(
                f"no table is called {one!r}; the scale groups are {', '.join(SCALES)}, the "
                f"tables {', '.join(known)}"
            )
    size = {name: t.n_rows * t.n_features for name, t in TABLES.items()}
    return sorted(chosen or TABLES, key=lambda name: (size.get(name, 0), name))
