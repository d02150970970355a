"""gunicorn's settings: a worker knows its number, which no other worker of the server ever has."""

import os


def post_fork(server, worker):
    os.environ["WORKER_NUMBER"] = str(worker.age)
