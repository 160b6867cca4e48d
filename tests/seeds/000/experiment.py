"""An estimator and its experiment. Everything about the cluster comes from TF_CONFIG."""
import numpy as np
import tensorflow as tf


def model_fn(features, labels, mode):
    prediction = tf.squeeze(tf.compat.v1.layers.dense(features["x"], 1, name="linear"), axis=1)
    loss = tf.reduce_mean(tf.square(prediction - labels))
    train_op = tf.compat.v1.train.GradientDescentOptimizer(0.1).minimize(loss, tf.compat.v1.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, predictions=prediction, loss=loss, train_op=train_op)


def input_fn():
    x = np.random.default_rng(1).normal(size=[256, 4]).astype(np.float32)
    y = x @ np.float32([1, -2, 3, 0.5]) + 1
    return tf.data.Dataset.from_tensor_slices(({"x": x}, y)).repeat().batch(32)


def generate_experiment_fn():
    def experiment_fn(run_config):
        estimator = tf.estimator.Estimator(model_fn, config=run_config)
        return (estimator, tf.estimator.TrainSpec(input_fn, max_steps=200),
                tf.estimator.EvalSpec(input_fn, steps=5, start_delay_secs=0, throttle_secs=0))

    return experiment_fn


if __name__ == "__main__":
    tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.INFO)
    # Worker i waits 5 * (i + 1) seconds by default.
    tf.estimator.train_and_evaluate(*generate_experiment_fn()(tf.estimator.RunConfig(experimental_max_worker_delay_secs=1)))
