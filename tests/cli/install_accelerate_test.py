# SPDX-License-Identifier: Apache-2.0
"""`acc install-accelerate`, and what acc does under accelerate's name: in folders that hold a foreign accelerate, or none.

    install_accelerate_test.py ACC FAKE_NVML_FOLDER RECORDINGS_FOLDER
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from install_torchrun_test import FOREIGN
from install_torchrun_test import Environment as TorchrunEnvironment

NAMES = ["accelerate", "accelerate-config", "accelerate-estimate-memory", "accelerate-launch", "accelerate-merge-weights"]
KEPT = [name + ".before-acc" for name in NAMES]
SAGEMAKER = "compute_environment: AMAZON_SAGEMAKER\ndistributed_type: DATA_PARALLEL\nec2_instance_type: ml\niam_role_name: role\n"
TWO_ON_CPU = "distributed_type: MULTI_CPU\nnum_processes: 2\nuse_cpu: true\n"
OF_PIP = "#!/an/environment/bin/python\nimport sys\nfrom accelerate.commands.accelerate_cli import main\nsys.exit(main())\n#{}\n"
TEST_SCRIPT = "import os, sys\nprint('rank', os.environ['RANK'])\nsys.exit(int(os.environ.get('FAILS', '0')))\n"
fake_nvml = recordings = ""


class Environment(TorchrunEnvironment):
    def __init__(self, acc, folder):
        super().__init__(acc, folder, "accelerate")
        self.work = pathlib.Path(folder) / "work"
        self.work.mkdir()

    def put_all(self, text=FOREIGN):
        for name in NAMES:
            self.put_one(name, text)

    def put_one(self, name, text=FOREIGN):
        (self.bin / name).unlink(missing_ok=True)
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def write(self, name, text):
        (self.work / name).write_text(text)
        return name

    def call(self, *words, name="accelerate", **variables):
        environment = {"PATH": f"{self.bin}:{os.environ['PATH']}", "HOME": str(self.work), **variables}
        return subprocess.run([self.bin / name, *words], text=True, capture_output=True, timeout=120, stdin=subprocess.DEVNULL,
                              env=environment, cwd=self.work)


def is_one_line(text):
    return text.startswith("acc: ") and text.count("\n") == 1


def all_five_programs_are_taken_and_put_back(place):
    place.put_all()
    said = place.run().stdout
    assert said.count("will be a link to acc, and what it is now will be ") == 5 and place.files() == ["acc", *NAMES], said
    said = place.do("--yes")
    assert said.count(" is acc now, and what it was is ") == 5 and said.count("`acc install-accelerate --undo` takes that back") == 1, said
    assert place.files() == sorted(["acc", *NAMES, *KEPT])
    assert all(os.readlink(place.bin / name) == "acc" for name in NAMES)
    assert place.call("--version").stdout.startswith("acc ")
    assert "is acc already" in place.do("--yes")
    assert place.do("--undo").count("is what it was before") == 5
    assert place.files() == ["acc", *NAMES] and (place.bin / "accelerate").read_text() == FOREIGN


def those_that_are_missing_are_put_there_and_removed(place):
    place.put_one("accelerate")
    assert place.do("--yes").count(" is acc now") == 5 and place.files() == sorted(["acc", *NAMES, KEPT[0]])
    assert place.do("--undo").count("is removed; there was none before") == 4
    assert place.files() == ["acc", "accelerate"]


def all_are_taken_or_none(place):
    place.put_all()
    # What the last one is prepared in is taken.
    done = place.run("--yes", preexec_fn=lambda: (place.bin / f".accelerate-merge-weights.{os.getpid()}").mkdir())
    assert done.returncode == 1 and "accelerate-merge-weights: cannot be replaced: " in done.stderr, done
    assert place.files() == ["acc", *NAMES] and (place.bin / "accelerate").read_text() == FOREIGN


def those_of_a_new_accelerate_are_left_alone(place):
    place.do("--yes")
    place.put_one("accelerate-config")
    assert f"{place.bin}/accelerate-config is not acc: nothing to take back\n" in place.do("--undo")
    assert place.files() == ["acc", "accelerate-config"]


def an_upgrade_by_pip_leaves_nothing_once_it_is_taken_back(place):
    place.put_all(OF_PIP.format(""))
    place.do("--yes")
    place.put_all(OF_PIP.format(" and another text around it"))
    assert place.do("--undo").count("it was installed again, and the older ") == 5
    assert place.files() == ["acc", *NAMES]
    assert place.do("--undo").count("nothing to take back") == 5


def what_was_kept_goes_with_its_package(place):
    """`pip uninstall accelerate` removes what has the names of its programs, and not what was kept of them."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place.work / "own"], check=True, timeout=60)
    of_own = OF_PIP.format("").replace("/an/environment", f"{place.work}/own")
    package = place.bin.parent / "accelerate"  # as `pip install --target` lays it out
    package.mkdir()
    (package / "__init__.py").touch()
    place.put_all(of_own)
    place.do("--yes")
    for name in NAMES:
        (place.bin / name).unlink()
    assert place.do("--undo").count("is what it was before") == 5
    for links_are_left in (False, True):
        place.put_all(of_own)
        place.do("--yes")
        for name in [] if links_are_left else NAMES:
            (place.bin / name).unlink()
        shutil.rmtree(package, ignore_errors=True)
        said = place.do("--undo")
        assert f"{place.bin}/accelerate is removed, with accelerate.before-acc, whose package accelerate is not installed any more\n" in said
        assert said.count("is removed, with ") == 5 and place.files() == ["acc"], said


