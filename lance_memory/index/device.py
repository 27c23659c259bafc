"""Torch, where it is installed, and the device that it works on."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from functools import cache
from typing import Any

from lance_memory.errors import InvalidInputError, MissingExtraError
from lance_memory.extras import require

__all__ = ["GPU_EXTRAS", "cuda_answers", "cuda_in_use", "driver_devices", "torch_on"]

GPU_EXTRAS = ("gpu-cu12", "gpu-cu13")
"""As the driver's CUDA is."""


@cache
def cuda_answers() -> bool:
    """Whether torch is there and a CUDA device answers it. Asked once a process.

    The driver is asked first: without one, torch, which takes a second to load, is not.
    """
    if importlib.util.find_spec("torch") is None or not driver_devices():
        return False
    try:
        torch = require("torch", *GPU_EXTRAS)
        if not torch.cuda.is_available():
            return False
        return bool(torch.ones(1, device="cuda").sum().item() == 1)
    except (MissingExtraError, RuntimeError):  # a driver that is there and does not work
        return False


def cuda_in_use() -> bool:
    """Whether this process works on a CUDA device already: more work there is no surprise."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    return cuda is not None and bool(cuda.is_initialized())


@cache
def driver_devices() -> int:
    """How many CUDA devices there are for this process; 0 where there is no driver.

    NVML is asked where it is there: it makes no context of CUDA in this process, after which a
    fork of it could not use CUDA at all.
    """
    if os.environ.get("CUDA_VISIBLE_DEVICES", "all").strip() in ("", "-1"):
        return 0
    counted = _nvml_devices()
    return _cuda_devices() if counted is None else counted


def _nvml_devices() -> int | None:
    """Devices by the management library; None where it is missing or broken."""
    count = ctypes.c_uint(0)
    try:
        library = ctypes.CDLL("nvml.dll" if sys.platform == "win32" else "libnvidia-ml.so.1")
        if library.nvmlInit_v2():
            return None
        failed = library.nvmlDeviceGetCount_v2(ctypes.byref(count))
        library.nvmlShutdown()
    except (OSError, AttributeError):
        return None
    return None if failed else count.value


def _cuda_devices() -> int:
    count = ctypes.c_int(0)
    try:
        driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        failed = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    except (OSError, AttributeError):
        return 0
    return 0 if failed else count.value


def torch_on(device: str) -> Any:
    """Torch, once `device` ("cpu" or "cuda") is known to answer.

    Raises:
        MissingExtraError: torch is not installed.
        InvalidInputError: no CUDA device answers, or a device of another name.
    """
    if device not in ("cpu", "cuda"):
        raise InvalidInputError(f'device={device!r}; there are "cpu" and "cuda"')
    if device == "cuda" and importlib.util.find_spec("torch") and not cuda_answers():
        raise InvalidInputError(
            "no CUDA device answers torch here; check the driver with `nvidia-smi`, "
            "and that this torch is a CUDA build"
        )
    return require("torch", "sentence-transformers", *GPU_EXTRAS)
