"""scripts/images: the content of its images, and that the programs run in them."""
import json
import os
import pathlib
import shutil
import subprocess
import tarfile
import unittest

from support import MUSTER, SOURCE, MusterTest


class SettingsTest(MusterTest):
    def test_an_image_of_this_machine_has_the_settings_of_a_compiled_one(self):
        subprocess.run([SOURCE / "deploy" / "images" / "layout", self.dir / "layout", "/bin/true"], check=True, timeout=100)
        blobs = self.dir / "layout" / "blobs" / "sha256"
        reference, = json.loads((self.dir / "layout" / "index.json").read_text())["manifests"]
        manifest = json.loads((blobs / reference["digest"].removeprefix("sha256:")).read_text())
        settings = json.loads((blobs / manifest["config"]["digest"].removeprefix("sha256:")).read_text())["config"]
        self.assertEqual(settings.pop("Entrypoint"), ["/usr/local/bin/true"])
        for name, program in (("muster", "muster"), ("muster-trainer", "muster-trainer"), ("muster-vertex", "muster")):
            text = (SOURCE / "deploy" / "images" / f"{name}.Containerfile").read_text().partition("FROM scratch\n")[2]
            stage = dict(line.split(" ", 1) for line in text.splitlines())
            self.assertEqual(json.loads(stage["ENTRYPOINT"]), [f"/usr/local/bin/{program}"])
            self.assertEqual({"Env": stage["ENV"].split(), "User": stage["USER"], "WorkingDir": stage["WORKDIR"]}, settings)


class ImageTest(MusterTest):
    def setUp(self):
        super().setUp()
        if shutil.which("buildah") is None:
            self.skipTest("buildah is not installed")
        if os.geteuid() != 0:
            self.skipTest("needs root to look into an image")
        settings = self.write("storage.conf", f'[storage]\ndriver = "vfs"\ngraphroot = "{self.dir}/images"\nrunroot = "{self.dir}/run"\n')
        self.env.update(CONTAINERS_STORAGE_CONF=str(settings), TMPDIR=str(self.dir))

    def build(self, *options, check=True):
        result = subprocess.run([SOURCE / "scripts" / "images", *map(str, options)], cwd=self.dir, env=self.env, capture_output=True,
                                text=True, timeout=170)
        if result.returncode != 0 and "operation not permitted" in result.stderr.lower():
            self.skipTest(f"buildah may not work here: {result.stderr.strip().splitlines()[-1]}")
        if check:
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result

    def unpack(self, archive):
        """Returns the image's settings, and the folder with its files."""
        root = self.dir / "root"
        with tarfile.open(archive) as image:
            manifest, = json.load(image.extractfile("manifest.json"))
            settings = json.load(image.extractfile(manifest["Config"]))["config"]
            for name in manifest["Layers"]:
                with tarfile.open(fileobj=image.extractfile(name)) as layer:
                    layer.extractall(root)
        self.assertIn("docker.io/library/muster:7", manifest["RepoTags"])
        return settings, root

    def call(self, root, *args):
        """Runs the program in the image: with its files and its user, without this machine's files."""
        command = ["/usr/sbin/chroot", "--userspec=65532:65532", root, "/usr/local/bin/muster", *args]
        return subprocess.run(command, env={"PATH": "/usr/local/bin", "HOME": "/tmp"}, capture_output=True, text=True, timeout=60)

    def test_the_program_runs_in_its_image(self):
        self.build("--here", pathlib.Path(MUSTER).parent, "--tag", "7", "--to", "out", "muster")
        settings, root = self.unpack(self.dir / "out" / "muster.tar")
        self.assertEqual((settings["User"], settings["Entrypoint"], settings["WorkingDir"]),
                         ("65532:65532", ["/usr/local/bin/muster"], "/tmp"))
        self.assertEqual(settings["Env"], ["PATH=/usr/local/bin", "HOME=/tmp"])

        self.assertEqual(self.call(root, "--version").stdout, self.muster("--version").stdout)
        self.assertEqual(self.call(root, "operator", "install", "--dry-run", "--no-webhook").stdout,
                         self.muster("operator", "install", "--dry-run", "--no-webhook").stdout)
        # libcurl, which is loaded at run time, is present with its dependencies: the error is that of a refused connection.
        refused = self.call(root, "data", "fetch", "mnist", "--to", "/tmp/mnist", "--from", "http://127.0.0.1:1")
        self.assertRegex(refused.stderr, "(?i)connect")

        # No shell, no setuid programs, and the licenses of the libraries.
        files = [path for path in root.rglob("*") if path.is_file()]
        self.assertEqual([path for path in files if path.name in ("sh", "bash", "su") or path.stat().st_mode & 0o6000], [])
        self.assertTrue((root / "usr/share/doc/libc6/copyright").exists())
        self.assertRegex((root / "usr/share/muster/packages").read_text(), r"(?m)^libcurl4 \S+$")
        self.assertLess(sum(path.stat().st_size for path in files), 100 << 20)

    def test_mistakes(self):
        for options, complaint in ((["--here"], "usage"), (["nothing"], "usage"), (["--what", "muster"], "usage"),
                                   (["--here", "/nowhere", "muster"], "/nowhere"), (["--here", self.dir, "muster"], "muster")):
            refused = self.build(*options, check=False)
            self.assertNotEqual(refused.returncode, 0, options)
            self.assertIn(complaint, refused.stderr, options)


if __name__ == "__main__":
    unittest.main()
