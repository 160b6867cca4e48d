"""Checks docs/migrating.md: it covers what the five tools have, and every command in it exists."""
import functools
import re
import shlex
import unittest

from support import SOURCE, MusterTest

# The commands, options and fields that the documentation of the replaced tools names.
NAMED = {
    "TF_CONFIG set by hand on VMs": ["cluster", "task", "model_dir", "environment", "TF_CONFIG.py", "experiment.py", "firewall", "bucket"],
    "TfJob on Kubernetes": ["replicaSpecs", "tfReplicaType", "replicas", "template", "tfPort", "IsDefaultPS", "RuntimeId", "tfImage", "tensorBoard",
                            "terminationPolicy", "ClusterSpec", "--ps_hosts", "--worker_hosts", "--job_name", "--task_index"],
    "Rendered cluster with Jupyter": ["tensorflow-cluster", "jupyter-service", "--config", "--out", "kubectl create", "forwarding-rules",
                                      "svc.cluster.local:8080"],
    "Kelda": ["kelda run", "kelda show", "kelda logs", "kelda stop", "--job_name", "--task_index", "--ps_hosts", "--worker_hosts"],
    "`lumi cloud gc`": ["--config", "--dataset", "--resume", "--bucket", "--job-id", "--region", "--scale-tier", "--master-type", "--worker-type",
                        "--worker-count", "--parameter-server-type", "--parameter-server-count", "--running", "--polling-interval",
                        "--train-folder", "--split", "--rebuild", "lumi_{job_id}"],
}


def sections():
    """Returns the table rows of each section, as (there, here)."""
    found = {}
    for part in re.split(r"^## ", (SOURCE / "docs/migrating.md").read_text(), flags=re.M)[1:]:
        title, body = part.split("\n", 1)
        rows = [line.strip("|").split(" | ") for line in body.splitlines() if line.startswith("| ") and not line.startswith("| there")]
        found[title] = [(row[0], row[1]) for row in rows]
    return found


class MigratingTest(MusterTest):
    @functools.lru_cache
    def help(self, *command):
        return self.muster(*command, "--help").stdout

    def test_everything_that_the_tools_have_is_listed(self):
        tables = sections()
        self.assertEqual(set(tables), set(NAMED))
        for title, names in NAMED.items():
            there = "\n".join(row[0] for row in tables[title])
            for name in names:
                self.assertIn(name, there, title)

    def test_every_command_exists(self):
        checked = 0
        for rows in sections().values():
            for _, here in rows:
                for text in re.findall(r"`([^`]*)`", here):
                    for command in re.findall(r"\bmuster ([a-z][^`)\"]*)", text):
                        self.check(shlex.split(command))
                        checked += 1
        self.assertGreater(checked, 30)

    def check(self, words):
        """Checks the verbs and the options of one command line against the help."""
        verbs = [words[0]]
        if words[0] in ("storage", "operator"):
            verbs.append(words[1])
        text = self.help(*verbs)
        for word in words[len(verbs):]:
            if word.startswith("-"):
                self.assertRegex(text, rf"(?<![\w-]){re.escape(word)}\b", f"muster {' '.join(words)}")


if __name__ == "__main__":
    unittest.main()
