"""The Python environments of the tests, which tests/venv/install makes."""
import os
import pathlib

from support import SOURCE

ESTIMATOR = "tensorflow-2.15"  # the last TensorFlow with tf.estimator
NEWEST = "tensorflow-2.21"


def venv(test, name):
    """Returns the folder of an environment. Skips the test if it is not installed."""
    link = SOURCE / "build" / f"venv-{name}"
    if not (link / "complete").exists():
        test.skipTest(f"{name} is not installed; tests/venv/install needs the Python package index")
    return pathlib.Path(os.path.realpath(link))


def python_first(environment, folder):
    """Returns `environment` with `python3` of a virtual environment, and without TensorFlow's notes on this machine's CPU."""
    return {**environment, "PATH": f"{folder}/bin:{environment['PATH']}", "TF_CPP_MIN_LOG_LEVEL": "1"}