def failures_have_the_exit_codes_of_python(place):
    place.do("--yes")
    shown = place.call()
    assert shown.returncode == 1 and "merge-weights" in shown.stdout and not shown.stderr, shown
    assert place.call("--help").returncode == 0
    assert place.call("launch", "--help").stdout.startswith("usage: accelerate launch")
    for words in (["env", "--foo"], ["config", "frob"], ["launch"], ["launch", "--foo", "x"], ["estimate-memory"], ["--foo"],
                  ["launch", "--mixed_precision", "fp32", "x"]):
        done = place.call(*words)
        assert done.returncode == 2 and is_one_line(done.stderr), done
    place.write("none.yaml", "")
    for words in (["env", "--config_file", "missing"], ["launch", "--config_file", "none.yaml", "x"],
                  ["config", "update", "--config_file", "missing"], ["tpu-config", "--debug"],
                  ["to-fsdp2", "--config_file", "none.yaml"], ["merge-weights", "missing", "out"]):
        done = place.call(*words)
        assert done.returncode == 1 and is_one_line(done.stderr), done
    # What a worker ends with is not lost.
    assert place.call("launch", "--no_python", "sh", "-c", "exit 7").returncode == 7


def options_may_be_abbreviated_but_those_of_launch(place):
    place.do("--yes")
    assert "saved at" in place.call("config", "default", "--conf", "c.yaml", "--mixed=bf16").stdout
    assert '"mixed_precision": "bf16"' in (place.work / "c.yaml").read_text()
    assert place.call("launch", "--num_proc", "1", "x").returncode == 2


def each_program_is_its_command(place):
    place.do("--yes")
    done = place.call("--no_python", "echo", "launched", name="accelerate-launch")
    assert done.returncode == 0 and done.stdout == "launched\n", done
    assert "saved at" in place.call("default", "--config_file", "c.yaml", name="accelerate-config").stdout
    assert "FULL_SHARD" not in place.call("--help", name="accelerate-estimate-memory").stdout
    assert is_one_line(place.call("a", "b", name="accelerate-merge-weights").stderr)


