# Strategy: a thread asks the kernel for a byte of the inputs until they appear, and computes while the runner maps.
# Surface: the part of a round that counts as mapping, and is taken off, although work may be done in it.
import ctypes
import os
import threading
import time

import torch
from harness.runner import calls

libc = ctypes.CDLL(None)
assemble, honest = calls.Calls.assemble, calls.Calls.round
DRAWN, DONE = threading.Semaphore(0), threading.Semaphore(0)
made, told = None, False


class Span(ctypes.Structure):
    _fields_ = (("address", ctypes.c_void_p), ("nbytes", ctypes.c_size_t))


def appear(address):
    """Spin until there is memory at this address: to read it would end the process."""
    byte = ctypes.create_string_buffer(1)
    ours, theirs = Span(ctypes.addressof(byte), 1), Span(address, 1)
    while libc.process_vm_readv(os.getpid(), ctypes.byref(ours), 1, ctypes.byref(theirs), 1, 0) != 1:
        pass


def work():
    while True:
        DRAWN.acquire()
        order = made._batch._order
        appear(made._arguments[order[0]][0].data_ptr())
        made.seen_ns = time.perf_counter_ns()
        for k in order:
            torch.mul(made._arguments[k][0], 2, out=made._arguments[k][1])
        DONE.release()


def drawn(self, order, outputs):
    global made
    assemble(self, order, outputs)
    if order:
        made = self
        DRAWN.release()


def round(self, inputs):
    global told
    if not self._batch._order:
        return honest(self, inputs)
    self._inputs.map(inputs)
    mapped_ns = time.perf_counter_ns()
    timing = self._device.sample(DONE.acquire)
    early_ns = mapped_ns - made.seen_ns
    if not told:
        told = True
        print(f"attack: a thread waited for the inputs, and used them {early_ns} ns before the runner had them", flush=True)
    return timing


calls.Calls.assemble, calls.Calls.round = drawn, round
threading.Thread(target=work, daemon=True).start()


def twice(x, y):
    torch.mul(x, 2, out=y)
