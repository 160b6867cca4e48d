"""Prints TF_CONFIG for one node: python TF_CONFIG.py <task_type> <task_index>"""
import argparse
import json

flags = argparse.ArgumentParser()
flags.add_argument("task_type")
flags.add_argument("task_index", type=int)
args = flags.parse_args()

cluster = {'master': ['instance-1:8000'],
           'ps': ['instance-2:8000'],
           'worker': ['instance-3:8000']}

TF_CONFIG = json.dumps(
    {'cluster': cluster,
     'task': {'type': args.task_type, 'index': args.task_index},
     'model_dir': 'gs://bucket/your/path',
     'environment': 'cloud'
     })
print(TF_CONFIG)
