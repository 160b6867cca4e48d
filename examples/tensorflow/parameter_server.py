"""Trains with ParameterServerStrategy: the chief coordinates, evaluates and exports; workers and ps are servers."""
import argparse
import os

import tensorflow as tf

import data


def serve(cluster):
    """Runs a worker or a ps. It does not return: Muster ends it when the chief has ended."""
    tf.distribute.Server(cluster.cluster_spec(), job_name=cluster.task_type, task_index=cluster.task_id, protocol="grpc").join()


class Model(tf.Module):
    def __init__(self):
        super().__init__()
        random = tf.random.Generator.from_seed(1)
        self.hidden = tf.Variable(random.normal([data.FEATURES, 32], stddev=0.1), name="hidden")
        self.output = tf.Variable(random.normal([32, data.CLASSES], stddev=0.1), name="output")

    def logits(self, points):
        return tf.nn.relu(points @ tf.convert_to_tensor(self.hidden)) @ tf.convert_to_tensor(self.output)

    @tf.function(input_signature=[tf.TensorSpec([None, data.FEATURES], tf.float32)])
    def classify(self, points):
        return tf.argmax(self.logits(points), axis=1)


def train(cluster, flags):
    strategy = tf.distribute.ParameterServerStrategy(cluster)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        model = Model()
        step = tf.Variable(0, dtype=tf.int64)
    checkpoints = tf.train.CheckpointManager(tf.train.Checkpoint(model=model, step=step), flags.model_dir, max_to_keep=3)
    checkpoints.restore_or_initialize()

    def batches():
        return tf.data.Dataset.from_tensor_slices(data.points("train", 4000)).shuffle(4000).repeat().batch(32)

    @tf.function
    def train_step(iterator):
        def replica(points, classes):
            with tf.GradientTape() as tape:
                losses = tf.nn.sparse_softmax_cross_entropy_with_logits(classes, model.logits(points))
                loss = tf.reduce_mean(losses)
            for variable, gradient in zip(model.trainable_variables, tape.gradient(loss, model.trainable_variables)):
                variable.assign_sub(0.1 * gradient)
            step.assign_add(1)
            return loss

        return strategy.run(replica, args=next(iterator))

    iterator = iter(coordinator.create_per_worker_dataset(batches))
    while int(step) < flags.steps:
        begun = int(step)
        losses = [coordinator.schedule(train_step, args=(iterator,)) for _ in range(min(100, flags.steps - begun))]
        coordinator.join()  # raises the first error of a worker; a worker that restarts is waited for
        checkpoints.save(int(step))
        print(f"step {int(step)}, loss {float(losses[-1].fetch()):.4f}", flush=True)
    return model


def export(model, folder):
    """Writes a SavedModel whose variables are on this task."""
    local = Model()
    for variable, trained in zip(local.trainable_variables, model.trainable_variables):
        variable.assign(trained)
    tf.saved_model.save(local, folder, signatures=local.classify)
    return local


def main():
    flags = argparse.ArgumentParser()
    flags.add_argument("--model_dir", required=True)
    flags.add_argument("--steps", type=int, default=300)
    flags = flags.parse_args()

    cluster = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if cluster.task_type in ("worker", "ps"):
        serve(cluster)
    model = export(train(cluster, flags), os.path.join(flags.model_dir, "export"))
    points, classes = data.points("test", 1000)
    print(f"accuracy: {float(tf.reduce_mean(tf.cast(model.classify(points) == classes, tf.float32))):.4f}", flush=True)


if __name__ == "__main__":
    main()
