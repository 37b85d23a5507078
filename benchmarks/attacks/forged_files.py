"""Damaged and forged model files: single bits, bytes, fields of the description, arrays.

`mutated` changes a valid file in one way. Where it is `sealed`, the checksum is computed anew, as
an attacker would, so that the checks behind the checksum are reached.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diffint.persist.array_file import FORMAT_VERSION

_CHECKSUM = re.compile(rb'"diffint_checksum":"([0-9a-f]{64})"')
_DTYPES = {"F64": "<f8", "I64": "<i8", "F32": "<f4", "BOOL": "|b1", "U8": "|u1"}
_CODES = {np.dtype(code): name for name, code in _DTYPES.items()}

# Arrays and settings on which scores do not depend.
HARMLESS = (
    "features.",
    "calibration.",
    "members.support",
    "members.mean_membership",
    "members.stability",
    "members.is_pattern",
    "members.box",
    "members.peers",
    "members.training_coverage",
    "members.coverage",
    "members.joint_coverage",
    "members.history",
    "members.counted_rows",
    "members.center_movement",
    "members.half_width_movement",
    "members.n_rows",
)


@dataclass
class ModelFile:
    """A model file taken apart."""

    description: Any
    arrays: dict[str, NDArray[Any]]
    shapes: dict[str, Any]  # replaces an array's entry in the header
    checksum: str

    @classmethod
    def parse(cls, content: bytes) -> ModelFile:
        """The parts of a valid file."""
        size = struct.unpack("<Q", content[:8])[0]
        header, data = json.loads(content[8 : 8 + size]), content[8 + size :]
        metadata = header.pop("__metadata__")
        arrays = {}
        for name, entry in header.items():
            start, stop = entry["data_offsets"]
            values = np.frombuffer(data[start:stop], dtype=_DTYPES[entry["dtype"]])
            arrays[name] = values.reshape(entry["shape"]).copy()
        description = json.loads(metadata["diffint_model"])
        return cls(description, arrays, {}, metadata["diffint_checksum"])

    def content(self) -> bytes:
        """The file, spelled as the writer would, with the old checksum."""
        text = self.description
        if not isinstance(text, str):
            text = json.dumps(text)
        header: dict[str, Any] = {
            "__metadata__": {
                "diffint_format": str(FORMAT_VERSION),
                "diffint_checksum": self.checksum,
                "diffint_model": text,
            }
        }
        data, start = [], 0
        for name in sorted(self.arrays, key=lambda n: (-self.arrays[n].dtype.itemsize, n)):
            array = self.arrays[name]
            stop = start + array.nbytes
            header[name] = {
                "dtype": _CODES[array.dtype],
                "shape": list(array.shape),
                "data_offsets": [start, stop],
                **self.shapes.get(name, {}),
            }
            data.append(array.tobytes())
            start = stop
        packed = json.dumps(header, separators=(",", ":")).encode()
        packed += b" " * (-len(packed) % 8)
        return struct.pack("<Q", len(packed)) + packed + b"".join(data)


def sealed(content: bytes) -> bytes:
    """The content with its checksum computed anew, if it has a place for one."""
    place = _CHECKSUM.search(content)
    if place is None:
        return content
    start, stop = place.span(1)
    zeroed = content[:start] + b"0" * 64 + content[stop:]
    digest = hashlib.sha256(zeroed).hexdigest().encode()
    return content[:start] + digest + content[stop:]


@dataclass(frozen=True)
class Mutation:
    """A changed file. harmless: whether scores cannot depend on what was changed."""

    content: bytes
    what: str
    harmless: bool = False
    is_bit_flip: bool = False


def mutated(content: bytes, rng: np.random.Generator) -> Mutation:
    """The content changed in one random way; half of the changes that are not bit flips sealed."""
    kinds: list[Callable[[bytes, np.random.Generator], Mutation]] = [
        flip_bit,
        change_bytes,
        change_description,
        change_values,
        change_values,
        change_layout,
        forge_network,
        forge_network,
    ]
    mutation = kinds[rng.integers(len(kinds))](content, rng)
    if mutation.is_bit_flip or rng.random() < 0.5:
        return mutation
    return Mutation(sealed(mutation.content), f"sealed, {mutation.what}", mutation.harmless)


def flip_bit(content: bytes, rng: np.random.Generator) -> Mutation:
    """One bit, anywhere in the file; half of the time in the header, which is the smaller part."""
    size = len(content) if rng.random() < 0.5 else 8 + struct.unpack("<Q", content[:8])[0]
    place, bit = int(rng.integers(size)), int(rng.integers(8))
    changed = bytearray(content)
    changed[place] ^= 1 << bit
    return Mutation(bytes(changed), f"bit {bit} of byte {place}", is_bit_flip=True)


def change_bytes(content: bytes, rng: np.random.Generator) -> Mutation:
    """Cut, insert, delete, repeat or overwrite bytes."""
    place = int(rng.integers(len(content)))
    length = int(2 ** rng.uniform(0, 12))
    noise = rng.bytes(length) if rng.random() < 0.7 else bytes([int(rng.integers(256))]) * length
    after = content[place + length :]
    changed = {
        "cut": content[:place],
        "insert": content[:place] + noise + content[place:],
        "append": content + noise,
        "delete": content[:place] + after,
        "repeat": content[: place + length] + content[place:],
        "overwrite": content[:place] + noise[: len(content) - place] + after,
        "header length": struct.pack("<Q", int(2 ** rng.uniform(0, 63))) + content[8:],
    }
    what = str(rng.choice(list(changed)))
    return Mutation(changed[what], f"{what} {length} bytes at {place}")


# --- The description ---------------------------------------------------------------------------


def _nest(depth: int) -> list[Any]:
    nest: list[Any] = []
    for _ in range(depth):
        nest = [nest]
    return nest


_HOSTILE: list[Any] = [
    None, True, False, 0, -1, 1, 2, 3, 7, 2**31, 2**63, 2**64, -(2**63), 10**30, 10**400,
    0.0, -0.0, 0.5, 1.5, -1.5, 1e-9, 1e-320, 5e-324, 1e18, 1e38, 1e300, 1.7e308,
    float("nan"), float("inf"), float("-inf"),
    "", "x", "auto", "paper", "free", "certified", "minmax", "unit", "standard", "none",
    "clipped", "unclipped", "members", "holdout", "training", "\ud800", "\x00\x1b[2J\n",
    "=1+1", "</script><script>alert(1)</script>", "x" * 100_000,
    [], {}, [[]], [None], {"a": 1}, [0] * 1_000, {"n_units": 3}, _nest(300), 10**9, 2**40,
]  # fmt: skip


def change_description(content: bytes, rng: np.random.Generator) -> Mutation:
    """Replace, remove, repeat, move or nest any value of the description, or damage its text."""
    file = ModelFile.parse(content)
    way = rng.choice(["replace"] * 12 + ["near"] * 6 + ["remove", "add", "swap", "twice", "text"])
    if way == "text":
        text = json.dumps(file.description)
        place = int(rng.integers(len(text)))
        broken = [text[:place], text + text, "[" * 5_000, '{"a":' * 5_000, text.replace(":", "")]
        broken += [" " + text, text.replace(" ", ""), "9" * 6_000, "null", "[]", ""]
        file.description = broken[rng.integers(len(broken))]
        return Mutation(file.content(), "text of the description")
    owner, key = _random_place(file.description, rng)
    before = owner[key]
    if way == "remove":
        del owner[key]
    elif way == "add":
        if isinstance(owner, list):
            owner.insert(int(key), before)
        else:
            owner[f"{key}_"] = before
    elif way == "swap":
        _, other = _inside(owner, rng)
        owner[key], owner[other] = owner[other], owner[key]
    elif way == "twice" and isinstance(owner, dict):
        entry = json.dumps({key: before})[1:-1]
        value = json.dumps({key: _HOSTILE[rng.integers(len(_HOSTILE))]})[1:-1]
        file.description = json.dumps(file.description).replace(entry, f"{value}, {entry}")
        return Mutation(file.content(), f"twice {key}")
    elif way == "near" and isinstance(before, (int, float)):
        factors = np.array([-1, 0, 0.5, 0.999, 1.001, 2, 10, 1e3, 1e10])
        changed = before * float(rng.choice(factors)) + float(rng.integers(-1, 2))
        owner[key] = int(changed) if isinstance(before, int) and rng.random() < 0.8 else changed
    else:
        owner[key] = _HOSTILE[rng.integers(len(_HOSTILE))]
    after = json.dumps(owner)[:60]
    return Mutation(file.content(), f"{way} {key}: {after}")


def _random_place(value: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    """An object or a list of the description, and a key in it."""
    while True:
        owner, key = _inside(value, rng)
        value = owner[key]
        if not (isinstance(value, (dict, list)) and value) or rng.random() < 0.1:
            return owner, key


def _inside(owner: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    if isinstance(owner, list):
        return owner, int(rng.integers(len(owner)))
    return owner, str(rng.choice(list(owner)))


# --- The arrays --------------------------------------------------------------------------------

_FLOATS = [
    np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 2.0, 1e-45, 5e-324, 1e-38, 1e-30, 1e-9, 0.5,
    1e6, -1e6, 1e15, -1e15, 1e16, 1e18, 1e30, -1e30, 1e38, 1e300, -1e300, 1e302, 1.7e308, -1.7e308,
]  # fmt: skip
_INTEGERS = [0, 1, -1, 2, 100, 10**9, 2**31, 2**62, 2**63 - 1, -(2**63)]


def change_values(content: bytes, rng: np.random.Generator) -> Mutation:
    """Replace one value, some or all values of an array, or two arrays by each other."""
    file = ModelFile.parse(content)
    name = str(rng.choice(list(file.arrays)))
    array = file.arrays[name]
    what = "values"
    same = [n for n, a in file.arrays.items() if a.shape == array.shape and a.dtype == array.dtype]
    if rng.random() < 0.1 and len(same) > 1:
        other = str(rng.choice(same))
        file.arrays[name], file.arrays[other] = file.arrays[other], array
        what = f"swapped with {other}"
        harmless = name.startswith(HARMLESS) and other.startswith(HARMLESS)
        return Mutation(file.content(), f"{name}: {what}", harmless)
    flat = array.reshape(-1)
    share = rng.choice([0.0, 0.3, 1.0], p=[0.6, 0.2, 0.2])
    chosen = rng.random(flat.size) < share
    if flat.size:
        chosen[rng.integers(flat.size)] = True
    with np.errstate(over="ignore", invalid="ignore"):
        if array.dtype.kind == "f" and rng.random() < 0.4:
            factor = rng.choice([-1.0, 0.0, 0.999, 1.001, 10.0, 1e3, 1e6, 1e12, 1e-6])
            flat[chosen] = (flat[chosen] * factor).astype(array.dtype)
            what = f"values times {factor:g}"
        elif array.dtype.kind == "f":
            value = rng.choice(_FLOATS)
            flat[chosen] = np.float64(value).astype(array.dtype)
            what = f"values set to {value:g}"
        elif array.dtype == np.int64:
            value = rng.choice(_INTEGERS)
            flat[chosen] = value if rng.random() < 0.6 else flat[chosen] + rng.integers(-2, 3)
            what = f"values set to {value} or moved"
        else:
            value = rng.choice([0, 1, 2, 255])
            flat.view(np.uint8)[chosen] = value
            what = f"bytes set to {value}"
    return Mutation(file.content(), f"{name}: {what}", name.startswith(HARMLESS))


_NETWORK = (
    "members.center",
    "members.half_width",
    "members.decoder.hidden_weight",
    "members.decoder.hidden_bias",
    "members.decoder.norm_gain",
    "members.decoder.norm_shift",
    "members.decoder.output_weight",
    "members.decoder.output_bias",
)


def forge_network(content: bytes, rng: np.random.Generator) -> Mutation:
    """Another network of extreme but allowed numbers: very large, very small, equal, cancelling."""
    file = ModelFile.parse(content)
    names = [name for name in _NETWORK if rng.random() < 0.5]
    for name in names:
        shape = file.arrays[name].shape
        values = rng.normal(size=shape)
        way = rng.integers(4)
        if way == 0:
            values *= 10.0 ** rng.uniform(-45, 15)
        elif way == 1:
            values *= 10.0 ** rng.uniform(-10, 8, size=shape)
        elif way == 2:
            values = np.full(shape, values.flat[0] * 10.0 ** rng.uniform(-3, 10))
        values = np.clip(values, -0.99e15, 0.99e15)
        if name == "members.half_width":
            values = np.abs(values) if rng.random() < 0.8 else np.zeros(shape)
        file.arrays[name] = values.astype(np.float32)
    if rng.random() < 0.5:
        file.description["config"]["temperature"] = float(10.0 ** rng.uniform(-9, 8.9))
    if rng.random() < 0.3:
        file.arrays["members.box_scale"][:] = 10.0 ** rng.uniform(-300, 30)
    if rng.random() < 0.2 and file.description["config"]["scaling"] == "minmax":
        varies = file.arrays["members.scaler.divisor"] > 0
        file.arrays["members.scaler.offset"][varies] *= 10.0 ** rng.uniform(-300, 299)
        file.arrays["members.scaler.divisor"][varies] *= 10.0 ** rng.uniform(-300, 299)
    shown = ", ".join(name.rpartition(".")[2] for name in names)
    temperature = file.description["config"]["temperature"]
    # Always with a valid checksum: without one the numbers would not be looked at.
    return Mutation(sealed(file.content()), f"network of {shown}, temperature {temperature:.3g}")


def change_layout(content: bytes, rng: np.random.Generator) -> Mutation:
    """Another type, shape, position or name of an array; one too many or too few."""
    file = ModelFile.parse(content)
    name = str(rng.choice(list(file.arrays)))
    array = file.arrays[name]
    way = str(rng.choice(["type", "shape", "entry", "remove", "add", "rename", "longer"]))
    if way == "type":
        kind = np.dtype(_DTYPES[str(rng.choice(list(_DTYPES)))])
        with np.errstate(all="ignore"):
            file.arrays[name] = array.astype(kind)
    elif way == "shape":
        file.arrays[name] = array.reshape(-1) if rng.random() < 0.5 else array[None]
    elif way == "longer":
        file.arrays[name] = np.concatenate([array, array]) if rng.random() < 0.5 else array[:0]
    elif way == "entry":
        entries = [
            {"data_offsets": [0, 0]},
            {"data_offsets": [0, 2**62]},
            {"data_offsets": [-8, array.nbytes - 8]},
            {"data_offsets": "0"},
            {"shape": [2**40, 2**40]},
            {"shape": [-1]},
            {"shape": None},
            {"dtype": "F16"},
            {"dtype": None},
            {"surprise": 1},
        ]
        file.shapes[name] = entries[rng.integers(len(entries))]
    elif way == "remove":
        del file.arrays[name]
    elif way == "add":
        file.arrays[f"{name}.x"] = array
    else:
        file.arrays[f"{name}x"] = file.arrays.pop(name)
    return Mutation(file.content(), f"{name}: {way}")
