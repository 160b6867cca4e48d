"""The Vertex AI of our tests, checked by Google's own clients (npm's @google-cloud/aiplatform and @google-cloud/logging)."""
import os
import subprocess
import unittest

from support import SOURCE, GsServer


class VertexApiTest(unittest.TestCase):
    def test_the_official_clients_accept_the_server(self):
        modules = SOURCE / "build" / "npm" / "node_modules"
        for package in ("aiplatform", "logging"):
            if not (modules / "@google-cloud" / package).exists():
                self.skipTest(f"no @google-cloud/{package} in {modules}; scripts/test installs it")
        server = GsServer(self, auth=True, jobsPerPage=4, entriesPerPage=2)
        self.assertTrue(server.ask("vertex")["schema"])
        token = server.ask("token")["access_token"]
        env = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        result = subprocess.run(["node", SOURCE / "tests" / "e2e" / "vertex_client.mjs", server.address + "/", token],
                                env=dict(env, NODE_PATH=str(modules)), capture_output=True, text=True, timeout=150)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout, "all is well\n")


if __name__ == "__main__":
    unittest.main()
