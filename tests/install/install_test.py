"""The files of `cmake --install` work on their own."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from digits import write_digits
from support import MUSTER, SOURCE, MusterTest

BUILD = pathlib.Path(os.environ.get("MUSTER_BUILD", pathlib.Path(MUSTER).resolve().parent.parent))

# Mistakes in a user's experiment, selected by an environment variable.
SPOIL = """
  const std::string spoilt = std::getenv("SPOILT") == nullptr ? "" : std::getenv("SPOILT");
  if (spoilt == "loss") {
    experiment.loss = [](const torch::Tensor&, const train::Batch&) -> torch::Tensor {
      throw std::runtime_error("no licence for this loss");
    };
  }
  if (spoilt == "step") {
    experiment.loss = [calls = 0](const torch::Tensor& outputs, const train::Batch& batch) mutable {
      if (++calls > 1) throw std::runtime_error("this batch is cursed");
      return train::CrossEntropy()(outputs, batch);
    };
  }
  if (spoilt == "number") experiment.evaluate.every_steps = -5;
"""


class InstallTest(MusterTest):
    def setUp(self):
        super().setUp()
        if not (BUILD / "CMakeCache.txt").exists():
            self.skipTest(f"{BUILD} is not a build folder")
        self.prefix = pathlib.Path(tempfile.mkdtemp(prefix="muster-install-"))
        self.addCleanup(shutil.rmtree, self.prefix, ignore_errors=True)
        subprocess.run(["cmake", "--install", BUILD, "--prefix", self.prefix], check=True, capture_output=True, timeout=120)
        self.share = self.prefix / "share"
        self.env["PATH"] = f"{self.prefix}/bin:{self.env['PATH']}"

    def test_the_installed_program_runs_a_job(self):
        job = self.write("job.yaml", "name: there\nroles: {worker: {replicas: 2, command: 'echo hi from {index}'}}\n")
        result = subprocess.run([self.prefix / "bin/muster", "run", job], cwd=self.dir, env=self.env, capture_output=True,
                                text=True, timeout=60)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("worker:1 | hi from 1", result.stdout)

    def test_it_does_not_look_for_libraries_in_the_build_folder(self):
        dynamic = subprocess.run(["readelf", "-d", self.prefix / "bin/muster"], capture_output=True, text=True, timeout=60,
                                 check=True).stdout
        self.assertNotIn(str(BUILD), dynamic)

    def test_programs_are_installed_without_debug_information(self):
        for program in (self.prefix / "bin").iterdir():
            sections = subprocess.run(["readelf", "--section-headers", "--wide", program], capture_output=True, text=True, timeout=60,
                                      check=True).stdout
            self.assertIn(".text", sections)
            self.assertNotIn(".debug_info", sections, program)

    def test_the_manual_page_renders_without_warnings(self):
        if shutil.which("groff") is None:
            self.skipTest("groff is not installed")
        page = self.share / "man/man1/muster.1"
        result = subprocess.run(["groff", "-man", "-ww", "-Tutf8", page], capture_output=True, text=True, timeout=60)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        text = subprocess.run(["col", "-bx"], input=result.stdout, capture_output=True, text=True, timeout=60).stdout \
            if shutil.which("col") else result.stdout
        for word in ("NAME", "SYNOPSIS", "COMMANDS", "EXIT STATUS", "MUSTER_HOME", "130", "resume", "--dry-run", "prune"):
            self.assertIn(word, text)

    def test_the_bash_completion_completes(self):
        script = self.share / "bash-completion/completions/muster"
        words = subprocess.run(
            ["/bin/bash", "-c", f". '{script}'; COMP_WORDS=(muster lo); COMP_CWORD=1; _muster; echo \"${{COMPREPLY[@]}}\""],
            env=self.env, capture_output=True, text=True, timeout=60, check=True)
        self.assertEqual((words.stdout, words.stderr), ("logs\n", ""))

    def test_completions_of_the_other_shells(self):
        self.assertIn("#compdef muster", (self.share / "zsh/site-functions/_muster").read_text())
        self.assertIn("complete -c muster", (self.share / "fish/vendor_completions.d/muster.fish").read_text())
        for shell, path in (("zsh", "zsh/site-functions/_muster"), ("fish", "fish/vendor_completions.d/muster.fish")):
            if shutil.which(shell):
                subprocess.run([shell, "-n", self.share / path], check=True, timeout=60)

    def test_the_library_builds_a_program_that_trains(self):
        self.build_example(steps=20)
        write_digits(self.dir / "data" / "mnist")
        alone = subprocess.run([self.dir / "build/examples-cpp/digits"], cwd=self.dir, capture_output=True, text=True,
                               env=dict(self.env, MUSTER_MODEL_DIR="runs/alone"), timeout=120)
        self.assertEqual(alone.returncode, 0, alone.stdout + alone.stderr)
        self.assert_trained("runs/alone", alone.stdout)
        for spoilt, message in (("loss", r"error: the loss failed in a trial .*: no licence for this loss\n"),
                                ("step", r"error: chief:0, step 0: this batch is cursed\n"),
                                ("number", r"error: evaluate\.every_steps is -5; it must be at least 1\n")):
            result = subprocess.run([self.dir / "build/examples-cpp/digits"], cwd=self.dir, capture_output=True, text=True,
                                    env=dict(self.env, SPOILT=spoilt), timeout=120)
            self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
            self.assertRegex(result.stderr, message)
        job = self.muster("run", SOURCE / "examples/cpp/job.yaml")
        self.assertIn("Succeeded", job.stderr)
        self.assert_trained("runs/digits", job.stdout)

    def build_example(self, steps):
        """Builds examples/cpp with fewer steps, as its README describes, against the installed package only."""
        source = self.dir / "examples-cpp"
        shutil.copytree(SOURCE / "examples/cpp", source)
        main = source / "main.cc"
        text, changed = re.subn(r"(max_steps|save_checkpoints_steps) = \d+",
                                lambda m: f"{m[1]} = {steps if m[1] == 'max_steps' else steps // 2}", main.read_text())
        self.assertEqual(changed, 2)
        self.assertEqual(text.count("  return train::Main("), 1)
        main.write_text(text.replace("  return train::Main(", SPOIL + "  return train::Main("))
        build = self.dir / "build/examples-cpp"
        for command in (["cmake", "-S", source, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}", "-DCMAKE_BUILD_TYPE=Debug"],
                        ["cmake", "--build", build]):
            result = subprocess.run(command, capture_output=True, text=True, timeout=400)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def assert_trained(self, model_dir, output):
        self.assertRegex(output, r"digits accuracy: \S+, top3_accuracy \S+, loss \S+ \(step 20, 128 examples of test\)")
        checkpoints = json.loads(self.muster("checkpoint", "list", "--json", model_dir).stdout)
        self.assertEqual({c["step"]: c["state"] for c in checkpoints}, {10: "ok", 20: "ok"})
        self.assertTrue((self.dir / model_dir / "export/best/model.pt").exists())

    def test_the_installed_trainer_is_found_beside_muster(self):
        result = subprocess.run([self.prefix / "bin/muster-trainer", "--help"], capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("TF_CONFIG", result.stdout)

    def test_the_schema_is_there(self):
        json.loads((self.share / "muster/job.schema.json").read_text())


if __name__ == "__main__":
    unittest.main()
