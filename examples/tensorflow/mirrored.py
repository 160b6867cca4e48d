"""Trains with MultiWorkerMirroredStrategy: every worker has all variables, and the gradients are all-reduced."""
import argparse
import os

import tensorflow as tf

import data


def main():
    flags = argparse.ArgumentParser()
    flags.add_argument("--model_dir", required=True)
    flags.add_argument("--steps", type=int, default=100)
    flags = flags.parse_args()

    strategy = tf.distribute.MultiWorkerMirroredStrategy()  # waits for the other workers
    is_chief = strategy.cluster_resolver.task_id == 0
    with strategy.scope():
        weights = tf.Variable(tf.zeros([data.FEATURES, data.CLASSES]))
        step = tf.Variable(0, dtype=tf.int64)
    # Saving reads the variables of all workers, so that every worker calls it; only the first one's files are kept.
    folder = flags.model_dir if is_chief else os.path.join(flags.model_dir, f"unused-{strategy.cluster_resolver.task_id}")
    checkpoint = tf.train.Checkpoint(weights=weights, step=step)
    checkpoints = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=3)
    checkpoint.restore(tf.train.latest_checkpoint(flags.model_dir))
    print(f"begins at step {step.numpy()} of {flags.steps}", flush=True)

    dataset = tf.data.Dataset.from_tensor_slices(data.points("train", 4000)).repeat().batch(64)
    iterator = iter(strategy.experimental_distribute_dataset(dataset))

    @tf.function
    def train_step(iterator):
        def replica(points, classes):
            with tf.GradientTape() as tape:
                losses = tf.nn.sparse_softmax_cross_entropy_with_logits(classes, points @ weights)
                loss = tf.reduce_mean(losses)
            gradient = tf.distribute.get_replica_context().all_reduce("MEAN", tape.gradient(loss, weights))
            weights.assign_sub(0.1 * gradient)
            step.assign_add(1)
            return loss

        return strategy.reduce("MEAN", strategy.run(replica, args=next(iterator)), axis=None)

    while step.numpy() < flags.steps:
        loss = train_step(iterator)
        if step.numpy() % 20 == 0:
            checkpoints.save(step.numpy())
            print(f"step {step.numpy()}, loss {float(loss):.4f}", flush=True)

    points, classes = data.points("test", 1000)
    print(f"accuracy: {float(tf.reduce_mean(tf.cast(tf.argmax(points @ weights, 1) == classes, tf.float32))):.4f}", flush=True)


if __name__ == "__main__":
    main()
