#!/usr/bin/env python3
"""Two hosts with a link of a given rate between them, on this machine: what a step costs, compared with a simple cost model.

  sudo benchmarks/scaling/links.py build/release/clustergcn [--rates 1,10,25] [--shapes ppi,reddit,amazon2m] [--scale 0.1] [--slots 2] [--epochs 2]

The hosts are network namespaces, joined by a pair of virtual Ethernet devices whose rate `tc` limits (tbf). The round trip and the rate of a plain
TCP connection are measured first, and are what the model (model.py) takes; the times of a batch and of an update are those of one process.
"""
import argparse
import ctypes
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import types

from measure import ENVIRONMENT, numbers, prepare
from model import step_time

NAME = f"cgcn-link-{os.getpid()}"
HOSTS = [f"{NAME}-{h}" for h in range(2)]
LIBC = ctypes.CDLL(None, use_errno=True)  # for setns, which Python has since 3.12


def ip(*words, host=None):
    subprocess.run(["ip"] + (["-n", host] if host else []) + list(words), check=True)


class Link:
    """Two namespaces with a cable between them."""

    def __enter__(self):
        for h, host in enumerate(HOSTS):
            ip("netns", "add", host)
            ip("link", "set", "lo", "up", host=host)
            os.makedirs(f"/etc/netns/{host}", exist_ok=True)
            with open(f"/etc/netns/{host}/hosts", "w") as file:
                file.write("127.0.0.1 localhost\n" + "".join(f"10.78.0.{i + 1} {other}\n" for i, other in enumerate(HOSTS)))
        ip("link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", HOSTS[1], host=HOSTS[0])
        for h, host in enumerate(HOSTS):
            ip("addr", "add", f"10.78.0.{h + 1}/24", "dev", "eth0", host=host)
            ip("link", "set", "eth0", "up", host=host)
        return self

    def __exit__(self, *_):
        for host in HOSTS:
            subprocess.run(["ip", "netns", "del", host], check=False)
            subprocess.run(["rm", "-rf", f"/etc/netns/{host}"], check=False)

    def set_rate(self, gigabits):
        for host in HOSTS:
            subprocess.run(["ip", "netns", "exec", host, "tc", "qdisc", "del", "dev", "eth0", "root"], stderr=subprocess.DEVNULL, check=False)
            if gigabits:
                burst = max(64_000, int(gigabits * 1e9 / 8 / 1000))  # of a millisecond
                subprocess.run(["ip", "netns", "exec", host, "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", f"{gigabits}gbit",
                                "burst", str(burst), "latency", "20ms"], check=True)


def on_host(host):
    """What a child does before it is another program: enter the namespace."""
    def enter():
        with open(f"/run/netns/{host}") as space:
            if LIBC.setns(space.fileno(), 0) != 0:
                raise OSError("setns")
    return enter


