"""Keeps a copy of every code image that the driver loads in this process, including PyTorch's and cuBLAS's."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

from cuda.bindings import driver

from harness.runner.elf import Defined, defined
from harness.shared.cupti import Cupti

# CUPTI_CB_DOMAIN_*, CUPTI_CBID_RESOURCE_MODULE_LOADED, CUPTI_API_EXIT (cupti_callbacks.h). The functions that load a
# module are cuModuleLoad, cuModuleLoadData, cuModuleLoadDataEx, cuModuleLoadFatBinary (cupti_driver_cbid.h).
_DRIVER_API, _RESOURCE = 1, 3
_MODULE_LOADED, _EXIT = 6, 1
_LOADS = (18, 19, 20, 21)
_Callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p)


class _ResourceData(ctypes.Structure):  # CUpti_ResourceData
    _fields_ = (("context", ctypes.c_void_p), ("stream", ctypes.c_void_p), ("descriptor", ctypes.c_void_p))


class _ModuleData(ctypes.Structure):  # CUpti_ModuleResourceData
    _fields_ = (("id", ctypes.c_uint32), ("nbytes", ctypes.c_size_t), ("image", ctypes.c_void_p))


class _CallbackData(ctypes.Structure):  # the first fields of CUpti_CallbackData
    _fields_ = (("site", ctypes.c_uint32), ("name", ctypes.c_char_p), ("parameters", ctypes.c_void_p))


class LoadedImages:
    """Records images from its construction on. Create one per process, before the context, so that none is missed."""

    def __init__(self) -> None:
        self._images: list[bytes] = []
        self._defined: list[Defined] = []
        self._begun: dict[int, int] = {}  # by thread: the number of images when it began to load a module
        self._of_module: dict[int, int] = {}  # index of the image by module handle
        driver.cuInit(0)
        self._cupti = Cupti()
        self._callback = _Callback(self._called)  # kept alive, since CUPTI calls it for the life of the process
        self._subscriber = ctypes.c_void_p()
        self._cupti.call("cuptiSubscribe", ctypes.byref(self._subscriber), self._callback, None)
        # Only for these events, since a Python callback for every driver call would be slow.
        for domain, event in ((_RESOURCE, _MODULE_LOADED), *((_DRIVER_API, load) for load in _LOADS)):
            numbers = ctypes.c_uint32(domain), ctypes.c_uint32(event)
            self._cupti.call("cuptiEnableCallback", ctypes.c_uint32(1), self._subscriber, *numbers)

    def _called(self, _: Any, domain: int, event: int, data: Any) -> None:
        if domain == _RESOURCE:
            described = _ResourceData.from_address(data).descriptor
            module = _ModuleData.from_address(described) if described else None
            if module and module.nbytes:
                self._images.append(ctypes.string_at(module.image, module.nbytes))
            return
        call, thread = _CallbackData.from_address(data), threading.get_ident()
        if call.site != _EXIT:
            self._begun[thread] = len(self._images)
        elif self._begun.pop(thread, len(self._images)) < len(self._images):
            to = ctypes.c_void_p.from_address(call.parameters).value  # the first parameter: a pointer to the handle
            handle = ctypes.c_void_p.from_address(to).value if to else None
            if handle:
                self._of_module[handle] = len(self._images) - 1

    def with_function(self, name: str, module: int) -> tuple[int, bytes, Defined]:
        """The number and the content of the image that defines a function, and the names that it defines.

        If the module was not loaded explicitly (as with PyTorch's), the image is found only by the function's name.

        Raises:
            LookupError: no image defines the function, or several different images do.
        """
        for image in self._images[len(self._defined) :]:
            self._defined.append(_defined(image))
        number = self._of_module.get(module)
        if number is None:
            known = [k for k, contents in enumerate(self._defined) if name in contents.functions]
            if not known:
                raise LookupError(f"no code image with `{name}` was loaded")
            if len({self._images[k] for k in known}) > 1:
                raise LookupError(f"`{name}` is in {len(known)} code images that differ")
            number = known[-1]
        return number, self._images[number], self._defined[number]


def _defined(image: bytes) -> Defined:
    try:
        return defined(image)
    except ValueError:
        return Defined(frozenset(), ())
