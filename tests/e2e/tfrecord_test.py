"""muster data inspect, verify, convert: TFRecord files, checked with third-party readers."""
import base64
import gzip
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import unittest
import zlib

import tfexample
from support import SOURCE, MusterTest, wait_until

CLIENT = SOURCE / "build" / "npm" / "node_modules"  # scripts/test installs it


def idx(dtype, shape, content):
    return bytes([0, 0, dtype, len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + content


def png(width, height, pixel):
    """Returns a grey PNG; pixel(x, y) is 0 to 255."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + bytes(pixel(x, y) for x in range(width)) for y in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


class TfRecordTest(MusterTest):
    def data(self, *args, check=True, **kwargs):
        return self.muster("data", *args, check=check, **kwargs)

    def fails(self, *args, code=1):
        result = self.data(*args, check=False)
        self.assertEqual(result.returncode, code, result.stderr + result.stdout)
        return result.stderr

    def write_mnist(self, count=6):
        folder = self.dir / "mnist"
        folder.mkdir()
        images = [bytes((i * 40 + p) % 256 for p in range(784)) for i in range(count)]
        labels = bytes(i % 10 for i in range(count))
        (folder / "train-images-idx3-ubyte").write_bytes(idx(8, [count, 28, 28], b"".join(images)))
        (folder / "train-labels-idx1-ubyte").write_bytes(idx(8, [count], labels))
        (folder / "t10k-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(8, [1, 28, 28], images[0])))
        (folder / "t10k-labels-idx1-ubyte").write_bytes(idx(8, [1], b"\x07"))
        return images

    def client(self, action, path):
        """Returns the content of a file as a third-party library reads it."""
        node = shutil.which("node")
        if not node or not (CLIENT / "tfrecord").is_dir():
            self.skipTest("no node with the package tfrecord; scripts/test installs it")
        return subprocess.run([node, pathlib.Path(__file__).with_name("tfrecord_client.mjs"), action, path],
                              env=dict(os.environ, NODE_PATH=str(CLIENT)), check=True, capture_output=True, text=True,
                              timeout=60).stdout


class ConvertTest(TfRecordTest):
    def test_mnist_in_shards(self):
        images = self.write_mnist()
        for compression, suffix in (("none", ""), ("gzip", ".gz"), ("zlib", ".zlib")):
            to = self.dir / compression
            said = self.data("convert", "mnist", "--to", to, "--shards", 1, "--compression", compression).stdout
            self.assertIn("train: 6 examples in 1 shard", said)
            self.assertIn(f"data: {{format: tfrecord, path: {to}, features: "
                          "{image: {type: uint8, shape: [28, 28]}, label: int64}}", said)
            read = tfexample.examples(to / f"train-00000-of-00001.tfrecord{suffix}")
            self.assertEqual(read, [{"image": [image], "label": [i]} for i, image in enumerate(images)])
            read = tfexample.examples(to / f"test-00000-of-00001.tfrecord{suffix}")
            self.assertEqual(read, [{"image": [images[0]], "label": [7]}])

    def test_several_shards_keep_the_order(self):
        self.write("t.csv", "x,label\n" + "".join(f"{i}.5,{i}\n" for i in range(7)))
        self.data("convert", "t.csv", "--to", "out", "--shards", 3)
        names = sorted(path.name for path in (self.dir / "out").iterdir())
        self.assertEqual(names, [f"train-0000{i}-of-00003.tfrecord" for i in range(3)])
        read = [example for name in names for example in tfexample.examples(self.dir / "out" / name)]
        self.assertEqual(read, [{"features": [i + 0.5], "label": [i]} for i in range(7)])

    def test_another_library_reads_our_files(self):
        self.write("t.csv", "a,b,kind\n1,-2.5,cat\n3,4,ant\n")
        self.data("convert", "t.csv", "--to", "out", "--label", "kind")
        lines = self.client("read", self.dir / "out" / "train-00000-of-00001.tfrecord").splitlines()
        first = json.loads(lines[0])["features"]["feature"]
        self.assertEqual(len(lines), 2)
        self.assertEqual(first["features"]["floatList"]["value"], [1, -2.5])
        self.assertEqual([int(value) for value in first["label"]["int64List"]["value"]], [1])
        self.assertEqual(base64.b64decode(first["class"]["bytesList"]["value"][0]), b"cat")
        self.assertEqual((self.dir / "out" / "classes.txt").read_text(), "ant\ncat\n")

    def test_folders_of_images(self):
        for split, name in (("train", "cat"), ("train", "ant bee"), ("valid", "cat"), ("valid", "ant bee")):
            (self.dir / "pictures" / split / name).mkdir(parents=True)
            (self.dir / "pictures" / split / name / "1 #%é.png").write_bytes(png(6, 4, lambda x, y: x * 40))
        said = self.data("convert", "pictures", "--to", "out").stdout
        self.assertIn("features: {image: {type: png, shape: [4, 6]}, label: int64}", said)
        for split in ("train", "valid"):
            read = tfexample.examples(self.dir / "out" / f"{split}-00000-of-00001.tfrecord")
            self.assertEqual([example["label"] for example in read], [[0], [1]])
            self.assertEqual([example["class"] for example in read], [[b"ant bee"], [b"cat"]])
            self.assertEqual(read[0]["image"], [png(6, 4, lambda x, y: x * 40)])
            self.assertEqual((read[0]["height"], read[0]["width"]), ([4], [6]))

    def test_existing_files_are_kept_unless_forced(self):
        self.write("t.csv", "1,2\n3,4\n")
        self.data("convert", "t.csv", "--to", "out", "--shards", 2)
        self.assertIn("already exists", self.fails("convert", "t.csv", "--to", "out"))
        self.data("convert", "t.csv", "--to", "out", "--split", "test")
        self.data("convert", "t.csv", "--to", "out", "--force")
        self.assertEqual(sorted(path.name for path in (self.dir / "out").iterdir()),
                         ["test-00000-of-00001.tfrecord", "train-00000-of-00001.tfrecord"])

    def test_mistakes_name_the_remedy(self):
        self.write("t.csv", "a,label\n1,2\nx,3\n")
        self.assertIn("t.csv, line 3: 'a' is 'x', which is not a number", self.fails("convert", "t.csv", "--to", "o", code=2))
        self.assertFalse((self.dir / "o").exists())
        self.assertIn("--to FOLDER", self.fails("convert", "t.csv", code=2))
        self.assertIn("does not exist", self.fails("convert", "absent", "--to", "o"))
        self.assertIn("must be from 1 to 99999", self.fails("convert", "t.csv", "--to", "o", "--shards", 0, code=2))
        self.assertIn("gzip", self.fails("convert", "t.csv", "--to", "o", "--compression", "zip", code=2))
        (self.dir / "empty").mkdir()
        self.assertIn("has neither IDX files", self.fails("convert", "empty", "--to", "o", code=2))

    def test_an_interruption_leaves_no_partial_shard(self):
        self.write("t.csv", "".join(f"{i},{i}\n" for i in range(400_000)))
        process = self.start("data", "convert", "t.csv", "--to", "out", "--compression", "gzip")
        wait_until(lambda: list(self.dir.glob("out/.convert-*/*.partial-*")), "a shard is begun")
        process.send_signal(signal.SIGINT)
        self.assertNotEqual(process.wait(60), 0)
        self.assertFalse((self.dir / "out").exists())

    def labels(self, split, folder="out"):
        return [(example["class"][0].decode(), example["label"][0])
                for example in tfexample.examples(self.dir / folder / f"{split}-00000-of-00001.tfrecord")]

    def test_columns_of_a_table(self):
        self.write("t.csv", "id,age,height,label\nx,1,10,0\ny,3,30,1\n")
        self.assertIn("leave the column out with --drop", self.fails("convert", "t.csv", "--to", "o", code=2))
        said = self.data("convert", "t.csv", "--to", "out", "--columns", "height,age").stdout
        self.assertIn("shape: [2]", said)
        self.assertEqual([e["features"] for e in tfexample.examples(self.dir / "out/train-00000-of-00001.tfrecord")], [[10, 1], [30, 3]])
        self.data("convert", "t.csv", "--to", "dropped", "--drop", "id,height")
        self.assertEqual([e["features"] for e in tfexample.examples(self.dir / "dropped/train-00000-of-00001.tfrecord")], [[1], [3]])
        self.assertIn("--drop", self.fails("convert", "t.csv", "--to", "o", "--drop", "id", "--columns", "age", code=2))

    def test_normalized_splits_agree(self):
        self.write("train.csv", "a,b,label\n1,7,0\n3,7,1\n")
        self.write("test.csv", "a,b,label\n5,8,0\n")
        self.data("convert", "train.csv", "--to", "out", "--normalize")
        self.assertEqual((self.dir / "out/normalization.csv").read_text(), 'column,mean,deviation\n"a",2,1\n"b",7,1\n')
        self.assertIn("--normalize", self.fails("convert", "test.csv", "--to", "out", "--split", "test"))
        self.data("convert", "test.csv", "--to", "out", "--split", "test", "--normalize")
        self.assertEqual([e["features"] for e in tfexample.examples(self.dir / "out/train-00000-of-00001.tfrecord")], [[-1, 0], [1, 0]])
        self.assertEqual([e["features"] for e in tfexample.examples(self.dir / "out/test-00000-of-00001.tfrecord")], [[3, 1]])
        said = self.fails("convert", "test.csv", "--to", "out", "--split", "more", "--normalize", "--drop", "b", code=2)
        self.assertIn("the folder was normalized with a, b", said)

    def test_resized_images(self):
        for name, size in (("a/1.png", (4, 4)), ("b/2.png", (9, 5))):
            path = self.dir / "pictures" / name
            path.parent.mkdir(parents=True)
            path.write_bytes(png(*size, lambda x, y: 77))
        said = self.data("convert", "pictures", "--to", "out", "--resize", "6x3")
        self.assertIn("{image: {type: png, shape: [6, 3]}, label: int64}", said.stdout)
        self.assertNotIn("different sizes", said.stderr)
        for example in tfexample.examples(self.dir / "out/train-00000-of-00001.tfrecord"):
            self.assertEqual((example["height"], example["width"]), ([6], [3]))
            self.assertEqual(struct.unpack(">II", example["image"][0][16:24]), (3, 6))  # the PNG's own header
        for wrong in ("0x3", "3x", "axb", "1x2x3", "20000"):
            self.assertIn("HEIGHTxWIDTH", self.fails("convert", "pictures", "--to", "o", "--resize", wrong, code=2))
        self.assertIn("--resize is for", self.fails("convert", self.write("t.csv", "a,label\n1,0\n"), "--to", "o", "--resize", "3", code=2))

    def test_splits_that_are_converted_one_by_one_have_the_same_numbers(self):
        self.write("train.csv", "x,label\n1,dog\n2,cat\n3,ant\n")
        self.write("test.csv", "x,label\n1,dog\n2,cat\n")
        self.data("convert", "train.csv", "--to", "out")
        self.data("convert", "test.csv", "--to", "out", "--split", "test")
        self.assertEqual(self.labels("train"), [("dog", 2), ("cat", 1), ("ant", 0)])
        self.assertEqual(self.labels("test"), [("dog", 2), ("cat", 1)])
        self.assertEqual((self.dir / "out/classes.txt").read_text(), "ant\ncat\ndog\n")
        # Also with --force: other splits keep their numbers.
        self.write("train.csv", "x,label\n1,dog\n")
        self.data("convert", "train.csv", "--to", "out", "--force")
        self.assertEqual(self.labels("train"), [("dog", 2)])

    def test_a_new_label_is_rejected_or_appended(self):
        self.write("train.csv", "x,label\n1,dog\n2,cat\n")
        self.write("test.csv", "x,label\n1,bee\n2,dog\n")
        self.data("convert", "train.csv", "--to", "out")
        said = self.fails("convert", "test.csv", "--to", "out", "--split", "test", code=2)
        self.assertIn("'bee'", said)
        self.assertIn("--add-classes", said)
        self.assertEqual(sorted(path.name for path in (self.dir / "out").iterdir()), ["classes.txt", "train-00000-of-00001.tfrecord"])
        said = self.data("convert", "test.csv", "--to", "out", "--split", "test", "--add-classes").stderr
        self.assertIn("new classes, numbered from 2: bee", said)
        self.assertEqual(self.labels("test"), [("bee", 2), ("dog", 1)])
        self.assertEqual((self.dir / "out/classes.txt").read_text(), "cat\ndog\nbee\n")

    def test_labels_without_their_numbering_are_not_guessed(self):
        self.write("t.csv", "x,label\n1,dog\n2,cat\n")
        self.data("convert", "t.csv", "--to", "out")
        (self.dir / "out/classes.txt").unlink()
        self.assertIn("classes.txt", self.fails("convert", "t.csv", "--to", "out", "--split", "test"))
        self.data("convert", "t.csv", "--to", "out", "--force")  # replaces all files
        self.assertEqual((self.dir / "out/classes.txt").read_text(), "cat\ndog\n")

    def test_images_of_later_splits_have_the_same_numbers(self):
        for folder in ("one/cat", "one/dog", "two/dog"):
            (self.dir / folder).mkdir(parents=True)
            (self.dir / folder / "1.png").write_bytes(png(6, 4, lambda x, y: x * 40))
        self.data("convert", "one", "--to", "out")
        self.data("convert", "two", "--to", "out", "--split", "test")
        self.assertEqual(self.labels("train"), [("cat", 0), ("dog", 1)])
        self.assertEqual(self.labels("test"), [("dog", 1)])

    def test_one_source_is_divided(self):
        self.write("t.csv", "x,label\n" + "".join(f"{i},{'cat' if i < 50 else 'dog'}\n" for i in range(100)))
        for folder in ("out", "again"):
            said = self.data("convert", "t.csv", "--to", folder, "--split", "train=0.8,test=0.2").stdout
            self.assertIn("train: 80 examples", said)
            self.assertIn("test: 20 examples", said)
        parts = {split: tfexample.examples(self.dir / "out" / f"{split}-00000-of-00001.tfrecord") for split in ("train", "test")}
        rows = {split: [int(example["features"][0]) for example in part] for split, part in parts.items()}
        self.assertEqual(sorted(rows["train"] + rows["test"]), list(range(100)))
        self.assertEqual(rows["test"], sorted(rows["test"]))
        self.assertEqual({(example["class"][0], example["label"][0]) for part in parts.values() for example in part}, {(b"cat", 0), (b"dog", 1)})
        for split in parts:
            name = f"{split}-00000-of-00001.tfrecord"
            self.assertEqual((self.dir / "out" / name).read_bytes(), (self.dir / "again" / name).read_bytes())
        for split in ("train=0.8,test=0.3", "train=0.8,train=0.2", "train=0.8", "train=x,test=0.2", "train=1,test=0", "=1"):
            self.assertIn("--split", self.fails("convert", "t.csv", "--to", "no", "--split", split, code=2))
        self.write_mnist()
        self.assertIn("already has splits", self.fails("convert", "mnist", "--to", "no", "--split", "a=0.5,b=0.5", code=2))
        self.assertFalse((self.dir / "no").exists())

    def test_a_failure_leaves_existing_files(self):
        self.write("t.csv", "x,label\n1,cat\n2,dog\n")
        self.data("convert", "t.csv", "--to", "out", "--shards", 2)
        before = {path.name: path.read_bytes() for path in (self.dir / "out").iterdir()}
        self.write("bad.csv", "x,label\n1,cat\n2,dog\nnot a number,dog\n")
        self.assertIn("line 4", self.fails("convert", "bad.csv", "--to", "out", "--shards", 2, "--force", code=2))
        self.assertEqual({path.name: path.read_bytes() for path in (self.dir / "out").iterdir()}, before)
        self.assertIn("line 4", self.fails("convert", "bad.csv", "--to", "new/folder", code=2))
        self.assertFalse((self.dir / "new").exists())


class InspectTest(TfRecordTest):
    def test_features_and_a_picture(self):
        self.write_mnist()
        said = self.data("convert", "mnist", "--to", "out", "--shards", 2, "--compression", "gzip").stdout
        self.assertIn("test: 1 example in 1 shard,", said)  # at most as many shards as examples
        said = self.data("inspect", "out/train-*").stdout
        self.assertRegex(said, r"out/train-00000-of-00002.tfrecord.gz +3 +\S+ +gzip")
        self.assertIn("6 records in all", said)
        self.assertRegex(said, r"image +bytes +6 +1 of 784 bytes +raw bytes")
        self.assertRegex(said, r"label +int64 +6 +1 +0 +\(0 to 5\)")
        self.assertIn("in a job: features: {image: {type: uint8, shape: [28, 28]}, label: int64}", said)
        picture = said.split("image of the first record\n")[1].split("\n\n")[0].splitlines()
        self.assertEqual(len(picture), 14)
        self.assertTrue(picture[4].startswith("@@@@"), picture)  # pixels 224 to 255

    def test_json(self):
        tfexample.write(self.dir / "f", [{"x": [1.5, 2.5], "name": ["é".encode()]}, {"x": [-1.0, 0.0, 7.0]}])
        said = json.loads(self.data("inspect", "--json", "f").stdout)
        self.assertEqual(said["records"], 2)
        self.assertEqual(said["files"][0]["compression"], "none")
        name, x = said["features"]
        self.assertEqual((name["name"], name["type"], name["examples"], name["sample"]), ("name", "bytes", 1, ["é"]))
        self.assertEqual((x["values"], x["range"]), ({"min": 2, "max": 3}, {"min": -1, "max": 7}))
        self.assertIsNone(said["job_features"])

    def test_files_of_another_library(self):
        self.client("write", self.dir / "theirs")
        said = json.loads(self.data("inspect", "--json", "theirs").stdout)
        self.assertEqual([(feature["name"], feature["type"], feature["sample"]) for feature in said["features"]],
                         [("features", "float", [0.5, 0]), ("label", "int64", [0]), ("name", "bytes", ["a"])])
        self.assertEqual(said["job_features"], "{features: {type: float, shape: [2]}, label: int64}")
        self.assertIn("all checksums match", self.data("verify", "theirs").stdout)

    def test_encoded_images(self):
        tfexample.write(self.dir / "f", [{"picture": [png(10, 8, lambda x, y: 255 if y < 4 else 0)], "label": [1]}])
        said = self.data("inspect", "f").stdout
        self.assertRegex(said, r"picture +bytes +1 +1 of \d+ bytes +png, 8 x 10, grey")
        self.assertIn("@@@@@@@@@@", said)
        self.assertIn("features: {picture: {type: png, shape: [8, 10]}, label: int64}", said)

    def test_files_that_cannot_be_inspected(self):
        self.write("text", "some text that is long enough")
        self.assertIn("not a TFRecord file", self.fails("inspect", "text"))
        (self.dir / "plain").write_bytes(tfexample.frame(b"not an example"))
        self.assertIn("plain, record 0 at byte 0: is not a tf.train.Example", self.fails("inspect", "plain"))
        self.assertIn("no file matches none-*", self.fails("inspect", "none-*"))
        self.assertNotEqual(self.fails("inspect", code=2), "")
        hostile = "\x1b[2J"
        tfexample.write(self.dir / "f", [{hostile: [1], "t": [hostile.encode()]}])
        self.assertNotIn("\x1b", self.data("inspect", "f").stdout)


class VerifyTest(TfRecordTest):
    def test_whole_and_damaged(self):
        tfexample.write(self.dir / "a", [{"x": [i]} for i in range(5)])
        (self.dir / "b").write_bytes(gzip.compress((self.dir / "a").read_bytes()))
        said = self.data("verify", "a", "b").stdout
        self.assertIn("a: ok, 5 records", said)
        self.assertIn("b: ok, 5 records", said)
        self.assertIn("2 files, 10 records", said)
        data = bytearray((self.dir / "a").read_bytes())
        size = len(data) // 5
        data[size + 14] ^= 1  # the data of record 1
        data[3 * size + 2] ^= 1  # the length of record 3
        (self.dir / "a").write_bytes(data)
        result = self.data("verify", "a", "b", check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn("a: damaged, 2 records can be read, 1 is damaged", result.stdout)
        self.assertIn(f"a, record 1 at byte {size}: the checksum of its data is wrong", result.stdout)
        self.assertIn(f"a, record 3 at byte {3 * size}: the checksum of its length is wrong", result.stdout)
        self.assertIn("b: ok", result.stdout)
        self.assertIn("on_error: skip", result.stderr)

    def test_a_truncated_file(self):
        tfexample.write(self.dir / "a", [{"x": [i]} for i in range(5)])
        data = (self.dir / "a").read_bytes()
        (self.dir / "a").write_bytes(data[:-3])
        self.assertIn("the file is truncated", self.data("verify", "a", check=False).stdout)

    def test_a_folder_and_names_of_every_kind(self):
        (self.dir / "all").mkdir()
        for name in ("with space", "per%cent", "ha#sh", "ünï", "a*b"):
            tfexample.write(self.dir / "all" / name, [{"x": [1]}])
        self.assertIn("5 files, 5 records", self.data("verify", "all").stdout)
        self.assertIn("1 file, 1 record,", self.data("verify", "all/a*b").stdout)


if __name__ == "__main__":
    unittest.main()
