"""Images for containers, made of this machine's own programs and the libraries that they need."""
import contextlib
import hashlib
import io
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import tarfile
import tempfile
import time

# Programs that scripts in pods may call.
TOOLS = ["sh", "bash", "cat", "date", "echo", "env", "false", "getent", "grep", "hostname", "id", "ls", "mkdir", "sleep", "touch",
         "true"]
_FILES = {"etc/passwd": "root:x:0:0:root:/root:/bin/sh\nmuster:x:1000:1000::/home/muster:/bin/sh\n",
          "etc/group": "root:x:0:\nmuster:x:1000:\n", "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n"}
_FOLDERS = {"tmp": 0o1777, "run": 0o755, "root": 0o700, "home/muster": 0o777}
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
# Symbolic links of Debian's root: name, target.
_LINKS = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"}


def _libraries(program):
    """Returns the paths of a program's libraries and of its dynamic loader, as the program names them."""
    said = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    return re.findall(r"(/\S+) \(0x", said)


def _inside(path):
    """Returns the location of `path` in the image, relative to its root."""
    path = os.path.normpath(path).lstrip("/")
    first, _, rest = path.partition("/")
    return f"{_LINKS[first]}/{rest}" if first in _LINKS else path


def files_of(programs):
    """Returns {path in the image: file here} for programs, given in the same form, and their libraries."""
    files = {_inside(path): pathlib.Path(program).resolve() for path, program in programs.items()}
    for program in set(files.values()):
        files.update({_inside(library): pathlib.Path(library).resolve() for library in _libraries(program)})
    return files


def tools():
    """Returns the TOOLS that this machine has, with their libraries."""
    found = {name: shutil.which(name, path="/usr/bin:/bin") for name in TOOLS}
    return files_of({f"usr/bin/{name}": path for name, path in found.items() if path})


def _entry(name, mode, kind=tarfile.REGTYPE, size=0, target=""):
    entry = tarfile.TarInfo(name)
    entry.mode, entry.type, entry.size, entry.linkname = mode, kind, size, target
    return entry


def _add_folders(layer, names):
    """Adds the folders of `names` and their parents to the layer, parents first."""
    modes = dict(_FOLDERS)
    for name in [*names, *_FOLDERS]:
        for parent in map(str, pathlib.PurePath(name).parents):
            if parent != ".":
                modes.setdefault(parent, 0o755)
    for name in sorted(modes):
        layer.addfile(_entry(name, modes[name], tarfile.DIRTYPE))


def _write_layer(output, files, root):
    with tarfile.open(fileobj=output, mode="w") as layer:
        _add_folders(layer, [*files, *(list(_FILES) + list(_LINKS.values()) + ["usr/lib64/_"] if root else [])])
        if root:
            for name, target in _LINKS.items():
                layer.addfile(_entry(name, 0o777, tarfile.SYMTYPE, target=target))
            for name, text in _FILES.items():
                layer.addfile(_entry(name, 0o644, size=len(text)), io.BytesIO(text.encode()))
        for name, path in sorted(files.items()):
            with open(path, "rb") as content:
                mode = 0o755 if os.access(path, os.X_OK) else 0o644
                entry = _entry(name, mode, size=os.fstat(content.fileno()).st_size)
                entry.mtime = int(os.fstat(content.fileno()).st_mtime)  # by which Python accepts compiled modules
                layer.addfile(entry, content)


def _add_bytes(archive, name, data):
    archive.addfile(_entry(name, 0o644, size=len(data)), io.BytesIO(data))


def python(packages):
    """Returns Debian's python3, also as `python`, with its standard library and the folder `packages` of further modules."""
    program = pathlib.Path(shutil.which("python3", path="/usr/bin")).resolve()
    version = re.match(r"python\d+\.\d+", program.name).group()
    files = {}
    for place, folder in ((f"usr/lib/{version}", pathlib.Path("/usr/lib") / version), (f"usr/local/lib/{version}/dist-packages", packages)):
        for path in _files_below(folder):
            files[f"{place}/{path.relative_to(folder)}"] = path.resolve()
    # Modules in C need libraries of the machine; the large ones need those of the others too.
    compiled = [path for path in files.values() if ".so" in path.suffixes and (path.parent.name == "lib-dynload" or path.stat().st_size > 2e6)]
    libraries = {library: library for path in compiled for library in _libraries(path) if not library.startswith(str(packages))}
    return {**files, **files_of({"usr/bin/python3": program, "usr/local/bin/python": program, **libraries})}


def _files_below(folder):
    """Yields the files of a folder except what only compilers and installers read."""
    for parent, folders, names in os.walk(folder):
        folders[:] = set(folders) - {"include", "pip", "setuptools"}
        yield from (path for path in map(pathlib.Path(parent).joinpath, names) if path.is_file())


def make(folder, name, files, entrypoint=(), root=True, also=()):
    """Returns the path of an archive with the image `name` (as `docker load` reads it) in `folder`. Creates it unless one of the same
    files exists. `root`: adds the other files of a Debian root. `also`: further names of the image."""
    stamps = [(inside, str(path), path.stat().st_size, path.stat().st_mtime_ns) for inside, path in sorted(files.items())]
    recipe = pathlib.Path(__file__).read_text()
    key = hashlib.sha256(json.dumps([name, stamps, list(entrypoint), root, list(also), recipe]).encode()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name.replace('/', '_').replace(':', '_')}_{key}.tar"
    if path.exists():
        os.utime(path)
        return path
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        layer = pathlib.Path(scratch) / "layer.tar"
        with open(layer, "wb") as output:
            _write_layer(output, files, root)
        with open(layer, "rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
        config = json.dumps({"architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()), "os": "linux",
                             "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
                             "config": {"Entrypoint": list(entrypoint), "Env": ["PATH=/usr/local/bin:/usr/bin:/bin"]}}).encode()
        config_name = hashlib.sha256(config).hexdigest() + ".json"
        archive_path = pathlib.Path(scratch) / "archive.tar"
        with tarfile.open(archive_path, "w") as archive:
            _add_bytes(archive, config_name, config)
            archive.add(layer, "layer.tar")
            _add_bytes(archive, "manifest.json",
                       json.dumps([{"Config": config_name, "RepoTags": [name, *also], "Layers": ["layer.tar"]}]).encode())
        archive_path.rename(path)
    _forget(folder.glob(f"{path.name.rpartition('_')[0]}_*.tar"))
    return path


def _forget(archives):
    """Removes images that were not used for a day."""
    for archive in archives:
        with contextlib.suppress(FileNotFoundError):
            if time.time() - archive.stat().st_mtime > 24 * 3600:
                archive.unlink()