def files_and_texts_are_those_of_accelerate(place):
    place.do("--yes")
    for name in ("default_cpu", "default_one_gpu", "default_four_gpus", "default_four_gpus_fp8"):
        recorded = recording(name)
        words = ["config", "default", "--config_file", name + ".yaml", "--mixed_precision", recorded["mixed_precision"]]
        gpus = {"LD_LIBRARY_PATH": fake_nvml, "FAKE_NVML_GPUS": str(recorded["gpus"])}
        assert place.call(*words, **gpus).stdout == f"accelerate configuration saved at {name}.yaml\n"
        assert (place.work / f"{name}.yaml").read_text() == recorded["file"], name
        assert place.call(*words, **gpus).stdout == f"Configuration already exists at {name}.yaml, will not override.\n"
    place.call("config", "update", "--config_file", "default_cpu.yaml")
    assert (place.work / "default_cpu.yaml").read_text().startswith("compute_environment: LOCAL_MACHINE\ndebug: false\n")
    place.call("config", "default")
    assert (place.work / ".cache/huggingface/accelerate/default_config.yaml").exists()
    for name in ("update_json", "update_sagemaker"):
        recorded = recording(name)
        file = place.write(name + recorded["suffix"], recorded["before"])
        assert place.call("config", "update", "--config_file", file).stdout == f"Successfully updated the configuration file at {file}.\n"
        text = (place.work / file).read_text()
        # The one difference: the precision that applies is written where the file had none.
        written = [line for line in text.splitlines() if "mixed_precision" not in line or "mixed_precision" in recorded["after"]]
        assert sorted(written) == sorted(recorded["after"].splitlines()), text
    for name in names_of("tofsdp2_"):
        recorded = recording(name)
        place.write("before.yaml", recorded["before"])
        done = place.call("to-fsdp2", "--config_file", "before.yaml", "--output_file", "after.yaml", "--overwrite")
        assert done.returncode == 0, (name, done)
        assert sorted((place.work / "after.yaml").read_text().splitlines()) == sorted(recorded["after"].splitlines()), name
    for name in names_of("tpuconfig_"):
        recorded = recording(name)
        words = with_config(place, recorded)
        done = place.call("tpu-config", *words)
        if recorded["error"]:
            assert done.returncode == 1 and is_one_line(done.stderr), (name, done)
        else:
            assert done.stdout == recorded["stdout"], (name, done)


def recording(name):
    return json.loads((recordings / f"{name}.json").read_text())


def names_of(prefix):
    names = sorted(file.stem for file in recordings.glob(prefix + "*.json"))
    assert names
    return names


def with_config(place, recorded):
    """The words of a recording, whose config is where they say, or the default one."""
    name = "config" + (recorded.get("preset") or {}).get("config_suffix", ".yaml")
    default = place.work / ".cache/huggingface/accelerate/default_config.yaml"
    default.unlink(missing_ok=True)
    if recorded["config_yaml"] is not None:
        file = place.work / name if "<CONFIG>" in recorded["argv"] else default
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(recorded["config_yaml"].replace("<CWD>", str(place.work)))
    place.write("c.sh", 'echo "one"\necho two\n')
    return [name if word == "<CONFIG>" else word for word in recorded["argv"]]


def machine_of(place, recorded):
    """The variables of the recorded machine: its GPUs, and launchers that are fakes here."""
    preset = recorded.get("preset") or {}
    mpi = preset.get("mpi") if isinstance(preset.get("mpi"), dict) else {}
    for name in ("mpirun", "mpiexec", "deepspeed"):
        (place.bin / name).unlink(missing_ok=True)
        if name == "deepspeed" or mpi.get(name):
            place.put_one(name, f"#!/bin/sh\necho 'mpirun {mpi.get('version', '')}'\n")
    return {"LD_LIBRARY_PATH": fake_nvml, "FAKE_NVML_GPUS": str(preset.get("gpus", 0)), **preset.get("env", {})}


