"""The tests' handlers, run by the example worker: python handlers.py QUEUE LEASE_SECONDS"""

import os, socket, sys, time
from pathlib import Path

import worker

FOLDER = Path(os.environ["DIR"])
# A test's server has the name of an API on AWS. Every name is this machine's here.
look_up = socket.getaddrinfo
socket.getaddrinfo = lambda host, *more, **options: look_up("127.0.0.1", *more, **options)


class Declined(Exception):
    code = "card_declined"


class Final(Exception):
    code, retryable = "no_such_card", False


def flaky(task, stop):
    if task["attempt"] == 1:
        raise Declined("not today")
    return "paid"


def final(task, stop):
    raise Final("never")


def until_go(task, stop):
    while not (FOLDER / "go").exists():
        time.sleep(0.02)
    return "done"


def until_stopped(task, stop):
    stop.wait()
    (FOLDER / "stopped").touch()
    return "too late"


def large(task, stop):
    """As many bytes as the input says in the first attempt, and a small output in the next one."""
    return "x" * task["input"]["bytes"] if task["attempt"] == 1 else "small"


def reports(task, stop):
    """Says how far it is and hangs in the first attempt. Returns what it finds in the next one."""
    if task["attempt"] == 1:
        worker.alive(task, progress=0.5, details={"row": 7})
        stop.wait()
    return [task.get("progress"), task.get("details")]


class Odd(Exception):
    """An exception with these attributes and this text, which counts as false."""

    def __init__(self, text="odd", **attributes):
        super().__init__(text)
        vars(self).update(attributes)

    def __bool__(self):
        return False


class Mute(Exception):
    @property
    def code(self):
        raise RuntimeError("no code")

    def __str__(self):
        raise RuntimeError("no text")


ODD = {
    "exit": SystemExit("gone " * 100),
    "method": Odd(code=print),
    "half": Odd("a\ud800b", code="half\ud800"),
    "empty": Odd(code=""),
    "flag": Odd(code="no_flag", retryable="no"),
    "mute": Mute(),
    "huge": Odd("x" * 10_000_000, code="c" * 65),
    "null": Odd(code=None),
}


def odd(name):
    def handler(task, stop):
        raise ODD[name]

    return handler


handlers = {f"odd-{name}": odd(name) for name in ODD}
handlers |= {"reports": reports, "flaky": flaky, "final": final, "until-go": until_go, "until-stopped": until_stopped, "large": large}
worker.work(sys.argv[1], handlers, int(sys.argv[2]))
