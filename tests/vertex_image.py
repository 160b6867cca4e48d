"""The files of an image, in which the command line of a container runs as on Vertex AI: by itself, with the buckets below /gcs, and without Muster."""
import os
import shlex
import shutil
import subprocess

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def _make_root(test, name):
    root = test.dir / name
    for folder in ("dev", "etc", "gcs", "proc", "tmp"):
        (root / folder).mkdir(parents=True)
    return root


class Image:
    """Runs commands with another root folder, in their own mount namespace."""

    def __init__(self, root, mounts):
        self.gcs = root / "gcs"
        self._root = root
        self._mounts = [["mount", "--rbind", f"/{name}", root / name] for name in ("dev", "proc")] + mounts

    def start(self, line, env, **options):
        """Starts the command line of a container, with options of Popen."""
        script = " && ".join(shlex.join(map(str, mount)) for mount in self._mounts)
        command = ["unshare", "--mount", "sh", "-c", f"{script} && exec /usr/sbin/chroot {shlex.quote(str(self._root))} \"$@\"", "sh", *line]
        return subprocess.Popen(command, cwd="/", env={"PATH": _PATH, **env}, **options)


def _check(test, image, *command):
    """Skips the test if the command does not run in the image."""
    if os.geteuid() != 0:
        test.skipTest("containers need root: mounts and chroot")
    tried = image.start(command, {}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    out, _ = tried.communicate(timeout=60)
    if tried.returncode != 0:
        test.skipTest(f"containers cannot run here: {out.strip()}")
    return image


def python_image(test, without=()):
    """Returns an image like python:3: this machine's /usr, without /usr/local and some programs."""
    root = _make_root(test, "python-image")
    (root / "usr").mkdir()
    for link in ("bin", "lib", "lib64", "sbin"):
        (root / link).symlink_to(f"usr/{link}")
    mounts = [["mount", "--bind", "/usr", root / "usr"], ["mount", "-t", "tmpfs", "tmpfs", root / "usr/local"]]
    mounts += [["mount", "--bind", "/dev/null", root / "usr/bin" / name] for name in without]
    return _check(test, Image(root, mounts), "python3", "-c", "")


def busybox_image(test):
    """Returns an image like busybox, with a single program."""
    busybox = shutil.which("busybox")
    if busybox is None:
        test.skipTest("busybox-static is not installed")
    root = _make_root(test, "busybox-image")
    (root / "bin").mkdir()
    shutil.copy(busybox, root / "bin/busybox")
    return _check(test, Image(root, []), "/bin/busybox", "--install", "-s", "/bin")
