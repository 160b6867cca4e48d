"""muster checkpoint; and the format of docs/formats/checkpoint.md, written and read here from the document alone."""
import hashlib
import json
import os
import pathlib
import resource
import shutil
import signal
import struct
import subprocess
import unittest

from support import MUSTER, SOURCE, MusterTest, plain

WRITER = pathlib.Path(MUSTER).with_name("checkpoint_writer")
CLIENT = SOURCE / "build" / "npm" / "node_modules"  # scripts/test installs it
SIZES = {"F64": 8, "I64": 8, "F32": 4, "I32": 4, "BF16": 2, "F16": 2, "I16": 2, "U8": 1, "I8": 1, "BOOL": 1}
STRUCT = {"F32": "f", "I64": "q", "U8": "B"}


def write_safetensors(path, tensors):
    """tensors: {name: (dtype, shape, bytes)}"""
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def read_safetensors(path):
    """Returns {name: (dtype, shape, bytes)}, and checks every rule of the format."""
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    assert content[8:9] == b"{" and length % 8 == 0
    header, data = json.loads(content[8:8 + length]), content[8 + length:]
    header.pop("__metadata__", None)
    tensors, place = {}, 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, end = entry["data_offsets"]
        count = 1
        for size in entry["shape"]:
            count *= size
        assert begin == place and end - begin == count * SIZES[entry["dtype"]], name
        assert (8 + length + begin) % SIZES[entry["dtype"]] == 0, f"{name} is not aligned"
        tensors[name] = (entry["dtype"], entry["shape"], data[begin:end])
        place = end
    assert place == len(data)
    return tensors


