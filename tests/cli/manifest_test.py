# SPDX-License-Identifier: Apache-2.0
"""The manifests of `acc launch --print-script` by the schemas of Kubernetes and JobSet. Usage: manifest_test.py ACC."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

SKIPPED = 77
SCHEMAS = pathlib.Path(__file__).resolve().parent.parent / "data/kubernetes/manifests.json"

try:
    import jsonschema
    import yaml
except ImportError:
    peer = os.environ.get("ACC_PEER_PYTHON")
    if peer and os.path.realpath(sys.prefix) != os.path.realpath(os.path.dirname(os.path.dirname(peer))):
        os.execv(peer, [peer, *sys.argv])
    print("skipped: ACC_PEER_PYTHON names no Python with the peers")
    print("(this one has no PyYAML or jsonschema)")
    sys.exit(SKIPPED)

# Texts that YAML, a shell or Kubernetes could take for something else.
WORDS = ["no", "1:30", "~", "", " a ", "# x", "a: b", '"quoted" \\ \'text\'', "two\nlines\ttab\x01\x7f", "café 🙂", "\x85\u2028\ufeff",
         "$(HOME)", "$$(HOME)", "$local_rank", "{{x}}", "%d", "&a *b !c", "---", "| >"]


def documents(acc, kind, *words, environment=()):
    home = tempfile.TemporaryDirectory(prefix="acc-manifest-")
    env = {"PATH": os.environ["PATH"], "HOME": home.name, **dict(environment)}
    done = subprocess.run([acc, "launch", "--print-script", kind, *words], env=env, cwd=home.name, capture_output=True, timeout=30)
    assert done.returncode == 0, done
    return list(yaml.safe_load_all(done.stdout))


def as_kubernetes_expands(text):
    """What a container gets that has no variable of these names: `$$` is `$`, and `$(` has another `$` in front."""
    assert "$(" not in text.replace("$$", ""), text
    return text.replace("$$", "$")


def check(document, schemas):
    schema = {"$defs": schemas["$defs"], **schemas["kinds"][document["kind"]]}
    jsonschema.Draft202012Validator(schema).validate(document)


def main(acc):
    schemas = json.loads(SCHEMAS.read_text())
    with tempfile.TemporaryDirectory(prefix="acc-manifest-") as folder:
        config = pathlib.Path(folder) / "my config.yaml"
        config.write_text("compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU  # a remark\nnum_processes: 4\n")
        for kind, kinds in [("k8s", ["Service", "Job"]), ("jobset", ["JobSet"])]:
            for flags, also in [(["--nnodes", "2", "--cpu"], []), (["--num_machines", "2", "--config_file", str(config)], ["ConfigMap"]),
                                (["--nnodes", "2", "--multi_gpu", "--num_processes", "8"], [])]:
                made = documents(acc, kind, *flags, "train.py", *WORDS, environment={"PET_LOG_DIR": "/logs/$(x): #"}.items())
                assert [document["kind"] for document in made] == also + kinds, made
                for document in made:
                    check(document, schemas)
                spec = made[-1]["spec"] if kind == "k8s" else made[-1]["spec"]["replicatedJobs"][0]["template"]["spec"]
                container = spec["template"]["spec"]["containers"][0]
                assert [as_kubernetes_expands(word) for word in container["command"]][-len(WORDS):] == WORDS, container
                assert as_kubernetes_expands(container["env"][-1]["value"]) == "/logs/$(x): #", container
                if also:
                    assert made[0]["data"] == {"config.yaml": config.read_text()}, made[0]
            [alone] = documents(acc, kind, "train.py")
            check(alone, schemas)
        # The schemas notice what Kubernetes would refuse.
        for wrong in [{**alone, "spec": {**alone["spec"], "completion": 2}}, {**alone, "metadata": []},
                      {**alone, "spec": {**alone["spec"], "failurePolicy": {"rules": [{"name": "a", "action": "Retry"}]}}}]:
            try:
                check(wrong, schemas)
            except jsonschema.ValidationError:
                continue
            raise AssertionError(f"accepted: {wrong}")


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]))
