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


def all_five_programs_are_taken_and_put_back(venv):
    venv.put_all()
    said = venv.run().stdout
    assert said.count("will be a link to acc, and what it is now will be ") == 5 and venv.files() == ["acc", *NAMES], said
    said = venv.do("--yes")
    assert said.count(" is acc now, and what it was is ") == 5 and said.count("`acc install-accelerate --undo` takes that back") == 1, said
    assert venv.files() == sorted(["acc", *NAMES, *KEPT])
    assert all(os.readlink(venv.bin / name) == "acc" for name in NAMES)
    assert venv.call("--version").stdout.startswith("acc ")
    assert "is acc already" in venv.do("--yes")
    assert venv.do("--undo").count("is what it was before") == 5
    assert venv.files() == ["acc", *NAMES] and (venv.bin / "accelerate").read_text() == FOREIGN


def those_that_are_missing_are_put_there_and_removed(venv):
    venv.put_one("accelerate")
    assert venv.do("--yes").count(" is acc now") == 5 and venv.files() == sorted(["acc", *NAMES, KEPT[0]])
    assert venv.do("--undo").count("is removed; there was none before") == 4
    assert venv.files() == ["acc", "accelerate"]


def all_are_taken_or_none(venv):
    venv.put_all()
    # What the last one is prepared in is taken.
    done = venv.run("--yes", preexec_fn=lambda: (venv.bin / f".accelerate-merge-weights.{os.getpid()}").mkdir())
    assert done.returncode == 1 and "accelerate-merge-weights: cannot be replaced: " in done.stderr, done
    assert venv.files() == ["acc", *NAMES] and (venv.bin / "accelerate").read_text() == FOREIGN


def those_of_a_new_accelerate_are_left_alone(venv):
    venv.do("--yes")
    venv.put_one("accelerate-config")
    assert f"{venv.bin}/accelerate-config is not acc: nothing to take back\n" in venv.do("--undo")
    assert venv.files() == ["acc", "accelerate-config"]


def an_upgrade_by_pip_leaves_nothing_once_it_is_taken_back(venv):
    venv.put_all(OF_PIP.format(""))
    venv.do("--yes")
    venv.put_all(OF_PIP.format(" and another text around it"))
    assert venv.do("--undo").count("it was installed again, and the older ") == 5
    assert venv.files() == ["acc", *NAMES]
    assert venv.do("--undo").count("nothing to take back") == 5


