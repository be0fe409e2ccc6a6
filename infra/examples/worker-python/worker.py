"""A worker: python worker.py QUEUE. After SIGTERM or SIGINT, it finishes its task and ends."""

import json, os, re, signal, subprocess, sys, threading, time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from functools import cache
from typing import Any

import urllib3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.session import Session

API = os.environ.get("TICKOVER_ENDPOINT", "http://127.0.0.1:7070").rstrip("/") + "/v1/"
ON_AWS = re.search(r"\.(execute-api|lambda)(?:-url)?\.([a-z0-9-]+)\.", API)  # service and region
REGION, TOKEN_COMMAND = os.environ.get("TICKOVER_REGION"), os.environ.get("TICKOVER_TOKEN_COMMAND")
SIGNED_FOR = ("execute-api", REGION) if REGION else ON_AWS and ON_AWS.groups()
SESSION, HTTP = Session(), urllib3.PoolManager(timeout=30)
# No repetition helps a report that is refused for its content. This code is reported instead.
REFUSED = {("complete", 413): "output_too_large", ("complete", 400): "output_refused"}
REFUSED |= {("fail", 413): "error_refused", ("fail", 400): "error_refused"}
Json = dict[str, Any]
Handler = Callable[[Json, threading.Event], Any]  # gets a task, and an event that is set when it should stop


@cache
def token() -> str:
    return subprocess.run(TOKEN_COMMAND, shell=True, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def send(path: str, body: Json) -> tuple[int, Json]:
    request = AWSRequest("POST", API + path, {"Content-Type": "application/json"}, json.dumps(body))
    if TOKEN_COMMAND:
        request.headers["Authorization"] = f"Bearer {token()}"
    elif SIGNED_FOR:
        SigV4Auth(SESSION.get_credentials(), *SIGNED_FOR).add_auth(request)
    answer = HTTP.request("POST", API + path, request.data, headers=dict(request.headers), retries=False)
    return answer.status, answer.json()


def call(path: str, body: Json) -> tuple[int, Json]:
    """The answer's status and content. Without an answer: 503 and the reason."""
    try:
        status, answer = send(path, body)
        if status == 401 and TOKEN_COMMAND:  # The token has expired. Another one is tried once.
            token.cache_clear()
            return send(path, body)
        return status, answer
    except Exception as error:  # No answer, no JSON, or no credentials at this moment.
        return 503, {"detail": str(error)}


def report(task: Json, what: str, **body: Any) -> bool:
    """Whether the handler may continue: not if the lease is lost or a cancellation is requested."""
    for _ in range(30):
        status, answer = call(f"tasks/{task['id']}/{what}", {"lease": task["lease"], **body})
        print(what, task["id"], status, answer.get("detail", ""), flush=True)
        code, error = REFUSED.get((what, status)), body.get("error", {})
        if code and code != error.get("code"):
            plain = {"code": code, "message": text(answer.get("detail", "")), "retryable": error.get("retryable", True)}
            return report(task, "fail", error=plain)
        if status < 500 and status != 429:
            return status == 200 and not answer.get("cancel_requested")
        time.sleep(1)
    return True


def text(value: Any) -> str:
    """A text that the API takes: not too long, and without halves of characters."""
    return str(value)[:100_000].encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def told(read: Callable[[], Any], is_usable: Callable[[Any], bool], other: Any) -> Any:
    """What an exception says about itself, if it can be used: its properties and its `__str__` may fail."""
    with suppress(Exception):
        value = read()
        return value if is_usable(value) else other
    return other


def failure(error: Any) -> Json:
    is_code = lambda value: isinstance(value, (int, str)) and 1 <= len(str(value)) <= 64
    code = told(lambda: error.code, is_code, type(error).__name__)
    retryable = told(lambda: error.retryable, lambda value: isinstance(value, bool), True)
    return {"code": text(code), "message": told(lambda: text(error), bool, ""), "retryable": retryable}


def alive(task: Json, **values: Any) -> bool:
    """A handler's sign of life, for its heartbeat timeout. `progress`, from 0 to 1, and `details` are for its next
    attempt. Whether it may continue."""
    return report(task, "heartbeat", **values)


def run(task: Json, handlers: dict[str, Handler], lease_seconds: int) -> None:
    stop = threading.Event()
    with ThreadPoolExecutor() as pool:
        running = pool.submit(lambda: json.dumps(handlers[task["kind"]](task, stop)))
        while not stop.is_set() and not wait([running], lease_seconds / 3).done:
            if not report(task, "heartbeat", worker_only=True):  # It says nothing about the handler, which may hang.
                stop.set()
    if stop.is_set():
        report(task, "release")  # This ends a cancelled task. It is refused if the lease is lost.
    elif (error := running.exception()) is not None:
        report(task, "fail", error=failure(error))
    else:
        report(task, "complete", output=json.loads(running.result()))


def work(queue: str, handlers: dict[str, Handler], lease_seconds: int = 60) -> None:
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    claim = {"worker": f"python-{os.getpid()}", "wait": "5s", "lease": f"{lease_seconds}s"}
    while not stopping.is_set():
        status, answer = call(f"queues/{queue}/claim", claim)
        for task in answer.get("tasks", []):
            report(task, "release") if stopping.is_set() else run(task, handlers, lease_seconds)
        if status in (404, 429) or status >= 500:  # 404: a queue exists after its first task.
            print("claim", queue, status, answer.get("detail", ""), flush=True)
            stopping.wait(1)
        elif status != 200:
            sys.exit(f"claim {queue} {status} {answer}")


if __name__ == "__main__":
    work(sys.argv[1], {"welcome": lambda task, stop: {"sent": task["input"]["to"]}})
