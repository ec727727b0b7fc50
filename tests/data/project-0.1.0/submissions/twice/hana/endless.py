def twice(x, y):
    while True:
        pass
