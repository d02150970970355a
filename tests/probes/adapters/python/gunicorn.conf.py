"""gunicorn's settings: each worker gets a number that no other worker of the server ever has."""

import os


def post_fork(server, worker):
    os.environ["WORKER_NUMBER"] = str(worker.age)