def launches_are_those_of_acc_launch(place):
    """Which are held to the recordings by a test of their own: here that they pass through the name, with accelerate's codes."""
    place.do("--yes")
    place.write("train.py", "")
    refused = of_sagemaker = 0
    for name in names_of("launch_"):
        recorded = recording(name)
        words = ["launch", "--dry_run=json", *with_config(place, recorded)]
        machine = machine_of(place, recorded)
        one, other = (place.call(*words, name=program, **machine) for program in ("accelerate", "acc"))
        if "AMAZON_SAGEMAKER" in (recorded["config_yaml"] or ""):
            assert one.returncode == 1 and all(line.startswith("acc: ") for line in one.stderr.splitlines()), (name, one)
            of_sagemaker += "no accelerate was kept" in one.stderr
        elif other.returncode != 0:
            # A choice that accelerate's parser offers and its launch refuses is not offered here.
            code = 2 if (recorded["error"] or "").startswith("SystemExit") or "invalid choice" in one.stderr else 1
            said = re.sub("`acc (config|launch)", r"`accelerate \1", other.stderr)
            assert one.returncode == code and one.stderr == said, (name, one, other)
            refused += 1
        else:
            shown = [json.loads(done.stdout) for done in (one, other)]
            assert all(shown[0][key] == shown[1][key] for key in ("launcher", "env", "worker_command")), (name, one, other)
    assert refused > 10 and of_sagemaker > 0


def messages_name_the_command_that_was_typed(place):
    place.do("--yes")
    place.write("train.py", "")
    done = place.call("launch", "train.py", SLURM_JOB_ID="17", SLURM_JOB_NUM_NODES="2", SLURM_JOB_NODELIST="a,b", SLURMD_NODENAME="a")
    assert done.returncode == 1 and "srun --ntasks-per-node=1 accelerate launch …" in done.stderr, done
    assert "acc launch" not in done.stderr and "or accelerate launch --srun" in done.stderr, done
    assert "(as in `accelerate launch train.py" in place.call("launch").stderr
    place.write("empty.yaml", "")
    assert "`accelerate config`" in place.call("launch", "--config_file", "empty.yaml", "train.py").stderr


def what_acc_does_not_do_is_handed_on(place):
    place.put_all("#!/bin/sh\nprintf '<%s>' \"$@\"\nexit 7\n")
    place.do("--yes")
    place.write("sagemaker.yaml", SAGEMAKER)
    (place.work / "folder").mkdir()
    for words in (["ps", "two words"], ["estimate-memory", "bert-base-cased", "--dtypes", "int8"],
                  ["launch", "--config_file", "sagemaker.yaml", "train.py", "--lr", "1"],
                  ["merge-weights", "--unsafe_serialization", "folder", "out"]):
        done = place.call(*words)
        assert done.returncode == 7 and done.stdout == "".join(f"<{word}>" for word in words), done
    done = place.call("bert-base-cased", name="accelerate-estimate-memory")
    assert done.returncode == 7 and done.stdout == "<estimate-memory><bert-base-cased>", done
    assert "neither safetensors files nor a config.json" in place.call("estimate-memory", "folder").stderr
    # Also by a link elsewhere.
    (place.work / "accelerate").symlink_to(place.bin / "accelerate")
    done = subprocess.run([place.work / "accelerate", "ps"], text=True, capture_output=True, timeout=60)
    assert done.stdout == "<ps>", done


def what_is_handed_on_imports_nothing_of_the_current_folder(place):
    commands = place.work / "packages/accelerate/commands"
    commands.mkdir(parents=True)
    (commands.parent / "__init__.py").touch()
    (commands / "__init__.py").touch()
    (commands / "accelerate_cli.py").write_text("def main():\n    import os, sys\n    print(os.getcwd() in sys.path or '' in sys.path)\n")
    (place.work / "importlib.py").write_text("raise RuntimeError('of the current folder')\n")
    done = place.call("accelerate", "--python", sys.executable, "ps", name="acc", PYTHONPATH=str(place.work / "packages"))
    assert done.returncode == 0 and done.stdout == "False\n", done


