"""Keeps a copy of every code image that the driver loads in this process, PyTorch's and cuBLAS's too."""

from __future__ import annotations

import ctypes
from typing import Any

from harness.cupti import Cupti
from harness.runner.elf import Defined, defined

_RESOURCE, _MODULE_LOADED = 3, 6  # CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_MODULE_LOADED
_Callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p)


class _Resource(ctypes.Structure):  # CUpti_ResourceData
    _fields_ = (("context", ctypes.c_void_p), ("stream", ctypes.c_void_p), ("descriptor", ctypes.c_void_p))


class _Module(ctypes.Structure):  # CUpti_ModuleResourceData
    _fields_ = (("id", ctypes.c_uint32), ("nbytes", ctypes.c_size_t), ("image", ctypes.c_void_p))


class LoadedImages:
    """Listens from now on. One a process; make it before the context, so that nothing is missed."""

    def __init__(self) -> None:
        self._images: list[bytes] = []
        self._defined: list[Defined] = []
        self._cupti = Cupti()
        self._callback = _Callback(self._loaded)  # kept, since CUPTI calls it for as long as the process lives
        self._subscriber = ctypes.c_void_p()
        self._cupti.call("cuptiSubscribe", ctypes.byref(self._subscriber), self._callback, None)
        self._cupti.call("cuptiEnableDomain", ctypes.c_uint32(1), self._subscriber, ctypes.c_uint32(_RESOURCE))

    def _loaded(self, _: Any, domain: int, event: int, data: Any) -> None:
        if domain == _RESOURCE and event == _MODULE_LOADED:
            described = _Resource.from_address(data).descriptor
            module = _Module.from_address(described) if described else None
            if module and module.nbytes:
                self._images.append(ctypes.string_at(module.image, module.nbytes))

    def with_function(self, name: str) -> tuple[int, bytes, Defined]:
        """The image that defines a function, its number, and what else it defines; of several the one loaded last.

        Raises:
            LookupError: none does.
        """
        for image in self._images[len(self._defined) :]:
            self._defined.append(defined(image))
        for number in reversed(range(len(self._defined))):
            if name in self._defined[number].functions:
                return number, self._images[number], self._defined[number]
        raise LookupError(f"no code image with `{name}` was loaded")