def serve(connection):
    """Sends back every ping of one byte; swallows the rest until the end and says so."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for _ in range(200):
        connection.sendall(connection.recv(1))
    left = 1 << 28
    while left > 0:
        left -= len(connection.recv(1 << 20))
    connection.sendall(b"x")


def measure_link():
    """Round trip in seconds and bytes per second of one TCP connection."""
    child = os.fork()
    if child == 0:
        on_host(HOSTS[1])()
        with socket.create_server(("10.78.0.2", 5000)) as server:
            serve(server.accept()[0])
        os._exit(0)
    reading, writing = os.pipe()
    client = os.fork()
    if client == 0:
        on_host(HOSTS[0])()
        for _ in range(100):
            try:
                connection = socket.create_connection(("10.78.0.2", 5000))
                break
            except OSError:
                time.sleep(0.05)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        times = []
        for _ in range(200):
            begun = time.perf_counter()
            connection.sendall(b"x")
            connection.recv(1)
            times.append(time.perf_counter() - begun)
        block, begun = bytes(1 << 20), time.perf_counter()
        for _ in range(256):
            connection.sendall(block)
        connection.recv(1)
        rate = (1 << 28) / (time.perf_counter() - begun)
        os.write(writing, json.dumps([sorted(times)[100], rate]).encode())
        os._exit(0)
    os.waitpid(client, 0)
    os.waitpid(child, 0)
    return json.loads(os.read(reading, 1000))


def train(program, store, run, options, hosts, folder):
    command = [program, "train", store, "--run", run, "--threads", "1", "--json", "--keep", "last", "--eval-every", "1000000", "--recipe", "none"] + options
    if hosts:
        agent = f"{folder}/agent"
        with open(agent, "w") as file:
            file.write('#!/bin/sh\nhost=$1\nshift\nexec ip netns exec "$host" unshare --uts sh -c \'hostname "$0"; exec sh -c "$1"\' "$host" "$*"\n')
        os.chmod(agent, 0o755)
        command = ["ip", "netns", "exec", HOSTS[0], "unshare", "--uts", "sh", "-c", 'hostname "$0"; exec "$@"', HOSTS[0],
                   "mpirun", "-n", "2", "--host", ",".join(HOSTS), "--bind-to", "none", "--mca", "plm_rsh_agent", agent, "--mca", "btl", "tcp,self",
                   "--mca", "btl_tcp_if_include", "eth0", "--mca", "oob_tcp_if_include", "eth0"] + command
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--rates", default="1,10,25", help="Gbit/s; 0: as fast as it goes")
    parser.add_argument("--shapes", default="ppi,reddit,amazon2m")
    parser.add_argument("--scale", default="0.1")
    parser.add_argument("--slots", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--folder", default=os.path.join(tempfile.gettempdir(), "clustergcn-scaling"))
    arguments = parser.parse_args()
    slots = arguments.slots
    print(f"{'shape':<10}{'Gbit/s':>7}{'TCP Gbit/s':>11}{'round trip':>12}{'1 process':>11}{'2 hosts':>9}{'model':>8}{'compute':>9}{'waiting':>9}"
          f"{'comm.':>8}{'model':>8}   ms per step; MB sent per host and step", flush=True)
    with Link() as link, tempfile.TemporaryDirectory(dir=arguments.folder if os.path.isdir(arguments.folder) else None) as work:
        for shape in arguments.shapes.split(","):
            store, options, batches = prepare(arguments.program, shape, arguments.scale, slots, arguments.folder)
            alone = {}
            for count in 1, slots:
                run = f"{work}/{shape}-alone-{count}"
                alone[count] = train(arguments.program, store, run, options + ["--epochs", str(arguments.epochs), "--batches-per-step", str(count)], False, work)
            steps = arguments.epochs * -(-batches // slots)
            step, single = alone[slots]["train_seconds"] / steps, alone[1]["train_seconds"] / (arguments.epochs * batches)
            batch = (step - single) / (slots - 1)
            costs = types.SimpleNamespace(batch=1e3 * batch, update=max(0, 1e3 * (single - batch)), gradient=4e-6 * alone[1]["weights"], message=5,
                                          layers=int(options[options.index("--layers") + 1]))
            options += ["--epochs", str(arguments.epochs), "--batches-per-step", str(slots)]
            print(f"{shape}: {costs.batch:.2f} ms per batch, {costs.update:.2f} ms per update, gradient of {costs.gradient:.2f} MB")
            for rate in arguments.rates.split(","):
                link.set_rate(float(rate))
                round_trip, speed = measure_link()
                run = f"{work}/{shape}-{rate}"
                result = train(arguments.program, store, run, options, True, work)
                if numbers(f"{run}/last.safetensors") != numbers(f"{work}/{shape}-alone-{slots}/last.safetensors"):
                    sys.exit(f"error: {shape}: two hosts have other weights than one process")
                ranks = result["ranks"]
                mean = {key: sum(r[key] for r in ranks) / len(ranks) / steps for key in ranks[0] if key.endswith("seconds") or key == "bytes_sent"}
                costs.round_trip = 1e6 * round_trip
                model = step_time(2, slots, costs, speed * 8e-9)
                moved = model - (costs.batch * -(-slots // 2) + costs.update) * 1e-3
                print(f"{shape:<10}{rate:>7}{speed * 8e-9:>11.2f}{round_trip * 1e6:>9.0f} us{1e3 * step:>11.2f}{1e3 * result['train_seconds'] / steps:>9.2f}"
                      f"{1e3 * model:>8.2f}{1e3 * mean['compute_seconds']:>9.2f}{1e3 * mean['waiting_seconds']:>9.2f}"
                      f"{1e3 * mean['communication_seconds']:>8.2f}{1e3 * moved:>8.2f}{mean['bytes_sent'] / 1e6:>12.2f}", flush=True)


if __name__ == "__main__":
    main()
