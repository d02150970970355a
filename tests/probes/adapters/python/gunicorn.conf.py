"""gunicorn's settings: gives each worker a number that no other worker of the server ever gets."""

import os


def post_fork(server, worker):
    os.environ["WORKER_NUMBER"] = str(worker.age)