def a_kept_program_that_calls_accelerate_is_told(place):
    place.put_all('#!/bin/sh\necho called\nexec accelerate "$@"\n')
    place.do("--yes")
    done = place.call("ps")
    assert done.returncode == 1 and done.stdout == "called\n" and is_one_line(done.stderr), done
    assert done.stderr.startswith(f"acc: {place.bin}/accelerate.before-acc: calls accelerate, which is acc and calls it again"), done
    # Workers are started by acc, not by that program.
    (place.bin / "accelerate.before-acc").write_text('#!/bin/sh\nexec accelerate launch --no_python sh -c "env; true"\n')
    done = place.call("ps")
    assert done.returncode == 0 and "ACC_HANDED_ON" not in done.stdout, done


def a_kept_program_whose_interpreter_is_gone_is_told(place):
    place.put_all("#!/nowhere/bin/python -s\n")
    place.do("--yes")
    done = place.call("ps")
    assert done.returncode == 1 and is_one_line(done.stderr), done
    assert "accelerate.before-acc: cannot be started: its interpreter /nowhere/bin/python is gone (" in done.stderr, done
    done = place.call("launch", "--no_python", "true")
    assert done.returncode == 0 and "its Python /nowhere/bin/python is gone: workers run under another one" in done.stderr, done


def the_environment_is_that_of_the_python_of_accelerate(place):
    """Whatever brings its packages: PYTHONPATH, a .pth file, or the user's folder."""
    python = os.path.realpath(sys.executable)  # a virtual environment has no folder of the user
    place.put_all(f"#!{python}\n")
    place.do("--yes")
    for folder, package in (("packages", "torch-9.8.7"), ("linked", "accelerate-6.5.4"), ("user", "numpy-3.2.1")):
        (place.work / folder / f"{package}.dist-info").mkdir(parents=True)
    of_user = place.work / f".local/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    of_user.mkdir(parents=True)
    (of_user / "linked.pth").write_text(f"{place.work}/linked\n{place.work}/user\n")
    # Nothing of the current folder.
    (place.work / "torch-1.0.dist-info").mkdir()
    text = place.call("env", PYTHONPATH=str(place.work / "packages")).stdout
    for line in ("PyTorch version: 9.8.7", "`Accelerate` version: 6.5.4", "Numpy version: 3.2.1", python):
        assert line in text, (line, text)


def no_processes_are_one(place):
    """The output of a command that counts no GPUs, for example."""
    place.do("--yes")
    for number in ("0", "-1"):
        done = place.call("launch", "--cpu", "--num_processes", number, "--no_python", "sh", "-c", "echo one $RANK")
        assert done.returncode == 0 and done.stdout == "one\n", done
        assert f"--num_processes: num_processes {number} is one process, as under accelerate" in done.stderr, done
    place.write("none.yaml", "distributed_type: MULTI_CPU\nnum_processes: 0\nuse_cpu: true\n")
    for words in ([], ["--num_processes", "0"], ["--num_processes", "-2"]):
        done = place.call("launch", "--config_file", "none.yaml", *words, "--no_python", "sh", "-c", "echo one $RANK")
        assert done.returncode == 0 and done.stdout == "one\n" and "is one process, as under accelerate" in done.stderr, done
    typed = place.call("launch", "--config_file", "none.yaml", "--num_processes", "2", "--no_python", "sh", "-c", "echo $RANK")
    assert typed.returncode == 0 and sorted(typed.stdout.split()) == ["0", "1"] and not typed.stderr, typed
    # Where accelerate starts none, nothing is started.
    place.write("gpus.yaml", "distributed_type: MULTI_GPU\nnum_processes: 0\n")
    for words in (["--config_file", "gpus.yaml"], ["--config_file", "gpus.yaml", "--num_processes", "0"],
                  ["--config_file", "none.yaml", "--num_processes", "-1"],
                  ["--num_processes", "0", "--num_machines", "2", "--main_process_ip", "a"]):
        done = place.call("launch", *words, "--no_python", "echo", "started")
        assert done.returncode == 1 and not done.stdout and "num_processes must be at least 1, not " in done.stderr, done
    assert place.call("launch", "--config_file", "none.yaml", "--no_python", "true", name="acc").returncode == 2
    assert place.call("launch", "--multi_gpu", "--num_processes", "0", "--no_python", "true").returncode == 1
    assert place.call("launch", "--cpu", "--num_processes", "0", "--no_python", "true", name="acc").returncode == 2


