"""The program of the part on "vanilla" distributed TensorFlow: the cluster comes from flags."""
import argparse

import tensorflow.compat.v1 as tf

from model import train

parser = argparse.ArgumentParser()
parser.add_argument("--ps_hosts", required=True)
parser.add_argument("--worker_hosts", required=True)
parser.add_argument("--job_name", required=True)
parser.add_argument("--task_index", type=int, required=True)
flags = parser.parse_args()

tf.disable_eager_execution()
cluster = tf.train.ClusterSpec({"worker": flags.worker_hosts.split(","), "ps": flags.ps_hosts.split(",")})
server = tf.train.Server(cluster, job_name=flags.job_name, task_index=flags.task_index)
if flags.job_name == "ps":
    server.join()
train(server, cluster, flags.job_name, flags.task_index, is_chief=flags.task_index == 0)
