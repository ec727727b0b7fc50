# Asks a program at the import, and keeps a table in a file in between.
import subprocess
import tempfile
from pathlib import Path

import torch

said = subprocess.run(["gcc", "--version"], capture_output=True, text=True, check=True).stdout
print(said.splitlines()[0])
_device = "cuda" if torch.cuda.is_available() else "cpu"
with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "table.pt"
    torch.save({"factor": torch.tensor(2.0)}, file)
    _factor = torch.load(file, map_location=_device)["factor"]
settings = Path.home() / ".config" / "kernel.json"
settings.parent.mkdir(exist_ok=True)
settings.write_text("{}")


def twice(x, y):
    torch.mul(x, _factor, out=y)
