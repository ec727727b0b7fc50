"""Loads a recording's code images, finds their functions, and resets their variables before every call."""

from __future__ import annotations

from typing import Any

from cuda.bindings import driver

from harness.arena.mapping import check
from harness.errors import DeviceError
from harness.recording.file import Packed
from harness.recording.schema import Kernel
from harness.wire import replies

_PLAIN_CLUSTER = 8
_Attribute = driver.CUfunction_attribute


class Images:
    """The loaded modules of one recording."""

    def __init__(self, packed: Packed) -> None:
        self._modules = []
        self._variables: list[tuple[int, bytes]] = []  # address and recorded content
        for image in packed.recording.images:
            module = check(driver.cuModuleLoadData(bytes(packed.content(image.code))))
            self._modules.append(module)
            for variable in image.variables:
                content = bytes(packed.content(variable.content))
                address, nbytes = check(driver.cuModuleGetGlobal(module, variable.name.encode()))
                if nbytes != len(content):
                    raise DeviceError(f"`{variable.name}` has {nbytes} bytes, and {len(content)} were recorded")
                self._variables.append((int(address), content))
        launched = [node for node in packed.recording.nodes if isinstance(node, Kernel)]
        self._functions: dict[tuple[int, str], Any] = {}
        for node in launched:
            key = (node.image, node.name)
            if key not in self._functions:
                self._functions[key] = check(driver.cuModuleGetFunction(self._modules[node.image], node.name.encode()))
            self._allow(self._functions[key], node)

    def restore(self) -> None:
        """Restore the recorded content of the variables, so that every call starts like the recorded one."""
        for address, content in self._variables:
            check(driver.cuMemcpyHtoD(address, content, len(content)))

    def function(self, kernel: Kernel) -> Any:
        return self._functions[kernel.image, kernel.name]

    @property
    def facts(self) -> tuple[replies.Function, ...]:
        """The resources of each function, in order of first launch, as many as fit into a frame."""
        return tuple(_facts(function) for function in list(self._functions.values())[: replies.MAX_FUNCTIONS])

    def unload(self) -> None:
        for module in self._modules:
            check(driver.cuModuleUnload(module))

    def _allow(self, function: Any, kernel: Kernel) -> None:
        """Allow a function launches that exceed the default limits."""
        most = _Attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        if kernel.shared_bytes > check(driver.cuFuncGetAttribute(most, function)):
            check(driver.cuFuncSetAttribute(function, most, kernel.shared_bytes))
        x, y, z = kernel.cluster
        if x * y * z > _PLAIN_CLUSTER:
            allowed = _Attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
            check(driver.cuFuncSetAttribute(function, allowed, 1))


def _facts(function: Any) -> replies.Function:
    def get(attribute: Any) -> int:
        return int(check(driver.cuFuncGetAttribute(attribute, function)))

    return replies.Function(
        registers=get(_Attribute.CU_FUNC_ATTRIBUTE_NUM_REGS),
        local_bytes=get(_Attribute.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES),
        shared_bytes=get(_Attribute.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES),
    )
