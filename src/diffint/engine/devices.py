"""Choose the device that trains, and its engine."""

from __future__ import annotations

from ..core.errors import InputError
from .interface import Engine

# Elements (rows × units × features × members × epochs) from which a GPU is faster in spite of the
# time to import torch and to compile: several minutes of one core.
_WORTH_A_GPU = 1e12


def resolve_device(device: object, elements: float) -> str:
    """The device to train on: ``"cpu"``, ``"cuda"``, ``"cuda:N"`` or ``"ray"``.

    device: as the user gave it; InputError if it cannot be used. elements: size of the training;
    ``"auto"`` looks for a GPU only if it is large.
    """
    if device == "cpu":
        return "cpu"
    if device == "auto":
        return "cuda" if elements >= _WORTH_A_GPU and _cuda_problem() is None else "cpu"
    if device == "cuda" or (isinstance(device, str) and device.startswith("cuda:")):
        problem = _cuda_problem()
        if problem is not None:
            raise InputError(f"device={device!r} cannot be used: {problem}; use device='cpu'")
        return str(device)
    if device == "ray":
        try:
            import ray  # noqa: F401
        except ImportError:
            raise InputError("device='ray' needs Ray: pip install 'diffint-ad[ray]'") from None
        return "ray"
    raise InputError(f"device={device!r} is not one of 'auto', 'cpu', 'cuda', 'ray'")


def engine_for(device: str) -> Engine:
    """The engine of a resolved device, or of ``"reference"``; imports only what it needs."""
    if device == "cpu":
        from .cpu.training import CpuEngine

        return CpuEngine()
    if device == "reference":
        from .reference.engine import ReferenceEngine

        return ReferenceEngine()
    if device == "ray":
        from .ray.training import RayEngine

        return RayEngine()
    from .gpu.training import GpuEngine

    return GpuEngine(device)


def _cuda_problem() -> str | None:
    """Why CUDA cannot be used; None if it can."""
    try:
        import torch
        import triton  # noqa: F401
    except ImportError:
        return "training on a GPU needs torch and triton (pip install 'diffint-ad[gpu]')"
    return None if torch.cuda.is_available() else "torch finds no CUDA GPU"
