"""The cells of the notebook that `muster notebook` writes for a job. @JOB@ stands for the job."""
# %% [markdown]
# # @JOB@
#
# The metrics of this job. Run all cells again to get the points of a job that is still running.
# Muster never overwrites this file after you have changed it.

# %%
import json
import os
import subprocess

MUSTER = os.environ.get("MUSTER_PROGRAM", "muster")
JOB = os.environ.get("MUSTER_NOTEBOOK_JOB", "@JOB@")
TF_CONFIG = json.loads(os.environ.get("TF_CONFIG", "{}"))

print("job:", JOB)
print("model dir:", os.environ.get("MUSTER_MODEL_DIR", "none"))
for role, addresses in TF_CONFIG.get("cluster", {}).items():
    print(f"{role}:", addresses)


# %%
def read_metrics(job=JOB):
    """Returns the metrics of a job, which may still be running, as {name: [(step, value), …]}."""
    done = subprocess.run([MUSTER, "compare", "--json", "--points", job], capture_output=True, text=True)
    if done.stderr:
        print(done.stderr.strip())
    if done.returncode != 0:
        return {}
    # JSON has no NaN; null stands for it.
    return {name: [(step, float("nan") if value is None else value) for step, value, time in metric["points"]]
            for name, metric in json.loads(done.stdout)[0]["metrics"].items()}


metrics = read_metrics()
print(f"{'metric':30} {'points':>8} {'last step':>10} {'last':>12} {'min':>12} {'max':>12}" if metrics else "no metrics yet")
for name, points in metrics.items():
    values = [value for step, value in points if value == value] or [float("nan")]
    print(f"{name:30} {len(points):8} {points[-1][0]:10} {points[-1][1]:12.6g} {min(values):12.6g} {max(values):12.6g}")

# %%
from html import escape

from IPython.display import SVG, display

try:
    import matplotlib.pyplot as plt
except ImportError:  # drawn below without it
    plt = None


def thin(points, count=500):
    """Returns at most about 2 * count points, with the lowest and the highest value of each stretch."""
    stretch = max(1, len(points) // count)
    if stretch <= 2:
        return points
    kept = []
    for start in range(0, len(points), stretch):
        part = points[start:start + stretch]
        kept += sorted({min(part, key=lambda point: point[1]), max(part, key=lambda point: point[1])})
    return kept


def draw(name, points, width=640, height=240, margin=64):
    """Returns a curve as SVG, or None if it has no finite value."""
    points = thin([(step, value) for step, value in points if abs(value) < float("inf")])
    if not points:
        return None
    steps, values = zip(*points)
    low, high = min(values), max(values)

    def x(step):
        return margin + (width - 2 * margin) * (step - steps[0]) / max(1, steps[-1] - steps[0])

    def y(value):
        return height - 48 - (height - 96) * ((value - low) / (high - low) if high > low else 0.5)

    line = " ".join(f"{x(step):.1f},{y(value):.1f}" for step, value in points)
    dots = "".join(f'<circle cx="{x(step):.1f}" cy="{y(value):.1f}" r="2" fill="#1f77b4"/>' for step, value in points[:100])
    labels = [(margin, 24, "start", escape(name)), (margin, height - 20, "start", f"step {steps[0]}")]
    labels += [(margin - 10, y(value) + 4, "end", f"{value:.4g}") for value in sorted({low, high})]
    if steps[-1] > steps[0]:
        labels.append((width - margin, height - 20, "end", f"step {steps[-1]}"))
    return SVG(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">'
               f'<rect width="100%" height="100%" fill="white"/>'
               f'<path d="M{margin - 4},40 V{height - 40} H{width - margin}" fill="none" stroke="#999"/>'
               f'<polyline points="{line}" fill="none" stroke="#1f77b4" stroke-width="1.5"/>'
               + (dots if len(points) <= 100 else "")
               + "".join(f'<text x="{left}" y="{top:.0f}" text-anchor="{anchor}" font-size="12" font-family="sans-serif">{text}</text>'
                         for left, top, anchor, text in labels)
               + "</svg>")


if plt is not None and metrics:
    figure, axes = plt.subplots(len(metrics), 1, figsize=(8, 3 * len(metrics)), squeeze=False, constrained_layout=True)
    for axis, (name, points) in zip(axes[:, 0], metrics.items()):
        steps, values = zip(*points)
        axis.plot(steps, values, marker="." if len(points) <= 100 else None)
        axis.set_title(name)
        axis.set_xlabel("step")
        axis.grid(True)
    plt.show()
else:
    for name, points in metrics.items():
        curve = draw(name, points)
        if curve is not None:
            display(curve)