def what_was_kept_goes_with_its_package(venv):
    """`pip uninstall accelerate` removes what has the names of its programs, and not what was kept of them."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv.work / "own"], check=True, timeout=60)
    of_own = OF_PIP.format("").replace("/an/environment", f"{venv.work}/own")
    package = venv.bin.parent / "accelerate"  # as `pip install --target` lays it out
    package.mkdir()
    (package / "__init__.py").touch()
    venv.put_all(of_own)
    venv.do("--yes")
    for name in NAMES:
        (venv.bin / name).unlink()
    assert venv.do("--undo").count("is what it was before") == 5
    for links_are_left in (False, True):
        venv.put_all(of_own)
        venv.do("--yes")
        for name in [] if links_are_left else NAMES:
            (venv.bin / name).unlink()
        shutil.rmtree(package, ignore_errors=True)
        said = venv.do("--undo")
        assert f"{venv.bin}/accelerate is removed, with accelerate.before-acc, whose package accelerate is not installed any more\n" in said
        assert said.count("is removed, with ") == 5 and venv.files() == ["acc"], said


def failures_have_the_exit_codes_of_python(venv):
    venv.do("--yes")
    shown = venv.call()
    assert shown.returncode == 1 and "merge-weights" in shown.stdout and not shown.stderr, shown
    assert venv.call("--help").returncode == 0
    assert venv.call("launch", "--help").stdout.startswith("usage: accelerate launch")
    for words in (["env", "--foo"], ["config", "frob"], ["launch"], ["launch", "--foo", "x"], ["estimate-memory"], ["--foo"],
                  ["launch", "--mixed_precision", "fp32", "x"]):
        done = venv.call(*words)
        assert done.returncode == 2 and is_one_line(done.stderr), done
    venv.write("none.yaml", "")
    for words in (["env", "--config_file", "missing"], ["launch", "--config_file", "none.yaml", "x"],
                  ["config", "update", "--config_file", "missing"], ["tpu-config", "--debug"],
                  ["to-fsdp2", "--config_file", "none.yaml"], ["merge-weights", "missing", "out"]):
        done = venv.call(*words)
        assert done.returncode == 1 and is_one_line(done.stderr), done
    # What a worker ends with is not lost.
    assert venv.call("launch", "--no_python", "sh", "-c", "exit 7").returncode == 7


def options_may_be_abbreviated_but_those_of_launch(venv):
    venv.do("--yes")
    assert "saved at" in venv.call("config", "default", "--conf", "c.yaml", "--mixed=bf16").stdout
    assert '"mixed_precision": "bf16"' in (venv.work / "c.yaml").read_text()
    assert venv.call("launch", "--num_proc", "1", "x").returncode == 2


def each_program_is_its_command(venv):
    venv.do("--yes")
    done = venv.call("--no_python", "echo", "launched", name="accelerate-launch")
    assert done.returncode == 0 and done.stdout == "launched\n", done
    assert "saved at" in venv.call("default", "--config_file", "c.yaml", name="accelerate-config").stdout
    assert "FULL_SHARD" not in venv.call("--help", name="accelerate-estimate-memory").stdout
    assert is_one_line(venv.call("a", "b", name="accelerate-merge-weights").stderr)


def files_and_texts_are_those_of_accelerate(venv):
    venv.do("--yes")
    for name in ("default_cpu", "default_one_gpu", "default_four_gpus", "default_four_gpus_fp8"):
        recorded = recording(name)
        words = ["config", "default", "--config_file", name + ".yaml", "--mixed_precision", recorded["mixed_precision"]]
        gpus = {"LD_LIBRARY_PATH": fake_nvml, "FAKE_NVML_GPUS": str(recorded["gpus"])}
        assert venv.call(*words, **gpus).stdout == f"accelerate configuration saved at {name}.yaml\n"
        assert (venv.work / f"{name}.yaml").read_text() == recorded["file"], name
        assert venv.call(*words, **gpus).stdout == f"Configuration already exists at {name}.yaml, will not override.\n"
    venv.call("config", "update", "--config_file", "default_cpu.yaml")
    assert (venv.work / "default_cpu.yaml").read_text().startswith("compute_environment: LOCAL_MACHINE\ndebug: false\n")
    venv.call("config", "default")
    assert (venv.work / ".cache/huggingface/accelerate/default_config.yaml").exists()
    for name in ("update_json", "update_sagemaker"):
        recorded = recording(name)
        file = venv.write(name + recorded["suffix"], recorded["before"])
        assert venv.call("config", "update", "--config_file", file).stdout == f"Successfully updated the configuration file at {file}.\n"
        text = (venv.work / file).read_text()
        # The one difference: the precision that applies is written where the file had none.
        written = [line for line in text.splitlines() if "mixed_precision" not in line or "mixed_precision" in recorded["after"]]
        assert sorted(written) == sorted(recorded["after"].splitlines()), text
    for name in names_of("tofsdp2_"):
        recorded = recording(name)
        venv.write("before.yaml", recorded["before"])
        done = venv.call("to-fsdp2", "--config_file", "before.yaml", "--output_file", "after.yaml", "--overwrite")
        assert done.returncode == 0, (name, done)
        assert sorted((venv.work / "after.yaml").read_text().splitlines()) == sorted(recorded["after"].splitlines()), name
    for name in names_of("tpuconfig_"):
        recorded = recording(name)
        words = with_config(venv, recorded)
        done = venv.call("tpu-config", *words)
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


def with_config(venv, recorded):
    """The words of a recording, whose config is where they say, or the default one."""
    name = "config" + (recorded.get("preset") or {}).get("config_suffix", ".yaml")
    default = venv.work / ".cache/huggingface/accelerate/default_config.yaml"
    default.unlink(missing_ok=True)
    if recorded["config_yaml"] is not None:
        file = venv.work / name if "<CONFIG>" in recorded["argv"] else default
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(recorded["config_yaml"].replace("<CWD>", str(venv.work)))
    venv.write("c.sh", 'echo "one"\necho two\n')
    return [name if word == "<CONFIG>" else word for word in recorded["argv"]]


def machine_of(venv, recorded):
    """The variables of the recorded machine: its GPUs, and launchers that are fakes here."""
    preset = recorded.get("preset") or {}
    mpi = preset.get("mpi") if isinstance(preset.get("mpi"), dict) else {}
    for name in ("mpirun", "mpiexec", "deepspeed"):
        (venv.bin / name).unlink(missing_ok=True)
        if name == "deepspeed" or mpi.get(name):
            venv.put_one(name, f"#!/bin/sh\necho 'mpirun {mpi.get('version', '')}'\n")
    return {"LD_LIBRARY_PATH": fake_nvml, "FAKE_NVML_GPUS": str(preset.get("gpus", 0)), **preset.get("env", {})}


def launches_are_those_of_acc_launch(venv):
    """Which are held to the recordings by a test of their own: here that they pass through the name, with accelerate's codes."""
    venv.do("--yes")
    venv.write("train.py", "")
    refused = of_sagemaker = 0
    for name in names_of("launch_"):
        recorded = recording(name)
        words = ["launch", "--dry_run=json", *with_config(venv, recorded)]
        machine = machine_of(venv, recorded)
        one, other = (venv.call(*words, name=program, **machine) for program in ("accelerate", "acc"))
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


