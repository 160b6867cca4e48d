"""--image-repository: Muster's own images are made of the installed programs and pushed to a registry, a real one."""
import gzip
import hashlib
import io
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tarfile
import unittest
import urllib.error
import urllib.request

import storages
from support import MUSTER, MusterTest, is_alive, wait_until
from vertex_support import GoogleTest

TRAINING = "name: t\nroles: {worker: {replicas: 2}}\ntrain: {model: mlp, steps: 1, data: {format: synthetic}}\nmodel_dir: gs://b/x\n"
OWN = "name: own\nimage: mine:1\nroles: {worker: {command: 'true'}}\n"
# A cluster that does not exist: images are pushed before it is needed.
KUBECONFIG = """
    {apiVersion: v1, kind: Config, current-context: c, users: [{name: u, user: {token: x}}],
     clusters: [{name: c, cluster: {server: "https://127.0.0.1:9"}}], contexts: [{name: c, context: {cluster: c, user: u}}]}
    """
HASH = "$2b$05$KRDRTF9Dz9OTMO5R8FSldeY.rl1nFZWuWoog832ZqhEW1RENkhqoK"  # bcrypt of hunter22
ACCEPT = ("application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json")


def prepare(test, *tools):
    """Gives the test an installation of its own, whose trainer is a small program, and a PATH with `tools` only."""
    test.bin = test.dir / "installed"
    test.bin.mkdir()
    shutil.copy(MUSTER, test.bin / "muster")
    shutil.copy("/bin/true", test.bin / "muster-trainer")
    test.tools = test.dir / "tools"
    test.tools.mkdir()
    for name in ("bash", "awk", "basename", "cat", "cut", "dirname", "dpkg", "dpkg-query", "grep", "install", "ldd", "mkdir", "mv",
                 "printf", "realpath", "rm", "sed", "sha256sum", "sort", "stat", "strip", "tar", "uname", "xargs"):
        (test.tools / name).symlink_to(shutil.which(name))
    for name in tools:
        found = shutil.which(name) if name != "skopeo" else f"{storages.built(test, 'skopeo')}/usr/bin/skopeo"
        if found is None:
            test.skipTest(f"{name} is not installed")
        (test.tools / name).symlink_to(found)
    settings = test.write("storage.conf", f'[storage]\ndriver = "vfs"\ngraphroot = "{test.dir}/images"\nrunroot = "{test.dir}/run"\n')
    test.env.update(PATH=str(test.tools), KUBECONFIG=str(test.write("kubeconfig", KUBECONFIG)), CONTAINERS_STORAGE_CONF=str(settings),
                    REGISTRY_AUTH_FILE=str(test.write("auth.json", "{}")))


def call(test, *args, **kwargs):
    return subprocess.run([test.bin / "muster", *map(str, args)], env=test.env, cwd=test.dir, capture_output=True, text=True, timeout=170,
                          **kwargs)


def fetch(registry, path):
    """Returns the body of a request to the registry, or None if it has no such object."""
    request = urllib.request.Request(f"http://{registry}/v2/{path}", headers={"Accept": ", ".join(ACCEPT)})
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30) as response:
            return response.read()
    except urllib.error.HTTPError as error:
        if error.code != 404:
            raise
        return None


