"""The Google Cloud Storage of our tests, checked by Google's own client (npm's @google-cloud/storage)."""
import os
import subprocess
import unittest

from support import SOURCE, GsServer


class GsServerTest(unittest.TestCase):
    def test_the_official_client_accepts_the_server(self):
        modules = SOURCE / "build" / "npm" / "node_modules"
        if not (modules / "@google-cloud" / "storage").exists():
            self.skipTest(f"no @google-cloud/storage in {modules}; scripts/test installs it")
        server = GsServer(self)
        env = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        result = subprocess.run(["node", SOURCE / "tests" / "e2e" / "gs_client.mjs", server.address],
                                env=dict(env, NODE_PATH=str(modules)), capture_output=True, text=True, timeout=100)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout, "all is well\n")


if __name__ == "__main__":
    unittest.main()