def messages_name_the_command_that_was_typed(venv):
    venv.do("--yes")
    venv.write("train.py", "")
    done = venv.call("launch", "train.py", SLURM_JOB_ID="17", SLURM_JOB_NUM_NODES="2", SLURM_JOB_NODELIST="a,b", SLURMD_NODENAME="a")
    assert done.returncode == 1 and "srun --ntasks-per-node=1 accelerate launch …" in done.stderr, done
    assert "acc launch" not in done.stderr and "or accelerate launch --srun" in done.stderr, done
    assert "(as in `accelerate launch train.py" in venv.call("launch").stderr
    venv.write("empty.yaml", "")
    assert "`accelerate config`" in venv.call("launch", "--config_file", "empty.yaml", "train.py").stderr


def what_acc_does_not_do_is_handed_on(venv):
    venv.put_all("#!/bin/sh\nprintf '<%s>' \"$@\"\nexit 7\n")
    venv.do("--yes")
    venv.write("sagemaker.yaml", SAGEMAKER)
    (venv.work / "folder").mkdir()
    for words in (["ps", "two words"], ["estimate-memory", "bert-base-cased", "--dtypes", "int8"],
                  ["launch", "--config_file", "sagemaker.yaml", "train.py", "--lr", "1"],
                  ["merge-weights", "--unsafe_serialization", "folder", "out"]):
        done = venv.call(*words)
        assert done.returncode == 7 and done.stdout == "".join(f"<{word}>" for word in words), done
    done = venv.call("bert-base-cased", name="accelerate-estimate-memory")
    assert done.returncode == 7 and done.stdout == "<estimate-memory><bert-base-cased>", done
    assert "neither safetensors files nor a config.json" in venv.call("estimate-memory", "folder").stderr
    # Also by a link elsewhere.
    (venv.work / "accelerate").symlink_to(venv.bin / "accelerate")
    done = subprocess.run([venv.work / "accelerate", "ps"], text=True, capture_output=True, timeout=60)
    assert done.stdout == "<ps>", done


def what_is_handed_on_imports_nothing_of_the_current_folder(venv):
    commands = venv.work / "packages/accelerate/commands"
    commands.mkdir(parents=True)
    (commands.parent / "__init__.py").touch()
    (commands / "__init__.py").touch()
    (commands / "accelerate_cli.py").write_text("def main():\n    import os, sys\n    print(os.getcwd() in sys.path or '' in sys.path)\n")
    (venv.work / "importlib.py").write_text("raise RuntimeError('of the current folder')\n")
    done = venv.call("accelerate", "--python", sys.executable, "ps", name="acc", PYTHONPATH=str(venv.work / "packages"))
    assert done.returncode == 0 and done.stdout == "False\n", done


def a_kept_program_that_calls_accelerate_is_told(venv):
    venv.put_all('#!/bin/sh\necho called\nexec accelerate "$@"\n')
    venv.do("--yes")
    done = venv.call("ps")
    assert done.returncode == 1 and done.stdout == "called\n" and is_one_line(done.stderr), done
    assert done.stderr.startswith(f"acc: {venv.bin}/accelerate.before-acc: calls accelerate, which is acc and calls it again"), done
    # Workers are started by acc, not by that program.
    (venv.bin / "accelerate.before-acc").write_text('#!/bin/sh\nexec accelerate launch --no_python sh -c "env; true"\n')
    done = venv.call("ps")
    assert done.returncode == 0 and "ACC_HANDED_ON" not in done.stdout, done


