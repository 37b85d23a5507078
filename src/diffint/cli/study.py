"""``diffint study``: the paper's tables and figures, measured again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..core.errors import InputError
from ..core.formatting import listed
from .output import say
from .progress import progress_bar

if TYPE_CHECKING:
    from ..studies.study import Setup, Study

_LINE_EVERY = 20.0  # seconds between lines of progress, if there is no terminal


def study(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME|all|list", help="The study, all of them, or the list of their names."
        ),
    ],
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="DIR", help="Folder of ADBench tables (NN_name.npz)."),
    ] = None,
    out: Annotated[
        Path,
        typer.Option("--out", metavar="DIR", help="Folder for CSV, Markdown and figure."),
    ] = Path("docs/results/studies"),
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="A rough version in seconds: fewer tables, seeds and epochs. It is written to the "
            "folder 'quick' in the output folder.",
        ),
    ] = False,
    jobs: Annotated[
        int, typer.Option(metavar="N", help="Processes, one thread each; -1 for all cores.")
    ] = 1,
    seeds: Annotated[
        int | None, typer.Option(metavar="N", help="Number of seeds. Default: the study's.")
    ] = None,
    device: Annotated[
        str, typer.Option(metavar="NAME", help="Where detectors train: cpu, cuda or auto.")
    ] = "cpu",
) -> None:
    """Measure a table or figure of the paper again, and print it beside the paper's numbers.

    After an interrupt, the same command continues where it stopped.

    Example: diffint study toy --quick --out studies
    """
    from ..core.checks import resolve_jobs
    from ..engine.devices import resolve_device
    from ..studies.registry import NAMES, study_named
    from ..studies.study import Setup

    if name == "list":
        for each in map(study_named, NAMES):
            say(f"{each.name:17} {each.paper}: {each.question} {each.cost}.")
        return
    if jobs == 0 or jobs < -1:
        raise InputError(f"--jobs {jobs} must be a positive number, or -1 for one per core")
    if seeds is not None and seeds < 1:
        raise InputError(f"--seeds {seeds} must be at least 1")
    if device != "auto":
        resolve_device(device, float("inf"))  # an error if it is unknown or not there
    setup = Setup(data, quick, seeds, device)
    chosen = [study_named(one) for one in (NAMES if name == "all" else (name,))]
    left_out = []
    for each in chosen:
        try:
            each.found_tables(setup)
        except InputError as error:
            if name != "all" or data is None or not data.is_dir():
                raise
            left_out.append(each.name)
            say(f"diffint: left out: {error}", err=True)
    for each in chosen:
        if each.name not in left_out:
            _run(each, setup, out, resolve_jobs(jobs))


def _run(study: Study, setup: Setup, out: Path, jobs: int) -> None:
    from ..studies.page import sentence
    from ..studies.run import run_study

    with progress_bar(f"tasks of the study {study.name}", _LINE_EVERY) as show:
        outcome = run_study(study, setup, out, jobs, _command(study, setup, jobs), show)
    if outcome.missing:
        say(f"diffint: not in {setup.data}: {listed(outcome.missing)}", err=True)
    say(f"{study.name} ({study.paper}): {study.question}")
    for claim in outcome.findings.claims:
        verdict = sentence(claim).replace("**", "")
        say(f"  {claim.statement}: paper {claim.paper}, ours {claim.ours}. {verdict}")
    say(f"  {outcome.page}")


def _command(study: Study, setup: Setup, jobs: int) -> str:
    """The command as it is named on the page."""
    parts = ["diffint study", study.name]
    parts += ["--data FOLDER"] if study.tables else []
    parts += ["--quick"] if setup.quick else []
    parts += [f"--seeds {setup.seeds}"] if setup.seeds else []
    parts += [f"--jobs {jobs}"] if jobs > 1 else []
    parts += [f"--device {setup.device}"] if setup.device != "cpu" else []
    return " ".join(parts)
