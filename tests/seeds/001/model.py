"""The model of the page: softmax regression on MNIST, its variables on the parameter servers."""
import gzip
import os

import numpy as np
import tensorflow.compat.v1 as tf

STEPS = 200


def read(name, header):
    path = os.path.join("data", "mnist", name)
    with gzip.open(path + ".gz") if os.path.exists(path + ".gz") else open(path, "rb") as file:
        return np.frombuffer(file.read(), np.uint8, offset=header)


def train(server, cluster, job_name, task_id, is_chief):
    images = read("train-images-idx3-ubyte", 16).reshape(-1, 784).astype(np.float32) / 255
    digits = read("train-labels-idx1-ubyte", 8).astype(np.int64)
    here = f"/job:{job_name}/task:{task_id}"
    with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device=here)):
        x = tf.placeholder(tf.float32, [None, 784])
        y = tf.placeholder(tf.int64, [None])
        weights = tf.get_variable("weights", [784, 10], initializer=tf.zeros_initializer())
        bias = tf.get_variable("bias", [10], initializer=tf.zeros_initializer())
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=tf.matmul(x, weights) + bias))
        step = tf.train.get_or_create_global_step()
        train_op = tf.train.GradientDescentOptimizer(0.5).minimize(loss, global_step=step)
    print(f"{job_name} {task_id}: weights on {weights.device}, loss on {loss.device}", flush=True)

    random = np.random.default_rng(task_id)
    filters = tf.ConfigProto(device_filters=["/job:ps", here])
    # Only the master creates the session, saves the model and writes summaries.
    with tf.train.MonitoredTrainingSession(server.target, is_chief=is_chief, config=filters,
                                           checkpoint_dir="model" if is_chief else None) as session:
        at = 0
        while at < STEPS:
            batch = random.integers(len(digits), size=32)
            _, at, value = session.run([train_op, step, loss], {x: images[batch], y: digits[batch]})
        print(f"{job_name} {task_id}: step {at}, loss {value:.4f}", flush=True)