def a_kept_program_whose_interpreter_is_gone_is_told(venv):
    venv.put_all("#!/nowhere/bin/python -s\n")
    venv.do("--yes")
    done = venv.call("ps")
    assert done.returncode == 1 and is_one_line(done.stderr), done
    assert "accelerate.before-acc: cannot be started: its interpreter /nowhere/bin/python is gone (" in done.stderr, done
    done = venv.call("launch", "--no_python", "true")
    assert done.returncode == 0 and "its Python /nowhere/bin/python is gone: workers run under another one" in done.stderr, done


def the_environment_is_that_of_the_python_of_accelerate(venv):
    """Whatever brings its packages: PYTHONPATH, a .pth file, or the user's folder."""
    python = os.path.realpath(sys.executable)  # a virtual environment has no folder of the user
    venv.put_all(f"#!{python}\n")
    venv.do("--yes")
    for folder, package in (("packages", "torch-9.8.7"), ("linked", "accelerate-6.5.4"), ("user", "numpy-3.2.1")):
        (venv.work / folder / f"{package}.dist-info").mkdir(parents=True)
    of_user = venv.work / f".local/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    of_user.mkdir(parents=True)
    (of_user / "linked.pth").write_text(f"{venv.work}/linked\n{venv.work}/user\n")
    # Nothing of the current folder.
    (venv.work / "torch-1.0.dist-info").mkdir()
    text = venv.call("env", PYTHONPATH=str(venv.work / "packages")).stdout
    for line in ("PyTorch version: 9.8.7", "`Accelerate` version: 6.5.4", "Numpy version: 3.2.1", python):
        assert line in text, (line, text)


def no_processes_are_one(venv):
    """The output of a command that counts no GPUs, for example."""
    venv.do("--yes")
    for number in ("0", "-1"):
        done = venv.call("launch", "--cpu", "--num_processes", number, "--no_python", "sh", "-c", "echo one $RANK")
        assert done.returncode == 0 and done.stdout == "one\n", done
        assert f"--num_processes: num_processes {number} is one process, as under accelerate" in done.stderr, done
    venv.write("none.yaml", "distributed_type: MULTI_CPU\nnum_processes: 0\nuse_cpu: true\n")
    for words in ([], ["--num_processes", "0"], ["--num_processes", "-2"]):
        done = venv.call("launch", "--config_file", "none.yaml", *words, "--no_python", "sh", "-c", "echo one $RANK")
        assert done.returncode == 0 and done.stdout == "one\n" and "is one process, as under accelerate" in done.stderr, done
    typed = venv.call("launch", "--config_file", "none.yaml", "--num_processes", "2", "--no_python", "sh", "-c", "echo $RANK")
    assert typed.returncode == 0 and sorted(typed.stdout.split()) == ["0", "1"] and not typed.stderr, typed
    # Where accelerate starts none, nothing is started.
    venv.write("gpus.yaml", "distributed_type: MULTI_GPU\nnum_processes: 0\n")
    for words in (["--config_file", "gpus.yaml"], ["--config_file", "gpus.yaml", "--num_processes", "0"],
                  ["--config_file", "none.yaml", "--num_processes", "-1"],
                  ["--num_processes", "0", "--num_machines", "2", "--main_process_ip", "a"]):
        done = venv.call("launch", *words, "--no_python", "echo", "started")
        assert done.returncode == 1 and not done.stdout and "num_processes must be at least 1, not " in done.stderr, done
    assert venv.call("launch", "--config_file", "none.yaml", "--no_python", "true", name="acc").returncode == 2
    assert venv.call("launch", "--multi_gpu", "--num_processes", "0", "--no_python", "true").returncode == 1
    assert venv.call("launch", "--cpu", "--num_processes", "0", "--no_python", "true", name="acc").returncode == 2


def a_config_file_before_the_command_is_ignored_as_there(venv):
    venv.do("--yes")
    default = venv.work / ".cache/huggingface/accelerate/default_config.yaml"
    assert venv.call("config", "--config_file", "c.yaml", "default").stdout == f"accelerate configuration saved at {default}\n"
    assert default.exists() and not (venv.work / "c.yaml").exists()
    venv.call("config", "--config_file", "c.yaml", "default", "--config_file", "d.yaml")
    assert (venv.work / "d.yaml").exists() and not (venv.work / "c.yaml").exists()


def where_none_was_kept_one_line_says_so(venv):
    venv.do("--yes")
    venv.write("sagemaker.yaml", SAGEMAKER)
    for words in (["ps"], ["estimate-memory", "bert"], ["launch", "--config_file", "sagemaker.yaml", "train.py"]):
        done = venv.call(*words)
        assert done.returncode == 1 and is_one_line(done.stderr) and "no accelerate was kept" in done.stderr, done
        assert "pip install accelerate" in done.stderr, done


