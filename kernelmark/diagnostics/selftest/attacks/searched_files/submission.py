# Strategy: searches the file system for references, problems, ledgers, other submissions and keys.
# Surface: everything that is bound into a sandbox, or left in its image.
import os

wanted = {"reference.py", "problem.toml", "kernelmark.toml", "expect.toml", "BOARD.md", "id_rsa", ".netrc"}
found, folders = [], 0
for folder, below, files in os.walk("/"):
    folders += 1
    below[:] = [name for name in below if os.path.join(folder, name) not in ("/proc", "/sys", "/dev")]
    found += [os.path.join(folder, name) for name in files if name in wanted or name.endswith(".jsonl")]


def ours(path):
    """Others have files of these names too."""
    try:
        with open(path, "rb") as file:
            text = file.read(1 << 20)
    except OSError:
        return False
    return any(each in text for each in (b"def reference(x: torch", b"[[tensors]]", b"kernelmark", b"PRIVATE KEY"))


found = [path for path in found if ours(path)]
print(f"attack: {folders} folders searched, found: {found[:5] or 'nothing'}", flush=True)


def twice(x, y):
    y.fill_(0)