class RegistryTest(MusterTest):
    def version(self):
        return call(self, "--version").stdout.split()[-1]

    def image(self, registry, name):
        """Returns the settings and the files of an image, once every blob of it has been checked."""
        manifest = json.loads(fetch(registry, f"ml/{name}/manifests/{self.version()}"))
        blobs = []
        for part in (manifest["config"], *manifest["layers"]):
            blob = fetch(registry, f"ml/{name}/blobs/{part['digest']}")
            self.assertEqual("sha256:" + hashlib.sha256(blob).hexdigest(), part["digest"])
            self.assertEqual(len(blob), part["size"])
            blobs.append(blob)
        config, layer = json.loads(blobs[0]), gzip.decompress(blobs[1])
        self.assertEqual(config["rootfs"]["diff_ids"], ["sha256:" + hashlib.sha256(layer).hexdigest()])
        with tarfile.open(fileobj=io.BytesIO(layer)) as files:
            return config["config"], {entry.name.removeprefix("./"): entry for entry in files}

    def fake(self, script):
        """Makes a skopeo of a shell script."""
        (self.tools / "skopeo").write_text(f"#!/bin/sh\n{script}\n")
        (self.tools / "skopeo").chmod(0o755)

    def assert_nothing_left(self):
        self.assertEqual([path.name for path in pathlib.Path(self.env["MUSTER_HOME"]).glob("image-*")], [])

    def install(self, registry, *options):
        """Runs an installation that needs the cluster only after the images."""
        return call(self, "operator", "install", "--no-webhook", "--image-repository", f"{registry}/ml", *options)

    def check_push(self):
        registry = storages.use_registry(self)
        installed = self.install(registry)
        if "operation not permitted" in installed.stderr.lower():
            self.skipTest(f"buildah may not work here: {installed.stderr.strip().splitlines()[-1]}")
        for name in ("muster", "muster-trainer"):
            self.assertIn(f"pushed {registry}/ml/{name}:{self.version()}", installed.stderr)
        self.assertIn("127.0.0.1:9", installed.stderr)  # then the cluster is asked
        settings, files = self.image(registry, "muster")
        self.assertEqual((settings["User"], settings["Entrypoint"], settings["WorkingDir"], settings["Env"]),
                         ("65532:65532", ["/usr/local/bin/muster"], "/tmp", ["PATH=/usr/local/bin", "HOME=/tmp"]))
        self.assertEqual(files["usr/local/bin/muster"].mode & 0o777, 0o755)
        self.assertEqual({(entry.uid, entry.gid) for entry in files.values()}, {(0, 0)})
        self.assertEqual(files["tmp"].mode & 0o7777, 0o1777)
        self.assertTrue(any(name.endswith("libcurl.so.4") for name in files))
        self.assertEqual(self.image(registry, "muster-trainer")[0]["Entrypoint"], ["/usr/local/bin/muster-trainer"])
        again = self.install(registry)
        self.assertNotIn("push", again.stderr)
        self.assertIn("127.0.0.1:9", again.stderr)
        self.assert_nothing_left()

    def test_skopeo_pushes_once(self):
        prepare(self, "skopeo")
        self.check_push()

    def test_buildah_pushes_once(self):
        prepare(self, "buildah")
        if os.geteuid() != 0:
            self.skipTest("buildah needs root, or user namespaces")
        self.check_push()
        left = subprocess.run([shutil.which("buildah"), "images", "--quiet"], env=self.env, capture_output=True, text=True, check=True)
        self.assertEqual(left.stdout, "")

    def test_a_job_gets_the_image_that_it_needs(self):
        prepare(self, "skopeo")
        registry = storages.use_registry(self)
        job = self.write("job.yaml", TRAINING)
        options = ["--on", "kubernetes", "--image-repository", f"{registry}/ml"]
        plan = call(self, "run", job, "--dry-run", *options)
        self.assertIn(f"Would push {registry}/ml/muster-trainer:{self.version()}.", plan.stdout, plan.stderr)
        dry = self.install(registry, "--dry-run")
        self.assertIn(f'image: "{registry}/ml/muster:{self.version()}"', dry.stdout)
        self.assertIn(f"--trainer-image={registry}/ml/muster-trainer:{self.version()}", dry.stdout)
        self.assertIn(f"would push {registry}/ml/muster:{self.version()}", dry.stderr)
        self.assertNotIn("push", call(self, "run", self.write("own.yaml", OWN), "--dry-run", *options).stdout)
        self.assertEqual(json.loads(fetch(registry, "_catalog")), {"repositories": []})
        run = call(self, "run", job, *options)
        self.assertIn(f"pushed {registry}/ml/muster-trainer:{self.version()}", run.stderr)
        self.assertIn("127.0.0.1:9", run.stderr)
        self.assertEqual(json.loads(fetch(registry, "_catalog")), {"repositories": ["ml/muster-trainer"]})
        self.assertNotIn("push", call(self, "run", job, "--dry-run", *options).stdout)
        self.assert_nothing_left()

    def test_a_registry_that_refuses(self):
        prepare(self, "skopeo")
        registry = storages.use_registry(self, {"me": HASH})
        refused = self.install(registry)
        self.assertEqual(refused.returncode, 1)
        self.assertRegex(refused.stderr, f"cannot push {registry}/ml/muster:.* authentication required; log in with: skopeo login")
        self.assert_nothing_left()
        subprocess.run([self.tools / "skopeo", "login", "--tls-verify=false", "-u", "me", "-p", "hunter22", registry], env=self.env,
                       capture_output=True, check=True)
        self.assertIn(f"pushed {registry}/ml/muster:", self.install(registry).stderr)

    def test_a_registry_that_does_not_answer(self):
        prepare(self, "skopeo")
        refused = self.install("127.0.0.1:9")
        self.assertEqual(refused.returncode, 1)
        self.assertRegex(refused.stderr, "cannot reach the registry of 127.0.0.1:9/ml/muster:.*refused; check that 127.0.0.1:9 is")

    def test_without_a_tool_the_commands_are_printed(self):
        prepare(self)
        refused = call(self, "run", self.write("job.yaml", TRAINING), "--on", "kubernetes", "--image-repository", "r.example.com/ml")
        self.assertEqual(refused.returncode, 1)
        version = self.version()
        self.assertIn("neither skopeo nor buildah is in PATH; install one of them", refused.stderr)
        self.assertIn(f"  scripts/images muster-trainer\n  buildah push localhost/muster-trainer:{version} "
                      f"docker://r.example.com/ml/muster-trainer:{version}\n", refused.stderr)
        self.assertEqual(json.loads(call(self, "jobs", "--json").stdout), [])

    def test_mistakes(self):
        prepare(self)
        job = self.write("job.yaml", TRAINING)
        for options, complaint in ((["--image-repository", "https://r/ml", "--on", "kubernetes"], "without a scheme and a tag"),
                                   (["--image-repository", "reg/ml", "--on", "kubernetes"], "must be a registry"),
                                   (["--image-repository", "../ml", "--on", "kubernetes"], "must be a registry"),
                                   (["--image-repository", "r.example.com/ml"], "run from images: add --on kubernetes or --on vertex"),
                                   (["--image-repository", "r.example.com/ml", "--trainer-image", "x", "--on", "kubernetes"], "exclude each other"),
                                   (["--image-repository", "r.example.com/ml", "--image", "x", "--on", "vertex"], "exclude each other")):
            refused = call(self, "run", job, *options)
            self.assertEqual(refused.returncode, 2, refused.stderr)
            self.assertIn(complaint, refused.stderr)
        self.assertEqual(self.install("r.example.com", "--image", "x").returncode, 2)
        (self.bin / "muster-trainer").unlink()
        self.fake("exit 1")
        refused = call(self, "run", job, "--on", "kubernetes", "--image-repository", "r.example.com/ml")
        self.assertRegex(refused.stderr, "cannot make r.example.com/ml/muster-trainer:.*: muster-trainer is neither beside muster nor")

    def test_ctrl_c_ends_a_push(self):
        prepare(self)
        # Never finishes a push.
        self.fake(f"case $1 in copy) echo $$ >{self.dir}/pid; exec /bin/sleep 600 ;; *) exit 1 ;; esac")
        job = self.write("job.yaml", TRAINING)
        for number in (signal.SIGINT, signal.SIGTERM):
            with subprocess.Popen([self.bin / "muster", "run", job, "--on", "kubernetes", "--image-repository", "r.example.com/ml"],
                                  env=self.env, cwd=self.dir, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
                pid = int(wait_until(lambda: (self.dir / "pid").exists() and (self.dir / "pid").read_text(), "the push has begun"))
                run.send_signal(number)
                self.assertEqual(run.wait(30), -number)
            wait_until(lambda: not is_alive(pid), "the push has ended")
            self.assert_nothing_left()
            self.assertEqual(json.loads(call(self, "jobs", "--json").stdout), [])
            (self.dir / "pid").unlink()


class VertexRegistryTest(GoogleTest):
    def test_the_image_of_vertex_is_pushed_and_used(self):
        self.serve()
        prepare(self, "skopeo")
        registry = storages.use_registry(self)
        (self.work / "job.yaml").write_text(TRAINING)
        command = [self.bin / "muster", "run", "-d", "job.yaml", "--on", "vertex", "--bucket", "bucket", "--scale-tier", "STANDARD_1",
                   "--image-repository", f"{registry}/ml"]
        done = subprocess.run(command, env=self.env, cwd=self.work, capture_output=True, text=True, timeout=170)
        self.assertEqual(done.returncode, 0, done.stderr)
        version = call(self, "--version").stdout.split()[-1]
        reference = f"{registry}/ml/muster-vertex:{version}"
        self.assertIn(f"pushed {reference}", done.stderr)
        pools = self.vertex()["created"][0]["jobSpec"]["workerPoolSpecs"]
        self.assertEqual({pool["containerSpec"]["imageUri"] for pool in pools if pool}, {reference})
        self.assertIsNotNone(fetch(registry, f"ml/muster-vertex/manifests/{version}"))


if __name__ == "__main__":
    unittest.main()