def the_test_is_the_script_of_accelerate(venv):
    venv.do("--yes")
    (venv.bin.parent / "pyvenv.cfg").touch()
    (venv.bin / "python3").symlink_to(sys.executable)
    missing = venv.call("test")
    assert missing.returncode == 1 and is_one_line(missing.stderr) and "has no accelerate" in missing.stderr, missing
    scripts = venv.work / "packages/accelerate/test_utils/scripts"
    scripts.mkdir(parents=True)
    (venv.work / "packages/accelerate/__init__.py").write_text("raise RuntimeError('it takes seconds to import')\n")
    (scripts / "test_script.py").write_text(TEST_SCRIPT)
    venv.write("two on cpu.yaml", TWO_ON_CPU)
    done = venv.call("test", "--config_file", "two on cpu.yaml", PYTHONPATH=str(venv.work / "packages"))
    assert done.returncode == 0 and sorted(done.stdout.splitlines()) == [
        "Test is a success! You are ready for your distributed training!", "rank 0", "rank 1"], done
    failed = venv.call("test", "--config_file", "two on cpu.yaml", PYTHONPATH=str(venv.work / "packages"), FAILS="3")
    assert failed.returncode == 3 and "success" not in failed.stdout, failed


def workers_run_under_the_python_of_the_program_that_was_kept(venv):
    (venv.work / "own").mkdir()
    python = venv.work / "own" / "python3"
    python.symlink_to(sys.executable)
    venv.put_all(f"#!{python}\n")
    venv.do("--yes")
    (venv.work / "elsewhere").mkdir()
    link = venv.work / "elsewhere" / "accelerate"
    link.symlink_to(venv.bin / "accelerate")
    text = "import os, sys\nprint(os.path.realpath(sys.executable), os.environ['WORLD_SIZE'])\n"
    # The program of a package, which names a Python, and one that may not be executed.
    venv.write("package", "#!/nowhere/bin/python\n" + text)
    (venv.work / "package").chmod(0o755)
    venv.write("plain", "#!/usr/bin/env python3\n" + text)
    venv.write("script.py", text)
    (venv.work / "random.py").write_text("raise RuntimeError('of the current folder')\n")
    for program in ("script.py", "package", "plain"):
        done = subprocess.run([link, "launch", "--cpu", "--num_processes", "2", program], text=True, capture_output=True,
                              timeout=60, cwd=venv.work, env={"PATH": "/usr/bin:/bin", "HOME": str(venv.work)})
        assert done.returncode == 0 and done.stdout == f"{os.path.realpath(sys.executable)} 2\n" * 2, (program, done)


def nodes_follow_the_rules_of_the_name(venv):
    """Those that --srun and --hosts start: a script whose #! names a lost Python runs there, too, under accelerate's."""
    python = venv.work / "own" / "python3"
    python.parent.mkdir()
    python.symlink_to(sys.executable)
    venv.put_all(f"#!{python}\n")
    venv.do("--yes")
    venv.put_one("srun", "#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
    done = venv.call("launch", "--srun", "script", SLURM_JOB_ID="1", SLURM_JOB_NUM_NODES="1", SLURMD_NODENAME="a")
    assert done.stdout.splitlines()[-7:] == [str(venv.bin / "acc"), "accelerate", "launch", "--python", str(python), "--srun", "script"], done
    venv.write("script", "#!/nowhere/bin/python\nimport os, sys\nprint(os.path.realpath(sys.executable))\n")
    (venv.work / "script").chmod(0o755)
    venv.write("rsh", 'shift; exec sh -c "$*"\n')  # instead of ssh: all hosts are this machine
    done = venv.call("launch", "--cpu", "--hosts", "node-a", "script", ACC_RSH=f"sh {venv.work}/rsh")
    assert done.returncode == 0 and os.path.realpath(sys.executable) in done.stdout, done


def a_config_may_come_from_a_pipe(venv):
    venv.put_all()
    venv.do("--yes")
    venv.write("rank.sh", "#!/bin/sh\necho $RANK\n")
    (venv.work / "rank.sh").chmod(0o755)
    done = subprocess.run(["bash", "-c", '"$0" launch --config_file <(printf "$1") --no_python ./rank.sh', venv.bin / "accelerate",
                           TWO_ON_CPU], text=True, capture_output=True, timeout=60, cwd=venv.work)
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
