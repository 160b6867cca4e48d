"""Softmax regression on MNIST with parameter servers, in the style of TensorFlow 1."""
import argparse
import gzip
import os

import numpy as np
import tensorflow.compat.v1 as tf


def read_idx(path, header):
    with gzip.open(path + ".gz") if os.path.exists(path + ".gz") else open(path, "rb") as file:
        return np.frombuffer(file.read(), np.uint8, offset=header)


def load(folder, split):
    """Returns the images, float32 [count, 784], and their digits."""
    images = read_idx(os.path.join(folder, f"{split}-images-idx3-ubyte"), 16).reshape(-1, 784)
    print(f"Extracting {folder}/{split}-images-idx3-ubyte.gz", flush=True)
    return images.astype(np.float32) / 255, read_idx(os.path.join(folder, f"{split}-labels-idx1-ubyte"), 8).astype(np.int64)


def train(flags, server, cluster):
    images, digits = load(flags.data, "train")
    with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device=f"/job:worker/task:{flags.task_index}")):
        x = tf.placeholder(tf.float32, [None, 784])
        y = tf.placeholder(tf.int64, [None])
        weights = tf.get_variable("weights", [784, 10], initializer=tf.zeros_initializer())
        bias = tf.get_variable("bias", [10], initializer=tf.zeros_initializer())
        logits = tf.matmul(x, weights) + bias
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        step = tf.train.get_or_create_global_step()
        train_op = tf.train.GradientDescentOptimizer(flags.learning_rate).minimize(loss, global_step=step)
        accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), y), tf.float32))

    random = np.random.default_rng(flags.task_index)
    filters = tf.ConfigProto(device_filters=["/job:ps", f"/job:worker/task:{flags.task_index}"])
    with tf.train.MonitoredTrainingSession(server.target, is_chief=flags.task_index == 0, config=filters) as session:
        at = 0
        while at < flags.steps:
            batch = random.integers(len(digits), size=32)
            _, at = session.run([train_op, step], {x: images[batch], y: digits[batch]})
        images, digits = load(flags.data, "t10k")
        print(f"MNIST accuracy: {session.run(accuracy, {x: images, y: digits}):.4f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--job_name", choices=["ps", "worker"], required=True)
    parser.add_argument("--task_index", type=int, required=True)
    parser.add_argument("--ps_hosts", required=True)
    parser.add_argument("--worker_hosts", required=True)
    parser.add_argument("--data", default="data/mnist")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--learning_rate", type=float, default=0.5)
    flags = parser.parse_args()

    tf.disable_eager_execution()
    cluster = tf.train.ClusterSpec({"ps": flags.ps_hosts.split(","), "worker": flags.worker_hosts.split(",")})
    server = tf.distribute.Server(cluster, job_name=flags.job_name, task_index=flags.task_index)
    if flags.job_name == "ps":
        server.join()
    else:
        train(flags, server, cluster)


if __name__ == "__main__":
    main()
