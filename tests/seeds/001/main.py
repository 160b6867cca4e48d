"""The page's program: everything about the cluster comes from TF_CONFIG."""
import json
import os

import tensorflow.compat.v1 as tf

from model import train

tf.disable_eager_execution()

# Grab the TF_CONFIG environment variable
tf_config_json = os.environ.get("TF_CONFIG", "{}")

# Deserialize to a python object
tf_config = json.loads(tf_config_json)

# Grab the cluster specification from tf_config and create a new tf.train.ClusterSpec instance with it
cluster_spec = tf_config.get("cluster", {})
cluster_spec_object = tf.train.ClusterSpec(cluster_spec)

# Grab the task assigned to this specific process from the config
task = tf_config.get("task", {})
job_name = task["type"]
task_id = task["index"]

# Configure the TensorFlow server
server_def = tf.train.ServerDef(
    cluster=cluster_spec_object.as_cluster_def(),
    protocol="grpc",
    job_name=job_name,
    task_index=task_id)
server = tf.train.Server(server_def)

# checking if this process is the chief (also called master)
is_chief = (job_name == 'master')

# If this process has been assigned a parameter server task, we just join the server and wait.
if job_name == 'ps':
    server.join()

train(server, cluster_spec_object, job_name, task_id, is_chief)