def write_checkpoint(model_dir, step, tensors, final=False):
    folder = model_dir / "checkpoints" / f"step-{step:09}"
    folder.mkdir(parents=True)
    shard = "model-00001-of-00001.safetensors"
    write_safetensors(folder / shard, tensors)
    total = sum(len(content) for _, _, content in tensors.values())
    index = {"metadata": {"total_size": total}, "weight_map": {name: shard for name in tensors}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n")
    (folder / "state.json").write_text(json.dumps({"step": step}, indent=2) + "\n")
    files = [{"name": name, "bytes": (folder / name).stat().st_size,
              "sha256": hashlib.sha256((folder / name).read_bytes()).hexdigest()}
             for name in (shard, "model.safetensors.index.json", "state.json")]
    manifest = {"format": "muster-checkpoint", "version": 1, "step": step, "model": "tiny",
                "written": "2026-11-16T09:30:00+00:00", "final": final, "files": files}
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")
    return folder


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


class CheckpointTest(MusterTest):
    def setUp(self):
        super().setUp()
        self.model = self.dir / "model"

    def save(self, *steps):
        """Writes checkpoints with the trainer's code."""
        subprocess.run([WRITER, self.model, *map(str, steps)], check=True, timeout=60)

    def folder(self, step):
        return self.model / "checkpoints" / f"step-{step:09}"

    def fails(self, *args, code=1):
        result = self.muster(*args, check=False)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result.stdout + result.stderr


class FormatTest(CheckpointTest):
    def test_the_documents_example(self):
        document = (SOURCE / "docs" / "formats" / "checkpoint.md").read_text()
        folder = write_checkpoint(self.model, 500, {"w": ("F32", [2], struct.pack("<2f", 1, 2))})
        for name in ("manifest.json", "state.json", "model.safetensors.index.json"):
            self.assertIn((folder / name).read_text(), document, name)
        self.muster("checkpoint", "verify", folder)

    def test_the_documented_format_is_accepted(self):
        tensors = {"a": ("I64", [], struct.pack("<q", 7)), "größe": ("BF16", [3], b"123456"),
                   "none": ("F32", [0, 2], b""), "b": ("BOOL", [1], b"\1")}
        write_checkpoint(self.model, 3, tensors, final=True)
        self.muster("checkpoint", "verify", self.model)
        self.muster("checkpoint", "export", self.model, "--to", "all.safetensors")
        self.assertEqual(read_safetensors(self.dir / "all.safetensors"), tensors)

    def test_we_write_the_documented_format(self):
        self.save(10)
        folder = self.folder(10)
        manifest = json.loads((folder / "manifest.json").read_text())
        self.assertEqual((manifest["format"], manifest["version"], manifest["step"], manifest["model"], manifest["final"]),
                         ("muster-checkpoint", 1, 10, "tiny", True))
        self.assertEqual({file["name"] for file in manifest["files"]} | {"manifest.json"}, set(os.listdir(folder)))
        for file in manifest["files"]:
            content = (folder / file["name"]).read_bytes()
            self.assertEqual((len(content), hashlib.sha256(content).hexdigest()), (file["bytes"], file["sha256"]))
        weights = {}
        for path in sorted(folder.glob("model-*.safetensors")):
            weights.update(read_safetensors(path))
        index = json.loads((folder / "model.safetensors.index.json").read_text())
        self.assertEqual(set(index["weight_map"]), set(weights))
        self.assertEqual(index["metadata"]["total_size"], sum(len(content) for _, _, content in weights.values()))
        self.assertEqual({name: (dtype, shape) for name, (dtype, shape, _) in weights.items()}, {
            "conv.weight": ("F32", [8, 1, 5, 5]), "conv.bias": ("F32", [3]), "norm.count": ("I64", []),
            "fc.weight": ("F32", [10, 20]), "mask": ("U8", [3])})
        for name, (dtype, _, content) in weights.items():
            values = struct.unpack(f"<{len(content) // SIZES[dtype]}{STRUCT[dtype]}", content)
            self.assertEqual(values, tuple(range(10, 10 + len(values))), name)
        slots = read_safetensors(folder / "optimizer-00001-of-00001.safetensors")
        self.assertEqual(list(slots), ["fc.weight/m"])
        self.assertEqual(json.loads((folder / "state.json").read_text()), {"step": 10, "rng": "12345"})

    def test_hugging_faces_client_reads_our_files(self):
        node = shutil.which("node")
        if not node or not (CLIENT / "@huggingface" / "hub").exists():
            self.skipTest("needs node and the client that scripts/test installs")
        self.save(1)
        self.muster("checkpoint", "export", self.model, "--to", self.folder(1) / "model.safetensors")

        def parse(name):
            said = subprocess.run([node, pathlib.Path(__file__).with_name("safetensors_reader.mjs"), self.folder(1), name],
                                  env=dict(os.environ, NODE_PATH=str(CLIENT)), check=True, capture_output=True,
                                  text=True, timeout=60)
            return json.loads(said.stdout)

        def described(headers):
            return {name: (entry["dtype"], entry["shape"]) for header in headers for name, entry in header.items()
                    if name != "__metadata__"}

        expected = {"conv.weight": ("F32", [8, 1, 5, 5]), "conv.bias": ("F32", [3]), "norm.count": ("I64", []),
                    "fc.weight": ("F32", [10, 20]), "mask": ("U8", [3])}
        self.assertEqual(described(parse("model.safetensors.index.json")["headers"].values()), expected)
        self.assertEqual(described([parse("model.safetensors")["header"]]), expected)


class ListTest(CheckpointTest):
    def test_every_state_in_words_and_json(self):
        self.save(1, 20, 300)
        (self.folder(1) / "state.json").unlink()
        (self.model / "checkpoints" / "step-000000400.partial").mkdir()
        (self.model / "checkpoints" / "best.json").write_text('{"step": 20, "metric": "accuracy", "value": 0.875}')
        lines = self.muster("checkpoint", "list", self.model).stdout.splitlines()
        self.assertRegex(lines[0], r"STEP +SIZE +WRITTEN +STATE")
        self.assertRegex(lines[1], r"^1 .*damaged .*state\.json")
        self.assertRegex(lines[2], r"^20 +\d.*KiB +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d +ok, best +accuracy 0\.875")
        self.assertRegex(lines[3], r"^300 .*ok, final")
        self.assertRegex(lines[4], r"^400 +partial")
        listed = json.loads(self.muster("checkpoint", "list", self.model, "--json").stdout)
        self.assertEqual([(e["step"], e["state"], e["final"], e["best"]) for e in listed],
                         [(1, "damaged", False, False), (20, "ok", False, True), (300, "ok", True, False),
                          (400, "partial", False, False)])
        self.assertEqual(set(listed[0]), {"step", "folder", "bytes", "written", "state", "final", "best", "reason"})
        self.assertIsNone(listed[3]["written"])

    def test_missing_paths(self):
        self.model.mkdir()
        self.assertIn("no checkpoints yet", self.muster("checkpoint", "list", self.model).stdout)
        self.assertEqual(self.muster("checkpoint", "list", self.model, "--json").stdout.strip(), "[]")
        self.assertIn("has no checkpoints", self.fails("checkpoint", "inspect", self.model))
        self.assertIn("has no checkpoints", self.fails("checkpoint", "verify", self.model))
        self.assertIn("does not exist", self.fails("checkpoint", "list", "no/such"))
        self.assertIn("no such path", self.fails("checkpoint", "list", "nosuchjob"))
        self.fails("checkpoint", "list", code=2)
        self.assertIn("export", self.fails("checkpoint", code=2))

    def test_a_job_stands_for_its_model_dir_and_wins_over_a_folder(self):
        self.save(5)
        self.muster("run", self.write("job.yaml", f"name: train\nmodel_dir: {self.model}\n"
                                                  "roles: {worker: {command: 'true'}}\n"))
        self.assertEqual(json.loads(self.muster("checkpoint", "list", "train", "--json").stdout)[0]["step"], 5)
        self.muster("checkpoint", "verify", "train")
        (self.dir / "train").mkdir()
        listed = self.muster("checkpoint", "list", "train", "--json")
        self.assertEqual(json.loads(listed.stdout)[0]["step"], 5)
        self.assertIn("the folder of that name is ./train", listed.stderr)
        self.assertEqual(json.loads(self.muster("checkpoint", "list", "./train", "--json").stdout), [])
        # A prefix of a job's name does not match.
        (self.dir / "tra").mkdir()
        self.assertEqual(json.loads(self.muster("checkpoint", "list", "tra", "--json").stdout), [])
        # A model dir of one job needs no filter.
        (self.dir / "train").rmdir()
        (self.dir / "train").symlink_to(self.model)
        self.assertEqual(self.muster("checkpoint", "list", "train").stderr, "")


class InspectTest(CheckpointTest):
    def test_the_latest_of_a_model_dir(self):
        self.save(1, 2)
        (self.folder(3)).mkdir()
        text = self.muster("checkpoint", "inspect", self.model).stdout
        self.assertIn("step 2 of tiny, final", text)
        self.assertRegex(text, r"conv\.weight +F32 +\[8, 1, 5, 5\] +800 +model-0000\d-of-0000\d\.safetensors")
        self.assertRegex(text, r"fc\.weight/m +F32 +\[10, 20\] +800 +optimizer-00001-of-00001\.safetensors")
        self.assertIn("5 tensors, 407 elements", text)
        self.assertIn('state rng: "12345"', text)

    def test_a_folder_a_step_and_json(self):
        self.save(1, 2)
        for args in ([self.folder(1)], [self.model, "--checkpoint", "1"]):
            shown = json.loads(self.muster("checkpoint", "inspect", *args, "--json").stdout)
            self.assertEqual((shown["step"], shown["model"], shown["final"]), (1, "tiny", False))
            self.assertEqual(shown["state"], {"rng": "12345", "step": 1})
            self.assertEqual(len(shown["weights"]), 5)
            self.assertEqual(shown["slots"], [{"name": "fc.weight/m", "dtype": "F32", "shape": [10, 20], "bytes": 800,
                                               "file": "optimizer-00001-of-00001.safetensors"}])
        self.assertIn("available: 2, 1", self.fails("checkpoint", "inspect", self.model, "--checkpoint", "7"))
        self.fails("checkpoint", "inspect", self.model, "--checkpoint", "newest", code=2)

    def test_one_file(self):
        self.save(1)
        file = next(self.folder(1).glob("optimizer-*"))
        text = self.muster("checkpoint", "inspect", file).stdout
        self.assertRegex(text, r"fc\.weight/m +F32 +\[10, 20\] +800")
        self.assertIn("format: pt", text)
        shown = json.loads(self.muster("checkpoint", "inspect", file, "--json").stdout)
        self.assertEqual(shown["metadata"], {"format": "pt"})
        self.assertEqual([tensor["name"] for tensor in shown["tensors"]], ["fc.weight/m"])
        (self.dir / "link.safetensors").symlink_to(file)  # as in the cache of Hugging Face's tools
        for verb in ("inspect", "verify"):
            self.muster("checkpoint", verb, self.dir / "link.safetensors")
            self.assertIn("not a safetensors file", self.fails("checkpoint", verb, self.folder(1) / "state.json"))

    def test_names_never_reach_the_terminal_raw(self):
        write_checkpoint(self.model, 1, {"\x1b]0;evil\x07": ("U8", [1], b"x")})
        self.assertNotIn("\x1b]", self.muster("checkpoint", "inspect", self.model).stdout)


class VerifyTest(CheckpointTest):
    def test_every_damaged_file_is_named(self):
        self.save(1, 2)
        self.assertEqual(self.muster("checkpoint", "verify", self.model).stdout, "step 1: ok\nstep 2: ok\n")
        flip(self.folder(1) / "optimizer-00001-of-00001.safetensors")
        flip(self.folder(1) / "state.json")
        text = self.fails("checkpoint", "verify", self.model)
        self.assertIn("step 1: damaged", text)
        self.assertIn("optimizer-00001-of-00001.safetensors: is damaged", text)
        self.assertIn("state.json: is damaged", text)
        self.assertNotIn("model-0", text)
        self.assertIn("step 2: ok", text)
        self.assertIn("state.json", self.fails("checkpoint", "verify", self.folder(1)))
        self.muster("checkpoint", "verify", self.folder(2))

    def test_a_partial_checkpoint_beside_a_complete_one_is_not_damage(self):
        self.save(1, 2)
        (self.folder(2) / "manifest.json").unlink()
        self.assertIn("step 2: partial", self.muster("checkpoint", "verify", self.model).stdout)
        self.fails("checkpoint", "verify", self.folder(2))

    def test_a_manifest_cannot_name_files_elsewhere(self):
        folder = write_checkpoint(self.model, 1, {"w": ("U8", [1], b"x")})
        manifest = (folder / "manifest.json").read_text()
        (folder / "manifest.json").write_text(manifest.replace('"state.json"', '"../../../secret"'))
        self.assertIn("is not a plain file name", self.fails("checkpoint", "verify", folder))

    def test_progress_on_a_terminal(self):
        write_checkpoint(self.model, 1, {"w": ("U8", [4 << 20], b"x" * (4 << 20))})
        terminal = self.terminal("checkpoint", "verify", self.model)
        self.assertEqual(terminal.wait(), 0)
        self.assertIn("verifying: ", terminal.output)
        self.assertIn("step 1: ok", plain(terminal.output))


class ExportTest(CheckpointTest):
    def test_one_file_of_the_chosen_checkpoint(self):
        self.save(1, 2, 3)
        (self.model / "checkpoints" / "best.json").write_text('{"step": 2, "metric": "accuracy", "value": 0.5}')
        for which, step in (("latest", 3), ("best", 2), ("1", 1)):
            self.muster("checkpoint", "export", self.model, "--to", f"{which}.safetensors", "--checkpoint", which)
            tensors = read_safetensors(self.dir / f"{which}.safetensors")
            self.assertEqual(len(tensors), 5)
            self.assertEqual(struct.unpack("<q", tensors["norm.count"][2]), (step,))
        self.assertEqual(sorted(os.listdir(self.dir)), ["1.safetensors", "best.safetensors", "latest.safetensors", "model"])

    def test_nothing_is_overwritten_without_force(self):
        self.save(1)
        self.write("out.safetensors", "precious")
        self.assertIn("--force", self.fails("checkpoint", "export", self.model, "--to", "out.safetensors"))
        self.assertEqual((self.dir / "out.safetensors").read_text(), "precious")
        self.muster("checkpoint", "export", self.model, "--to", "out.safetensors", "--force")
        self.assertEqual(len(read_safetensors(self.dir / "out.safetensors")), 5)
        self.assertIn("--to", self.fails("checkpoint", "export", self.model, code=2))

    def test_a_damaged_checkpoint_is_not_exported(self):
        self.save(1)
        flip(sorted(self.folder(1).glob("model-*.safetensors"))[0])
        self.assertIn("is damaged", self.fails("checkpoint", "export", self.model, "--to", "out.safetensors"))
        self.assertFalse((self.dir / "out.safetensors").exists())

    def test_a_failing_disk_leaves_nothing(self):
        self.save(1)

        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512))

        result = self.muster("checkpoint", "export", self.folder(1), "--to", "out.safetensors", check=False,
                             preexec_fn=limit)
        self.assertEqual(result.returncode, 1)
        self.assertIn("free some space", result.stderr)
        self.assertEqual(list(self.dir.glob("out*")), [])


if __name__ == "__main__":
    unittest.main()
