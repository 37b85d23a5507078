"""Try to break the command and the files it reads, with everything in benchmarks/attacks.

    python benchmarks/attack.py [--seed 0] [--only tables] [-o docs/results/attack.md]

Every module of that folder with a function ``attack(count, seed)`` is one attack. It returns how
often each thing happened, and may describe problems.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "attacks"
COUNTS = {
    "model_files": 10_000,
    "certificates": 1_000,
    "tables": 1_000,
    "commands": 200,
    "kernel_cache": 200,
}
PURPOSES = {
    "model_files": "changed and invented model files are loaded",
    "certificates": "changed certificates are verified, and what is confirmed is tried on rows",
    "tables": "hostile tables are given to `fit`, `score`, `explain` and `report`",
    "commands": "commands are stopped by SIGINT, SIGTERM, SIGHUP and SIGKILL at random moments",
    "kernel_cache": "the cache of compiled code is damaged and shared",
}


def page(results: dict[str, dict[str, Any]], options: list[str]) -> str:
    """The results as Markdown: numbers, and lists of problems if there are any.

    options: of this command
    """
    lines = [
        "# Attacks",
        "",
        f"Created by `python {' '.join(['benchmarks/attack.py', *options])}`. What must not happen "
        "is counted too.",
    ]
    for name, counts in results.items():
        lines += ["", f"## {name}: {PURPOSES.get(name, 'see the module')}", ""]
        lines += ["| outcome | times |", "|---|---|"]
        lines += [f"| {what} | {n:,} |" for what, n in counts.items() if isinstance(n, int)]
        for texts in counts.values():
            if isinstance(texts, list) and texts:
                lines += ["", *(f"- {text}" for text in texts)]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the attacks that exist, print and write their results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, help="tries of each attack; default: many")
    parser.add_argument("--only", nargs="+", choices=COUNTS, default=list(COUNTS))
    parser.add_argument("-o", "--output", type=Path, default=Path("docs/results/attack.md"))
    options, arguments = parser.parse_args(), sys.argv[1:]  # attacks change sys.argv
    sys.path.insert(0, str(FOLDER))
    results = {}
    for name in options.only:
        attack = importlib.import_module(name).attack
        results[name] = attack(options.count or COUNTS[name], options.seed)
        print(page({name: results[name]}, arguments), flush=True)
    options.output.write_text(page(results, arguments))


if __name__ == "__main__":
    main()
