"""Run functions of this package as tasks on a Ray cluster, with errors that say what to do."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from ...core.errors import DiffIntError, PlatformError
from ...core.version import __version__

Options = Mapping[str, Any]
"""Options of `ray.remote`, such as ``num_cpus``, ``resources`` or ``runtime_env``."""

_TASKS_PER_CPU = 2  # that are waiting or running: so many tables are in the object store

_FIXABLE = (DiffIntError, ValueError)  # scikit-learn raises the latter for tables


def check_workers(options: Options | None = None) -> None:
    """Raise an error if a node of the cluster lacks this package or has another version of it.

    Starts or joins a cluster if there is none yet, as Ray does. A node that joins later is not
    checked.
    """
    if not ray.is_initialized():
        ray.init()

    # Ray sends a nested function by value, so that it also runs where this package is missing.
    def installed_version() -> str | None:
        try:
            from diffint.core.version import __version__ as found
        except ImportError:
            return None
        return str(found)

    runtime_env = dict(options or {}).get("runtime_env")
    # The head of a cluster often has no CPU, so that it gets no work.
    nodes = [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU")]
    found = [
        ray.remote(installed_version).options(
            num_cpus=0,
            runtime_env=runtime_env,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=True),
        )
        for node in nodes
    ]
    try:
        versions = ray.get([task.remote() for task in found])
    except RayError as error:
        raise PlatformError(f"a task cannot be run on the Ray cluster: {_short(error)}") from None
    for node, version in zip(nodes, versions, strict=True):
        where = f"the workers of Ray node {node['NodeManagerAddress']}"
        remedy = f"install diffint-ad[ray]=={__version__} there, or name it in Ray's runtime_env"
        if version is None:
            raise PlatformError(f"{where} do not have the package diffint; {remedy}")
        if version != __version__:
            raise PlatformError(f"{where} have diffint {version}, not {__version__}; {remedy}")


def threads_of(options: Options | None) -> int:
    """How many threads a task or an actor with these options may use: one for each of its CPUs."""
    return max(1, int((options or {}).get("num_cpus", 1)))


def run_tasks(
    function: Callable[..., Any],
    arguments: Iterable[tuple[Any, ...]],
    options: Options | None = None,
) -> Generator[tuple[int, Any], None, None]:
    """Call a function with each tuple of arguments on the workers of a cluster.

    Yields the place of a tuple and the result of its call, or the error that it raised, in the
    order in which calls end. A call is repeated if its worker ends; calls that are left are
    cancelled when the generator is closed.
    """
    task = ray.remote(function).options(**{"num_cpus": 1, **(options or {})})
    at_once = _TASKS_PER_CPU * max(1, int(ray.cluster_resources().get("CPU", 1)))
    waiting, running = enumerate(arguments), dict[Any, int]()
    try:
        while True:
            while len(running) < at_once:
                place, given = next(waiting, (-1, ()))
                if place < 0:
                    break
                running[task.remote(*given)] = place
            if not running:
                return
            for done in ray.wait(list(running))[0]:
                yield running.pop(done), _result_of(done)
    finally:  # after an error or an interrupt
        for reference in running:
            ray.cancel(reference, force=True)


def _result_of(reference: Any) -> Any:
    """The result of a task or its error; one that users can fix, without a worker's traceback."""
    try:
        return ray.get(reference)
    except RayTaskError as error:
        return error.cause if isinstance(error.cause, _FIXABLE) else error
    except RayError as error:
        return PlatformError(f"a Ray worker ended before it was done: {_short(error)}")


def _short(error: Exception) -> str:
    """The first line of what Ray says."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), repr(error))
