"""The notebook of the workshop: a session on a server, with parts of the graph on others. Takes the cluster as JSON."""
import json
import sys

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
cluster = json.loads(sys.argv[1])
with tf.device("/job:ps/task:1"):
    weights = tf.Variable([1.0, 2.0])
parts = []
for task in range(len(cluster["workers"])):
    with tf.device(f"/job:workers/task:{task}"):
        parts.append(tf.reduce_sum(weights * (task + 1)))
with tf.Session("grpc://" + cluster["workers"][0]) as session:
    session.run(tf.global_variables_initializer())
    print("parts", session.run(parts))
