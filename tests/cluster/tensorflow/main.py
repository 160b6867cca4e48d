"""/app/main.py of the image: between-graph replication as in TensorFlow 1.x. It saves nothing, since the pods share no volume."""
import json
import os

import numpy as np
import tensorflow.compat.v1 as tf

from keras.datasets.mnist import load_data

tf.disable_eager_execution()
config = json.loads(os.environ["TF_CONFIG"])
cluster, role, index = tf.train.ClusterSpec(config["cluster"]), config["task"]["type"], config["task"]["index"]
server = tf.train.Server(cluster, job_name=role, task_index=index)
(images, digits), _ = load_data()
images = images.reshape(-1, 784).astype(np.float32) / 255
here = f"/job:{role}/task:{index}"
with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device=here)):
    x, y = tf.placeholder(tf.float32, [None, 784]), tf.placeholder(tf.int64, [None])
    weights = tf.get_variable("weights", [784, 10], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=tf.matmul(x, weights)))
    step = tf.train.get_or_create_global_step()
    update = tf.train.GradientDescentOptimizer(0.5).minimize(loss, global_step=step)
print(f"{role} {index}: weights on {weights.device}", flush=True)
filters = tf.ConfigProto(device_filters=["/job:ps", here])
with tf.train.MonitoredTrainingSession(server.target, is_chief=role == "master", config=filters) as session:
    at = 0
    while at < 200:
        _, at, value = session.run([update, step, loss], {x: images, y: digits})
print(f"{role} {index}: step {at}, loss {value:.4f}", flush=True)
