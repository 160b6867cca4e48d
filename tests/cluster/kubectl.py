"""kubectl as tests call it."""
import json
import os
import subprocess


class Kubectl:
    """Called with arguments, runs kubectl with the user of the kubeconfig. Returns the CompletedProcess with text output."""

    def __init__(self, program, kubeconfig, namespace="default"):
        self._program = program
        self._kubeconfig = kubeconfig
        self._namespace = namespace

    def __call__(self, *arguments, check=True, stdin=None, timeout=60):
        env = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        # Its discovery cache is beside the kubeconfig.
        env.update(KUBECONFIG=str(self._kubeconfig), HOME=str(self._kubeconfig.parent))
        result = subprocess.run([self._program, f"--namespace={self._namespace}", *map(str, arguments)], input=stdin or "",
                                capture_output=True, text=True, timeout=timeout, env=env)
        if check and result.returncode != 0:
            raise RuntimeError(f"kubectl {' '.join(map(str, arguments))} exited {result.returncode}\n"
                               f"{result.stdout}\n{result.stderr}")
        return result

    def get(self, *arguments):
        """Returns the output of `kubectl get` as JSON."""
        return json.loads(self("get", *arguments, "--output=json").stdout)

    def raw(self, path):
        """Returns the server's response to a GET."""
        return json.loads(self("get", f"--raw={path}").stdout)

    def apply(self, *objects):
        """Applies objects given as dicts."""
        return self("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})).stdout
