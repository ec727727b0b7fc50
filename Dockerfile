# The runner's image: Python, a C++ compiler, torch and triton. It holds nothing of kernelmark (docs/decisions/0002).
# `tools/image` builds it; the wheels come from build/wheels, so the build itself needs no network if BASE is complete.
ARG BASE=python:3.11-slim

FROM $BASE AS packages
LABEL kernelmark.stage=packages
COPY build/wheels /wheels
RUN python3 -m venv /installer \
 && /installer/bin/pip install --no-index --find-links /wheels --no-cache-dir --target /opt/packages torch triton numpy ninja

FROM $BASE
# Triton compiles its launchers at run time: it needs a compiler and Python's headers, as load_inline does.
RUN { command -v g++ && python3 -c 'import pathlib, sysconfig; (pathlib.Path(sysconfig.get_path("include")) / "Python.h").stat()'; } \
 || { apt-get update && apt-get install -y --no-install-recommends g++ \
      && { command -v /usr/local/bin/python3 || apt-get install -y --no-install-recommends python3-dev; } \
      && rm -rf /var/lib/apt/lists/*; }
COPY --from=packages /opt/packages /opt/packages
# load_inline calls ninja by name.
RUN ln -s /opt/packages/bin/ninja /usr/local/bin/ninja && ninja --version
RUN python3 -c 'import pathlib, site; pathlib.Path(site.getsitepackages()[0], "packages.pth").write_text("/opt/packages\n")' \
 && python3 -I -c 'import numpy, torch, triton'
# With it there, no sandbox compiles what Triton launches by (0.7 s): each copies it into its own cache.
COPY harness/runner/triton_start.py /tmp/
RUN python3 -I /tmp/triton_start.py /opt/triton && rm /tmp/triton_start.py
USER 65534:65534
