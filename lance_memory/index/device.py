"""Torch, where it is installed, and the device that it works on."""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import sys
from functools import cache
from typing import Any

from lance_memory.errors import InvalidInputError, MissingExtraError

__all__ = ["cuda_answers", "driver_devices", "torch_module", "torch_on"]

_INSTALL = "install torch, or lance-memory[gpu-cu12] or lance-memory[gpu-cu13] for a GPU"


def torch_module() -> Any:
    """The module torch.

    Raises:
        MissingExtraError: it is not installed, or cannot be loaded.
    """
    try:
        return importlib.import_module("torch")
    except (ImportError, OSError) as error:  # OSError: a library of CUDA is missing
        raise MissingExtraError(f"torch cannot be imported ({error}); {_INSTALL}") from error


@cache
def cuda_answers() -> bool:
    """Whether torch is there and a CUDA device answers it. Asked once a process.

    The driver is asked first: without one, torch, which takes a second to load, is not.
    """
    if importlib.util.find_spec("torch") is None or not driver_devices():
        return False
    try:
        torch = torch_module()
        if not torch.cuda.is_available():
            return False
        return bool(torch.ones(1, device="cuda").sum().item() == 1)
    except (MissingExtraError, RuntimeError):  # a driver that is there and does not work
        return False


@cache
def driver_devices() -> int:
    """How many devices the CUDA driver sees; 0 where there is no driver."""
    library = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    count = ctypes.c_int(0)
    try:
        driver = ctypes.CDLL(library)
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
    return torch_module()