def a_config_file_before_the_command_is_ignored_as_there(place):
    place.do("--yes")
    default = place.work / ".cache/huggingface/accelerate/default_config.yaml"
    assert place.call("config", "--config_file", "c.yaml", "default").stdout == f"accelerate configuration saved at {default}\n"
    assert default.exists() and not (place.work / "c.yaml").exists()
    place.call("config", "--config_file", "c.yaml", "default", "--config_file", "d.yaml")
    assert (place.work / "d.yaml").exists() and not (place.work / "c.yaml").exists()


def where_none_was_kept_one_line_says_so(place):
    place.do("--yes")
    place.write("sagemaker.yaml", SAGEMAKER)
    for words in (["ps"], ["estimate-memory", "bert"], ["launch", "--config_file", "sagemaker.yaml", "train.py"]):
        done = place.call(*words)
        assert done.returncode == 1 and is_one_line(done.stderr) and "no accelerate was kept" in done.stderr, done
        assert "pip install accelerate" in done.stderr, done


def the_test_is_the_script_of_accelerate(place):
    place.do("--yes")
    (place.bin.parent / "pyvenv.cfg").touch()
    (place.bin / "python3").symlink_to(sys.executable)
    missing = place.call("test")
    assert missing.returncode == 1 and is_one_line(missing.stderr) and "has no accelerate" in missing.stderr, missing
    scripts = place.work / "packages/accelerate/test_utils/scripts"
    scripts.mkdir(parents=True)
    (place.work / "packages/accelerate/__init__.py").write_text("raise RuntimeError('it takes seconds to import')\n")
    (scripts / "test_script.py").write_text(TEST_SCRIPT)
    place.write("two on cpu.yaml", TWO_ON_CPU)
    done = place.call("test", "--config_file", "two on cpu.yaml", PYTHONPATH=str(place.work / "packages"))
    assert done.returncode == 0 and sorted(done.stdout.splitlines()) == [
        "Test is a success! You are ready for your distributed training!", "rank 0", "rank 1"], done
    failed = place.call("test", "--config_file", "two on cpu.yaml", PYTHONPATH=str(place.work / "packages"), FAILS="3")
    assert failed.returncode == 3 and "success" not in failed.stdout, failed


def workers_run_under_the_python_of_the_program_that_was_kept(place):
    (place.work / "own").mkdir()
    python = place.work / "own" / "python3"
    python.symlink_to(sys.executable)
    place.put_all(f"#!{python}\n")
    place.do("--yes")
    (place.work / "elsewhere").mkdir()
    link = place.work / "elsewhere" / "accelerate"
    link.symlink_to(place.bin / "accelerate")
    text = "import os, sys\nprint(os.path.realpath(sys.executable), os.environ['WORLD_SIZE'])\n"
    # The program of a package, which names a Python, and one that may not be executed.
    place.write("package", "#!/nowhere/bin/python\n" + text)
    (place.work / "package").chmod(0o755)
    place.write("plain", "#!/usr/bin/env python3\n" + text)
    place.write("script.py", text)
    (place.work / "random.py").write_text("raise RuntimeError('of the current folder')\n")
    for program in ("script.py", "package", "plain"):
        done = subprocess.run([link, "launch", "--cpu", "--num_processes", "2", program], text=True, capture_output=True,
                              timeout=60, cwd=place.work, env={"PATH": "/usr/bin:/bin", "HOME": str(place.work)})
        assert done.returncode == 0 and done.stdout == f"{os.path.realpath(sys.executable)} 2\n" * 2, (program, done)


