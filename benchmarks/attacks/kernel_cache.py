"""Attack the cache of compiled code: damaged files, wrong permissions, concurrent writers.

Each try damages the cache of two small kernels in a random way. Then new processes (forks, so that
none has code of an earlier try) call the kernels. They must get the right result, never run code
that was changed, and leave a cache that the next process can use. Some tries do the same with all
kernels of a fit. Needs a system with fork.

Usage: python benchmarks/attacks/kernel_cache.py [--count 500] [--seed 0]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np

from diffint.engine import code_folder
from diffint.engine.code_folder import CodeFolder
from diffint.engine.kernel_cache import compiled

LONGEST_S = 120  # until a process counts as hung
FITS_PER_TRY = 1 / 250
LOADED, COMPILED, WRONG, FAILED = range(4)  # exit codes of the processes that call the kernels

FIT = """
import warnings
import numpy as np
from diffint import DiffInt
warnings.simplefilter("ignore")
rows = np.random.default_rng(0).normal(size=(100, 4))
detector = DiffInt(random_state=0, n_units=16, hidden_width=16, epochs=2).fit(rows)
print(detector.anomaly_score(rows).tobytes().hex())
"""

Generator = np.random.Generator
Damage = Callable[[CodeFolder, Generator], None]


def weighted_sum(values: Any, factor: Any) -> Any:
    """A kernel: Σ i · factor · values[i]."""
    total = 0.0
    for i in range(values.shape[0]):
        total += i * factor * values[i]
    return total


def largest_gap(values: Any, least: Any) -> Any:
    """A kernel: the largest difference of neighbours, at least `least`."""
    gap = least
    for i in range(1, values.shape[0]):
        gap = max(gap, abs(values[i] - values[i - 1]))
    return gap


KERNELS = (weighted_sum, largest_gap)
ARGUMENTS = (np.linspace(-3, 5, 17) ** 2, 0.5)


# Damage to one file ------------------------------------------------------------------------------


def _flip_bits(file: Path, random: Generator) -> None:
    content = bytearray(file.read_bytes())
    for position in random.integers(len(content), size=random.integers(1, 9)):
        content[position] ^= 1 << int(random.integers(8))
    content[0] ^= 1  # else an even number of flips of one bit would change nothing
    file.write_bytes(content)


def _flip_a_bit_of_the_code(file: Path, random: Generator) -> None:
    content = bytearray(file.read_bytes())
    start = max(content.find(b"\x7fELF"), 32)  # the machine code; behind the checksum elsewhere
    content[int(random.integers(start, len(content)))] ^= 1 << int(random.integers(8))
    file.write_bytes(content)


def _truncate(file: Path, random: Generator) -> None:
    file.write_bytes(file.read_bytes()[: random.integers(file.stat().st_size)])


def _zero_a_block(file: Path, random: Generator) -> None:
    content = bytearray(file.read_bytes())
    start = int(random.integers(len(content) - 1))
    block = bytes(min(4096, len(content) - start))
    content[start : start + len(block)] = block
    content[-1] ^= 1  # the block may have been zero
    file.write_bytes(content)


def _random_bytes(file: Path, random: Generator) -> None:
    file.write_bytes(random.bytes(int(random.integers(0, 20_000))))


def _append(file: Path, random: Generator) -> None:
    file.write_bytes(file.read_bytes() + random.bytes(int(random.integers(1, 100))))


def _a_pickle(file: Path, _random: Generator) -> None:
    file.write_bytes(pickle.dumps(("0.1", {"a": [1, None]})))


def _a_folder(file: Path, _random: Generator) -> None:
    file.unlink()
    (file / "inner").mkdir(parents=True)


def _a_link(file: Path, random: Generator) -> None:
    file.unlink()
    file.symlink_to(str(random.choice(["/dev/zero", "/etc/passwd", "nowhere", str(file)])))


def _a_pipe(file: Path, _random: Generator) -> None:
    file.unlink()
    os.mkfifo(file)


def _remove(file: Path, _random: Generator) -> None:
    file.unlink()


def _unreadable(file: Path, random: Generator) -> None:
    _flip_bits(file, random)  # root can read it all the same
    file.chmod(0)


FILE_DAMAGE = (
    *(_flip_bits, _flip_a_bit_of_the_code, _truncate, _zero_a_block, _random_bytes, _append),
    *(_a_pickle, _a_folder, _a_link, _a_pipe, _remove, _unreadable),
)


def _files(folder: CodeFolder) -> list[Path]:
    return sorted(folder.path.glob("*.code"))


def _damage_files(folder: CodeFolder, random: Generator) -> None:
    for file in _files(folder):
        FILE_DAMAGE[random.integers(len(FILE_DAMAGE))](file, random)


# Damage to the folder ----------------------------------------------------------------------------


def _swap(folder: CodeFolder, _random: Generator) -> None:
    first, second = _files(folder)
    first.rename(folder.path / "kept")
    second.rename(first)
    (folder.path / "kept").rename(second)


def _other_content(folder: CodeFolder, random: Generator) -> None:
    """Files with a valid checksum and a wrong content."""
    wrong: list[Any] = [None, 1, (1, 2), {"a": 1}, [[]], "text", (b"", *range(8))]
    for name, origin in _names():
        folder.write(name, origin, pickle.dumps(wrong[random.integers(len(wrong))]))


def _other_sources(folder: CodeFolder, _random: Generator) -> None:
    for name, origin in _names():
        content = folder.read(name, origin)
        assert content is not None
        folder.write(name, origin + b"changed", content)


def _replace_folder_by_file(folder: CodeFolder, _random: Generator) -> None:
    shutil.rmtree(folder.path)
    folder.path.write_text("")


def _remove_all(folder: CodeFolder, random: Generator) -> None:
    shutil.rmtree(folder.path.parents[int(random.integers(2))])


def _damage_lock(folder: CodeFolder, random: Generator) -> None:
    lock = folder.path / "lock"
    lock.unlink(missing_ok=True)
    FILE_DAMAGE[random.integers(7, 10)](_touched(lock), random)
    _damage_files(folder, random)


def _touched(file: Path) -> Path:
    file.touch()
    return file


FOLDER_DAMAGE: tuple[Damage, ...] = (
    *(_damage_files, _swap, _other_content, _other_sources, _replace_folder_by_file),
    *(_remove_all, _damage_lock),
)


# Permissions -------------------------------------------------------------------------------------


def _permit_others(folder: CodeFolder, random: Generator) -> None:
    """Let others write the folder, one above it, or the files; or give them away."""
    places = [[folder.path], [folder.path.parents[int(random.integers(2))]], _files(folder)]
    for place in places[random.integers(3)]:
        if os.geteuid() == 0 and random.integers(2):
            os.chown(place, 12345, -1)
        else:
            place.chmod(place.stat().st_mode | int(random.choice([0o002, 0o022])))


def _correct_permissions(folder: CodeFolder) -> None:
    for place in (*folder.path.parents[:2], folder.path, *_files(folder)):
        place.chmod(0o700 if place.is_dir() else 0o600)
        os.chown(place, os.geteuid(), -1)


# Processes ---------------------------------------------------------------------------------------


def _names() -> list[tuple[str, bytes]]:
    """File names and origins of the kernels."""
    kinds = tuple(numba.typeof(argument) for argument in ARGUMENTS)
    dispatchers = [compiled(kernel) for kernel in KERNELS]
    return [each._cache._file(kinds, each.targetctx) for each in dispatchers]


def _use_kernels() -> int:
    """Call the kernels as the first ones in this process; an exit code."""
    is_loaded = True
    for kernel in KERNELS:
        dispatcher = compiled(kernel)
        if not np.isclose(dispatcher(*ARGUMENTS), kernel(*ARGUMENTS), rtol=1e-12):
            return WRONG
        is_loaded &= bool(dispatcher.stats.cache_hits)
    return LOADED if is_loaded else COMPILED


def _fork(work: Callable[[], int]) -> int:
    """Start a process that does this work; its number."""
    process = os.fork()
    if process == 0:
        code = FAILED
        try:
            signal.alarm(LONGEST_S)
            warnings.simplefilter("ignore")
            code = work()
        finally:
            os._exit(code)
    return process


def _exit_code(process: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def _vandalise(folder: CodeFolder, seed: int) -> int:
    """Overwrite files in place for a while, without any care for their readers."""
    random, end = np.random.default_rng(seed), time.monotonic() + 0.3
    while time.monotonic() < end:
        for file in _files(folder):
            with contextlib.suppress(OSError):
                _random_bytes(file, random)
        time.sleep(0.002)
    return LOADED


# The attack --------------------------------------------------------------------------------------


def attack(count: int, seed: int) -> dict[str, int]:
    """Damage the cache `count` times.

    → how often it was tried; how often all results were right; wrong results; errors and crashes;
    processes that hung; uses of damaged or unsafe code; tries after which the cache was not
    repaired. All but the first two must be 0.
    """
    random = np.random.default_rng(seed)
    names = ("tried", "right", "wrong", "crashes", "hangs", "unsafe_code_used", "not_repaired")
    counts = Counter(dict.fromkeys(names, 0))
    with tempfile.TemporaryDirectory() as name:
        with _cache_in(Path(name) / "other"):
            compiled(_warm_up)(*ARGUMENTS)  # so that forks need not load the compiler
        with _cache_in(Path(name) / "kernels") as folder:
            _exit_code(_fork(_use_kernels))
            for _ in range(count):
                counts["tried"] += 1
                counts.update(_one_try(folder, random))
        for _ in range(int(count * FITS_PER_TRY)):
            counts["tried"] += 1
            counts.update(_one_fit(Path(name) / "fits", random))
    return dict(counts)


def _warm_up(values: Any, factor: Any) -> Any:
    return values[0] + max(factor, abs(values[1]))


@contextlib.contextmanager
def _cache_in(place: Path) -> Iterator[CodeFolder]:
    previous, numba.config.CACHE_DIR = numba.config.CACHE_DIR, str(place)
    try:
        yield code_folder.code_folder()
    finally:
        numba.config.CACHE_DIR = previous


def _one_try(folder: CodeFolder, random: Generator) -> Counter[str]:
    kind = random.choice(["damage", "permissions", "concurrent"], p=[0.7, 0.2, 0.1])
    if kind == "permissions":
        _permit_others(folder, random)
        codes = [_exit_code(_fork(_use_kernels))]
        _correct_permissions(folder)
    else:
        damage = FOLDER_DAMAGE[random.integers(len(FOLDER_DAMAGE))]
        damage(folder, random)
        codes = _concurrently(folder, random) if kind == "concurrent" else []
        if not codes:
            codes = [_exit_code(_fork(_use_kernels))]
        if folder.path.is_file():
            folder.path.unlink()
        lock = folder.path / "lock"
        if lock.is_dir():
            shutil.rmtree(lock)
    # The next process finds or makes a good cache, and the one after it uses that.
    codes_after = [_exit_code(_fork(_use_kernels)) for _ in range(2)]
    found = _failures([*codes, *codes_after])
    found["unsafe_code_used"] = codes.count(LOADED) if kind != "concurrent" else 0
    found["not_repaired"] = int(codes_after[1] != LOADED)
    found["right"] = int(not +found)
    return found


def _concurrently(folder: CodeFolder, random: Generator) -> list[int]:
    """Eight processes at once, while another one overwrites their files."""
    seed = int(random.integers(1 << 30))
    vandal = _fork(lambda: _vandalise(folder, seed))
    processes = [_fork(_use_kernels) for _ in range(8)]
    return [_exit_code(process) for process in (*processes, vandal)]


def _failures(codes: list[int]) -> Counter[str]:
    hung = codes.count(-signal.SIGALRM)
    return Counter(
        wrong=codes.count(WRONG),
        hangs=hung,
        crashes=sum(code not in (LOADED, COMPILED, WRONG) for code in codes) - hung,
    )


def _one_fit(cache: Path, random: Generator) -> Counter[str]:
    """A fit with a third of its kernels damaged has the result of one with a good cache."""
    expected = _fit_result(cache)
    for file in cache.rglob("*.code"):
        if random.integers(3) == 0:
            FILE_DAMAGE[random.integers(len(FILE_DAMAGE))](file, random)
    results = [_fit_result(cache) for _ in range(2)]
    crashes = sum(result is None for result in (expected, *results))
    wrong = sum(result is not None and result != expected for result in results)
    return Counter(crashes=crashes, wrong=wrong, right=int(not crashes and not wrong))


def _fit_result(cache: Path) -> str | None:
    done = subprocess.run(
        [sys.executable, "-c", FIT],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
    )
    return done.stdout if done.returncode == 0 else None


def main() -> None:
    """Print the counts; fail unless every try was right."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    counts = attack(options.count, options.seed)
    print(counts)
    sys.exit(counts["right"] != counts["tried"])


if __name__ == "__main__":
    main()
