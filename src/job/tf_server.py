"""Runs the TensorFlow server of one task of a cluster, which waits for sessions until it is killed.

The environment variable TF_CONFIG describes the cluster and the task. Runs with TensorFlow 1.x and
2.x, on Python 2.7 and 3.
"""
from __future__ import print_function

import json
import os
import signal
import sys


def fail(message):
    print("error: " + message, file=sys.stderr)
    sys.exit(1)


def read_task():
    """Returns the cluster, the job name and the task index that TF_CONFIG contains."""
    text = os.environ.get("TF_CONFIG", "")
    try:
        config = json.loads(text)
        cluster = config["cluster"]
        job, index = str(config["task"]["type"]), int(config["task"]["index"])
        known = 0 <= index < len(cluster[job])
    except (ValueError, KeyError, TypeError) as error:
        fail("TF_CONFIG must contain 'cluster' and 'task': %r: %s" % (error, text))
    if not known:
        fail("TF_CONFIG: the cluster has no task %s:%d: %s" % (job, index, text))
    return cluster, job, index


def import_tensorflow():
    try:
        import tensorflow
    except ImportError as error:
        fail("cannot import TensorFlow (%s); install it with: %s -m pip install tensorflow"
             % (error, sys.executable))
    # TensorFlow 2 keeps the server of TensorFlow 1 in compat.v1, which 1.12 and older do not have.
    return getattr(getattr(tensorflow, "compat", None), "v1", tensorflow)


def main():
    cluster, job, index = read_task()
    # Process 1 of a container ignores signals without a handler. The handler must not wait for the
    # interpreter, so the main thread sleeps in pause() instead of Server.join().
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _: os._exit(128 + received))
    tf = import_tensorflow()
    server = tf.train.Server(tf.train.ClusterSpec(cluster), job_name=job, task_index=index)
    print("serving %s:%d at %s" % (job, index, cluster[job][index]))
    sys.stdout.flush()
    while server:
        signal.pause()


if __name__ == "__main__":
    main()
