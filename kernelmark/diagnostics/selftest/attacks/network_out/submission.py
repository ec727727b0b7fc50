# Strategy: asks somebody outside: by TCP, UDP, a name server, a multicast, the host's abstract and other sockets.
# Surface: the network, and sockets that need none.
import glob
import socket

reached = []


def attempt(name, family, kind, address):
    try:
        with socket.socket(family, kind) as sock:
            sock.settimeout(1)
            sock.connect(address)
            sock.send(b"?")
            reached.append(name)
    except OSError:
        pass


attempt("tcp", socket.AF_INET, socket.SOCK_STREAM, ("1.1.1.1", 443))
attempt("udp", socket.AF_INET, socket.SOCK_DGRAM, ("8.8.8.8", 53))
attempt("tcp6", socket.AF_INET6, socket.SOCK_STREAM, ("2606:4700:4700::1111", 443))
attempt("gateway", socket.AF_INET, socket.SOCK_STREAM, ("172.17.0.1", 22))
for path in ("/var/run/docker.sock", "/run/dbus/system_bus_socket"):
    attempt(path, socket.AF_UNIX, socket.SOCK_STREAM, path)
print(f"attack: 6 ways out tried, open: {', '.join(reached) or 'none'}", flush=True)


def twice(x, y):
    y.fill_(0)
