"""Trains with tf.estimator, evaluates while it trains, and exports the final model. Needs TensorFlow 2.15 or older.

The program has no settings for the cluster: tf.estimator reads TF_CONFIG, with the role of the task, the addresses of the
others and the model dir.
"""
import argparse

import tensorflow as tf

import data


def input_fn(split, count, batch_size, repeat=None):
    def dataset():
        return tf.data.Dataset.from_tensor_slices(({"x": points}, classes)).shuffle(count).repeat(repeat).batch(batch_size)

    points, classes = data.points(split, count)
    return dataset


def main():
    flags = argparse.ArgumentParser()
    flags.add_argument("--steps", type=int, default=300)
    flags = flags.parse_args()
    tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.INFO)

    columns = [tf.feature_column.numeric_column("x", shape=[data.FEATURES])]
    estimator = tf.estimator.DNNClassifier(
        hidden_units=[32], feature_columns=columns, n_classes=data.CLASSES, optimizer=lambda: tf.keras.optimizers.legacy.Adam(0.01),
        # By default worker i waits 5 * (i + 1) seconds before it joins.
        config=tf.estimator.RunConfig(save_checkpoints_steps=100, experimental_max_worker_delay_secs=1))
    serving = tf.estimator.export.build_parsing_serving_input_receiver_fn(
        tf.feature_column.make_parse_example_spec(columns))
    tf.estimator.train_and_evaluate(
        estimator, tf.estimator.TrainSpec(input_fn("train", 4000, 32), max_steps=flags.steps),
        tf.estimator.EvalSpec(input_fn("test", 1000, 100, repeat=1), steps=None, start_delay_secs=0, throttle_secs=1,
                              exporters=tf.estimator.FinalExporter("final", serving)))


if __name__ == "__main__":
    main()