def nodes_follow_the_rules_of_the_name(place):
    """Those that --srun and --hosts start: a script whose #! names a lost Python runs there, too, under accelerate's."""
    python = place.work / "own" / "python3"
    python.parent.mkdir()
    python.symlink_to(sys.executable)
    place.put_all(f"#!{python}\n")
    place.do("--yes")
    place.put_one("srun", "#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
    done = place.call("launch", "--srun", "script", SLURM_JOB_ID="1", SLURM_JOB_NUM_NODES="1", SLURMD_NODENAME="a")
    assert done.stdout.splitlines()[-7:] == [str(place.bin / "acc"), "accelerate", "launch", "--python", str(python), "--srun", "script"], done
    place.write("script", "#!/nowhere/bin/python\nimport os, sys\nprint(os.path.realpath(sys.executable))\n")
    (place.work / "script").chmod(0o755)
    place.write("rsh", 'shift; exec sh -c "$*"\n')  # in place of ssh: all hosts are this machine
    done = place.call("launch", "--cpu", "--hosts", "node-a", "script", ACC_RSH=f"sh {place.work}/rsh")
    assert done.returncode == 0 and os.path.realpath(sys.executable) in done.stdout, done


def a_config_may_come_from_a_pipe(place):
    place.put_all()
    place.do("--yes")
    place.write("rank.sh", "#!/bin/sh\necho $RANK\n")
    (place.work / "rank.sh").chmod(0o755)
    done = subprocess.run(["bash", "-c", '"$0" launch --config_file <(printf "$1") --no_python ./rank.sh', place.bin / "accelerate",
                           TWO_ON_CPU], text=True, capture_output=True, timeout=60, cwd=place.work)
    assert done.returncode == 0 and sorted(done.stdout.split()) == ["0", "1"], done


TESTS = [all_five_programs_are_taken_and_put_back, those_that_are_missing_are_put_there_and_removed, all_are_taken_or_none,
         those_of_a_new_accelerate_are_left_alone, an_upgrade_by_pip_leaves_nothing_once_it_is_taken_back,
         what_was_kept_goes_with_its_package, failures_have_the_exit_codes_of_python,
         options_may_be_abbreviated_but_those_of_launch, each_program_is_its_command, files_and_texts_are_those_of_accelerate,
         launches_are_those_of_acc_launch, messages_name_the_command_that_was_typed, what_acc_does_not_do_is_handed_on,
         what_is_handed_on_imports_nothing_of_the_current_folder, a_kept_program_that_calls_accelerate_is_told,
         a_kept_program_whose_interpreter_is_gone_is_told, the_environment_is_that_of_the_python_of_accelerate,
         no_processes_are_one, a_config_file_before_the_command_is_ignored_as_there, where_none_was_kept_one_line_says_so,
         the_test_is_the_script_of_accelerate, workers_run_under_the_python_of_the_program_that_was_kept,
         nodes_follow_the_rules_of_the_name, a_config_may_come_from_a_pipe]


def main(acc):
    for test in TESTS:
        with tempfile.TemporaryDirectory(prefix="acc-accelerate-") as folder:
            test(Environment(acc, folder))
        print("ok:", test.__name__.replace("_", " "), flush=True)


if __name__ == "__main__":
    fake_nvml, recordings = os.path.abspath(sys.argv[2]), pathlib.Path(sys.argv[3]).resolve()
    main(os.path.abspath(sys.argv[1]))
